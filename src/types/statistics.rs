//! Counts of documents that clients sent to insert, by outcome.

use super::verdict::{Outcome, Verdict, VerdictKind};

/// Counts of the documents that an insertion decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub documents: u64,
    /// Documents with the verdict `unique`. This count and the next three leave out unchanged documents.
    pub unique: u64,
    pub near_duplicates: u64,
    pub exact_duplicates: u64,
    pub empty: u64,
    /// Documents whose id already had the same content.
    pub unchanged: u64,
    /// The size of all contents as they were sent, in bytes. Signatures that clients sent are not counted.
    pub bytes: u64,
    /// The size of the contents that were not stored, because they were duplicates or unchanged.
    pub bytes_saved: u64,
}

impl Statistics {
    /// Returns the counts with one more document, whose content has `bytes` bytes.
    pub fn with(mut self, verdict: &Verdict, bytes: u64) -> Self {
        self.documents += 1;
        self.bytes += bytes;
        let unchanged = matches!(verdict.outcome, Outcome::Unchanged | Outcome::Updated);
        let count = match verdict.kind {
            _ if unchanged => &mut self.unchanged,
            VerdictKind::Unique => &mut self.unique,
            VerdictKind::NearDuplicate => &mut self.near_duplicates,
            VerdictKind::ExactDuplicate => &mut self.exact_duplicates,
            VerdictKind::Empty => &mut self.empty,
        };
        *count += 1;
        if unchanged || verdict.kind.is_duplicate() && !verdict.stored {
            self.bytes_saved += bytes;
        }
        self
    }
}
