//! What `hapax reconcile` has done, and what it has found.

use crate::types::{DocId, Seq};

/// What was done to a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The stored documents that were looked at.
    pub documents: u64,
    /// The postings that were added.
    pub postings: u64,
    /// The ids that were added.
    pub ids: u64,
    /// The postings and ids that led to no document, and were removed.
    pub dangling: u64,
    /// The comparisons that were left out because too many documents share bands.
    pub left_out: u64,
}

/// Two stored documents of which only one should be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptTwice {
    pub id: DocId,
    pub seq: Seq,
    pub other: DocId,
    pub other_seq: Seq,
    /// How similar they are. `None`: they have the same id.
    pub similarity: Option<f64>,
}

/// What is told while a collection is reconciled.
pub enum Told<'a> {
    /// So many of all document numbers were looked at.
    Progress {
        done: u64,
        all: u64,
    },
    Found(&'a KeptTwice),
}
