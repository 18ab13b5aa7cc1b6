//! Band keys that many documents share.

use serde::Serialize;

use crate::collection::HotBucket;

/// The fullest buckets.
#[derive(Debug, Serialize)]
pub struct Buckets {
    buckets: Vec<BucketBody>,
}

#[derive(Debug, Serialize)]
struct BucketBody {
    band: u32,
    key: String,
    documents: u64,
    sample: Vec<String>,
}

impl From<Vec<HotBucket>> for Buckets {
    fn from(buckets: Vec<HotBucket>) -> Self {
        let body = |HotBucket { band, key, documents, sample }: HotBucket| BucketBody {
            band,
            key: format!("{key:016x}"),
            documents,
            sample: sample.iter().map(|id| id.as_str().to_owned()).collect(),
        };
        Self { buckets: buckets.into_iter().map(body).collect() }
    }
}
