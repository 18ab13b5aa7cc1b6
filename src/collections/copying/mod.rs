//! Copies a local collection into a cluster, as a new collection: reads it in a thread, and fills the new one meanwhile.

mod error;
mod filled;
mod reading;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use error::CopyError;
pub use filled::LeftOut;
pub use reading::CopySource;

use self::reading::{AllRead, Reading};
use super::{CollectionsConfig, RedisSettings};
use crate::cpu::CpuPool;
use crate::redis::{FillError, Filling};
use crate::types::CollectionName;
use crate::verdicts::CollectionError;

/// How many chunks of documents may wait to be written.
const CHUNKS_WAITING: usize = 2;

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub documents: u64,
    pub left_out: LeftOut,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CopyProgress {
    /// How many documents were written, without their postings.
    Documents(u64),
    /// The share of the ids and postings that was written.
    Postings(f64),
}

/// Makes the collection `name` in the cluster `redis`, whole or not at all. Stops soon after `stop` is set. `tell`
/// receives the progress.
pub async fn copy(
    (config, redis, cpu): (&CollectionsConfig, &RedisSettings, CpuPool),
    source: CopySource,
    name: CollectionName,
    tell: &(dyn Fn(CopyProgress) + Sync),
    stop: &Arc<AtomicBool>,
) -> Result<Copied, CopyError> {
    let (settings, documents) = (source.settings(&config.default_settings), source.documents_at_most());
    let mut filling =
        Filling::begin((config, redis), name, settings.clone(), documents, (cpu, Arc::clone(stop))).await?;
    let (give, take) = mpsc::channel(CHUNKS_WAITING);
    let stopped = Arc::clone(stop);
    let reader = tokio::task::spawn_blocking(move || source.read(&settings, give, &stopped));
    let filled = fill(&mut filling, (take, reader), documents, tell).await;
    match filled {
        Ok(left_out) => Ok(Copied { documents: filling.documents(), left_out }),
        Err(error @ CopyError::Fill(FillError::Uncertain(_))) => Err(error),
        Err(cause) => {
            let data = if filling.abandon().await {
                "nothing was published, and the servers remove what was written"
            } else {
                "nothing was published; the cluster could not be told, so the servers remove what was written only \
                 about 40 seconds later"
            };
            Err(CopyError::Ended { cause: Box::new(cause), data })
        }
    }
}

async fn fill(
    filling: &mut Filling,
    (mut take, reader): (mpsc::Receiver<Reading>, JoinHandle<Result<AllRead, CopyError>>),
    documents: u64,
    tell: &(dyn Fn(CopyProgress) + Sync),
) -> Result<LeftOut, CopyError> {
    while let Some(chunk) = take.recv().await {
        filling.add(chunk, documents.saturating_sub(filling.documents())).await?;
        tell(CopyProgress::Documents(filling.documents()));
    }
    let AllRead { signatures, left_out } = reader.await.map_err(|_| CollectionError::closed())??;
    filling.publish(&signatures, &|share| tell(CopyProgress::Postings(share))).await?;
    Ok(left_out)
}
