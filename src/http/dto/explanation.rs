//! How hapax reached a verdict, as JSON.

use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::http::stages::Stage;
use crate::types::{Below, BucketLook, Explanation, Hidden, ratio};

/// How hapax reached a verdict.
#[derive(Debug, Serialize)]
pub struct ExplanationBody {
    /// The time of each stage in microseconds, in the order of the stages.
    #[serde(serialize_with = "stages")]
    stages_us: Vec<(&'static str, Duration)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup: Option<LookupBody>,
}

/// The details of one lookup.
#[derive(Debug, Serialize)]
pub(super) struct LookupBody {
    bands: u32,
    rows: u32,
    bands_hit: u32,
    buckets: Vec<BucketBody>,
    found: u64,
    unread: UnreadBody,
    below_threshold: Vec<BelowBody>,
}

#[derive(Debug, Serialize)]
struct BucketBody {
    band: u32,
    documents: u64,
}

#[derive(Debug, Serialize)]
struct UnreadBody {
    bucket: u64,
    candidates: u64,
    exact_reads: u64,
    doubt: u64,
}

#[derive(Debug, Serialize)]
struct BelowBody {
    id: String,
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
}

impl ExplanationBody {
    pub fn new(stages: impl Iterator<Item = (Stage, Duration)>, explanation: Option<Explanation>) -> Self {
        let stages_us = stages.map(|(stage, took)| (stage.as_str(), took)).collect();
        Self { stages_us, lookup: explanation.map(LookupBody::from) }
    }
}

impl From<Explanation> for LookupBody {
    fn from(explanation: Explanation) -> Self {
        let Explanation { bands, rows, bands_hit, buckets, found, hidden, below: documents } = explanation;
        let Hidden { by_bucket, by_candidates, by_exact_reads, by_doubt } = hidden;
        let bucket = |BucketLook { band, documents }| BucketBody { band, documents };
        let below = |Below { id, similarity }| BelowBody {
            id: id.as_str().to_owned(),
            similarity: ratio(similarity.value),
            low: ratio(similarity.low),
            high: ratio(similarity.high),
            method: similarity.method.as_str(),
        };
        Self {
            bands,
            rows,
            bands_hit,
            buckets: buckets.into_iter().map(bucket).collect(),
            found,
            unread: UnreadBody {
                bucket: by_bucket,
                candidates: by_candidates,
                exact_reads: by_exact_reads,
                doubt: by_doubt,
            },
            below_threshold: documents.into_iter().map(below).collect(),
        }
    }
}

fn stages<S: Serializer>(stages: &[(&'static str, Duration)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(stages.len()))?;
    for (stage, took) in stages {
        map.serialize_entry(stage, &((took.as_nanos() as f64 / 100.0).round() / 10.0))?;
    }
    map.end()
}
