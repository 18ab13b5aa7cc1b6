//! An explanation of a verdict, for clients that ask for one.

use std::time::Duration;

use super::ids::{DocId, ID_JSON_BYTES_MAX};
use super::similarity::Similarity;

/// The largest possible size of an explanation as JSON without its buckets and documents, in bytes.
const OWN_BYTES: usize = 1024;
/// The largest possible size of a bucket as JSON, in bytes.
const BUCKET_BYTES: usize = 64;
/// The largest possible size of a document as JSON without its id, in bytes.
const BELOW_BYTES: usize = 160;

/// The documents and buckets that a lookup read.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub bands: u32,
    pub rows: u32,
    /// The number of bands whose bucket contains a document.
    pub bands_hit: u32,
    /// The fullest of these buckets, in the order of the bands; at most [`Explanation::BUCKETS_MAX`].
    pub buckets: Vec<BucketLook>,
    /// The documents found by at least one band. Documents with equal signatures count as one.
    pub found: u64,
    pub hidden: Hidden,
    /// The most similar of the compared documents that are below the threshold, best first.
    pub below: Vec<Below>,
}

/// A bucket that the document falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLook {
    /// The number of the band, from 0.
    pub band: u32,
    pub documents: u64,
}

/// The numbers of postings and documents that were not read, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Postings beyond the limit on reading one bucket. A document may be counted once for each band.
    pub by_bucket: u64,
    /// Candidates beyond the limit on comparing.
    pub by_candidates: u64,
    /// Documents beyond the limits on reading shingles or texts.
    pub by_exact_reads: u64,
    /// Documents that may or may not be on disk.
    pub by_doubt: u64,
}

/// A document below the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Below {
    pub id: DocId,
    pub similarity: Similarity,
}

/// The durations of the parts of a lookup. They are stored in few bytes, because each verdict has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupTimes {
    probe_nanos: u32,
    verify_nanos: u32,
}

impl LookupTimes {
    pub fn new(probe: Duration, verify: Duration) -> Self {
        let nanos = |took: Duration| u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        Self { probe_nanos: nanos(probe), verify_nanos: nanos(verify) }
    }

    /// Returns how long reading the buckets took.
    pub fn probe(self) -> Duration {
        Duration::from_nanos(self.probe_nanos.into())
    }

    /// Returns how long comparing the candidates took.
    pub fn verify(self) -> Duration {
        Duration::from_nanos(self.verify_nanos.into())
    }
}

impl Explanation {
    pub const BUCKETS_MAX: usize = 64;
    pub const BELOW_MAX: usize = 5;
    /// The largest possible size of any explanation as JSON, in bytes.
    pub const BYTES_MAX: usize =
        OWN_BYTES + Self::BUCKETS_MAX * BUCKET_BYTES + Self::BELOW_MAX * (BELOW_BYTES + ID_JSON_BYTES_MAX);

    /// Removes the lists of the explanation.
    pub(crate) fn shorten(&mut self) {
        self.buckets.clear();
        self.below.clear();
    }

    /// Returns the largest possible size of this explanation as JSON, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let below = self.below.iter().map(|below| BELOW_BYTES + below.id.json_bytes()).sum::<usize>();
        OWN_BYTES + self.buckets.len() * BUCKET_BYTES + below
    }
}
