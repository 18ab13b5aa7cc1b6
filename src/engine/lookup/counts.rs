//! `DocumentCounts`: how many documents and links a collection has on disk.

use std::sync::atomic::{AtomicI64, Ordering};

/// The numbers of documents on disk.
#[derive(Debug, Default)]
pub(crate) struct DocumentCounts {
    documents: AtomicI64,
    linked: AtomicI64,
}

impl DocumentCounts {
    /// Starts with this number of documents, links included, and this number of links.
    pub(crate) fn new(documents: i64, linked: i64) -> Self {
        Self { documents: documents.into(), linked: linked.into() }
    }

    /// Adds to both counts. Negative numbers subtract.
    pub(crate) fn add(&self, documents: i64, linked: i64) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.linked.fetch_add(linked, Ordering::Relaxed);
    }

    /// Returns the number of documents, links included.
    pub(crate) fn documents(&self) -> u64 {
        counted(&self.documents)
    }

    pub(crate) fn linked(&self) -> u64 {
        counted(&self.linked)
    }
}

/// Reads a count. A negative count is a bug in hapax: only counted documents are ever subtracted.
fn counted(count: &AtomicI64) -> u64 {
    let count = count.load(Ordering::Relaxed);
    debug_assert!(count >= 0, "{count} documents");
    count.max(0) as u64
}
