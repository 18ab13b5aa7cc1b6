//! The place of an insertion in a merge, and the report of its decision.

use std::sync::Arc;

use crate::types::{DocId, MergeReport, Merged, Seq, Verdict};

/// The place of an insertion in a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergePlace {
    /// The number of the merge.
    pub merge: Seq,
    /// The document's `seq` in the other collection.
    pub source: Seq,
    /// How often decisions had been undone when the step of this document began.
    pub undone: u64,
}

impl MergePlace {
    /// Returns the report of a decision.
    pub(super) fn decided(self, id: &DocId, verdict: &Verdict) -> Arc<Merged> {
        self.merged(MergeReport {
            id: id.clone(),
            outcome: verdict.outcome.as_str(),
            verdict: Some(verdict.kind.as_str()),
            duplicate_of: verdict.duplicate_of.clone(),
            similarity: verdict.similarity,
            representative: verdict.representative.clone(),
            error: None,
        })
    }

    /// Returns the report of a document that was refused.
    pub(super) fn refused(self, id: &DocId, error: &str) -> Arc<Merged> {
        self.merged(MergeReport {
            id: id.clone(),
            outcome: "refused",
            verdict: None,
            duplicate_of: None,
            similarity: None,
            representative: None,
            error: Some(error.to_owned()),
        })
    }

    fn merged(self, report: MergeReport) -> Arc<Merged> {
        Arc::new(Merged { merge: self.merge, source: self.source, report })
    }
}
