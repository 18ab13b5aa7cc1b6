//! A deletion of all documents with a label.

use super::labels::Label;
use super::places::{Seq, TimestampMs};

/// A deletion of the documents that had a label when it was decided. From then on no answer rests on them; they are
/// removed from the disk afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelDeletion {
    /// Its place in the commit order, which also is its number.
    pub number: Seq,
    pub label: Label,
    /// When it was decided.
    pub accepted: TimestampMs,
    /// When the last of its documents was removed from the disk.
    pub ended: Option<TimestampMs>,
    /// How many documents it deletes.
    pub documents: u64,
    /// How many of them have been removed from the disk.
    pub removed: u64,
}

impl LabelDeletion {
    /// Returns how many documents are still on disk.
    pub fn left(&self) -> u64 {
        self.documents - self.removed
    }
}
