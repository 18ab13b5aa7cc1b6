//! Which band keys many documents share, and who they are: the boilerplate that lookups wade through.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::records::Heads;
use super::{Collection, Result};
use crate::index::Bucket;
use crate::types::{DocId, Seq};

/// Ids named of each bucket.
const SAMPLE: usize = 10;
/// In collections of up to so many documents, buckets of a few are found too: it takes a look at every posting.
const ALL_DOCUMENTS_MAX: i64 = 100_000;

/// Documents that share a band key.
#[derive(Clone, Debug)]
pub struct HotBucket {
    /// Which band, from 0.
    pub band: u32,
    /// The band key.
    pub key: u64,
    /// How many documents.
    pub documents: u64,
    /// Some of them, old and new.
    pub sample: Vec<DocId>,
}

impl HotBucket {
    /// Most bytes of its JSON without the ids.
    pub const OWN_BYTES: usize = 128;
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = Self::OWN_BYTES + SAMPLE * (3 + super::ID_JSON_BYTES_MAX);
}

impl Collection {
    /// The fullest buckets, the fullest first. Those of up to eight documents are found only in collections of up to
    /// 100,000.
    pub async fn buckets(self: &Arc<Self>, limit: usize) -> Result<Vec<HotBucket>> {
        self.blocking(move |collection| {
            let (_reading, view) = collection.read();
            let bands = Arc::clone(&collection.live.read().bands);
            let all = collection.documents.load(Ordering::Relaxed) <= ALL_DOCUMENTS_MAX;
            let fullest = bands.fullest(&collection.arena, limit, SAMPLE, all);
            let visible = |bucket: &Bucket| -> Vec<Seq> {
                let seen = bucket.sample.iter().filter_map(|&slot| collection.arena.peek(slot));
                seen.filter(|seen| view.sees(seen)).map(|seen| seen.seq).collect()
            };
            let sampled: Vec<Vec<Seq>> = fullest.iter().map(visible).collect();
            let mut heads = Heads::default();
            let missing = collection.records.recall(&mut heads, sampled.iter().flatten().copied());
            collection.records.load(&mut heads, &missing, None)?;
            let named = |seqs: Vec<Seq>| seqs.into_iter().filter_map(|seq| Some(heads.get(seq)?.id.clone())).collect();
            Ok(fullest
                .iter()
                .zip(sampled)
                .map(|(&Bucket { band, key, documents, .. }, seqs)| HotBucket {
                    band,
                    key: key.0,
                    documents: documents as u64,
                    sample: named(seqs),
                })
                .collect())
        })
        .await
    }
}
