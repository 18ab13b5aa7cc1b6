//! Finds the band keys that many documents share, with examples of these documents. The cause is often boilerplate, and
//! such keys slow lookups down.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::lookup::Lookup;
use super::records::Mentions;
use crate::engine::long_work::blocking;
use crate::index::FullBucket;
use crate::types::Seq;
use crate::verdicts::{HotBucket, Result};

/// In collections of up to this many documents, buckets of only a few documents are found too. This search reads every
/// posting.
const ALL_DOCUMENTS_MAX: u64 = 100_000;

/// Returns the fullest buckets, the fullest first. Buckets of up to eight documents are found only in collections of up
/// to 100,000 documents. The work keeps its turn until it ends, even if the client disconnects.
pub(crate) async fn buckets(lookup: &Arc<Lookup>, limit: usize, turn: OwnedMutexGuard<()>) -> Result<Vec<HotBucket>> {
    let lookup = Arc::clone(lookup);
    blocking(move || {
        let _turn = turn;
        let (_reading, view) = lookup.read();
        let all = lookup.counts().documents() <= ALL_DOCUMENTS_MAX;
        let fullest = lookup.index().fullest(limit, HotBucket::SAMPLE_MAX, all);
        let visible = |bucket: &FullBucket| -> Vec<Seq> {
            bucket.sample.iter().filter(|occupant| view.sees(occupant)).map(|occupant| occupant.seq).collect()
        };
        let sampled: Vec<Vec<Seq>> = fullest.iter().map(visible).collect();
        let mut mentions = Mentions::default();
        let missing = lookup.records().recall(&mut mentions, sampled.iter().flatten().copied(), true);
        lookup.records().load(&mut mentions, &missing, None, false)?;
        let named =
            |seqs: Vec<Seq>| seqs.into_iter().filter_map(|seq| Some(mentions.get(seq)?.identity.id.clone())).collect();
        let buckets = fullest.iter().zip(sampled).map(|(&FullBucket { band, key, documents, .. }, seqs)| HotBucket {
            band,
            key: key.0,
            documents: documents as u64,
            sample: named(seqs),
        });
        Ok(buckets.collect())
    })
    .await
}
