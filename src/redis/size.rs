//! How many documents a collection has, as the cluster has counted them, and whether its groups of postings are large.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::telemetry::names::{self, label};
use crate::types::CollectionName;

/// From this mean number of postings in a group on, the largest groups nearly have 512 (`hash-max-listpack-entries`). A
/// hash with more takes several times as much memory for each posting.
const POSTINGS_MANY: f64 = 400.0;

/// The size of one collection.
#[derive(Debug)]
pub(super) struct Size {
    documents: AtomicU64,
    /// How many groups the postings of a band have.
    groups: u64,
    /// Whether the log has said that the groups are large.
    said_large: AtomicBool,
}

impl Size {
    pub(super) fn new(groups: u64) -> Self {
        Self { documents: AtomicU64::new(0), groups, said_large: AtomicBool::new(false) }
    }

    pub(super) fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Takes a new count. Tells the log once, before the groups become so large that they take much more memory.
    pub(super) fn set(&self, documents: u64, name: &CollectionName) {
        self.documents.store(documents, Ordering::Relaxed);
        let postings_per_group = self.postings_per_group();
        if postings_per_group >= POSTINGS_MANY && !self.said_large.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                collection = %name,
                postings_per_group,
                "the collection has far more documents than the redis.documents_expected with which it was created; if \
                 it grows further, each posting will take several times the memory; set hash-max-listpack-entries of \
                 all nodes to four times postings_per_group, or create another collection with a higher \
                 redis.documents_expected"
            );
        }
    }

    pub(super) fn observe(&self, name: &CollectionName) {
        let documents = self.documents() as f64;
        metrics::gauge!(names::DOCUMENTS, label::COLLECTION => name.to_string()).set(documents);
        let mean = self.postings_per_group();
        metrics::gauge!(names::REDIS_POSTINGS_PER_GROUP, label::COLLECTION => name.to_string()).set(mean);
    }

    /// Returns the mean number of postings in a group.
    fn postings_per_group(&self) -> f64 {
        self.documents() as f64 / self.groups as f64
    }
}
