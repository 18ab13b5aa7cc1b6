//! Band keys that many documents share, as JSON.

use serde::Serialize;

use crate::collections::HotBucket;
use crate::types::DocId;

#[derive(Debug, Serialize)]
pub struct BucketList {
    buckets: Vec<BucketBody>,
}

#[derive(Debug, Serialize)]
struct BucketBody {
    band: u32,
    key: String,
    documents: u64,
    sample: Vec<String>,
}

impl BucketList {
    /// Makes a list of at most `bytes_max` bytes of JSON. Sample ids that do not fit are left out.
    pub fn new(buckets: Vec<HotBucket>, bytes_max: usize) -> Self {
        let mut left = bytes_max.saturating_sub(buckets.len() * HotBucket::OWN_BYTES);
        let mut fits = |id: &DocId| {
            let bytes = 3 + id.json_bytes();
            let fits = bytes <= left;
            left = if fits { left - bytes } else { 0 };
            fits
        };
        let body = |HotBucket { band, key, documents, mut sample }: HotBucket| BucketBody {
            band,
            key: format!("{key:016x}"),
            documents,
            sample: sample.drain(..).filter(&mut fits).map(|id| id.as_str().to_owned()).collect(),
        };
        Self { buckets: buckets.into_iter().map(body).collect() }
    }
}
