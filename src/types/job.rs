//! Jobs of a collection: work that continues after its request was answered, even across restarts.

use std::collections::BTreeMap;

use super::ids::{CollectionName, DocId};
use super::labels::Label;
use super::options::{OnDuplicate, OnExisting};
use super::places::{Seq, TimestampMs};

/// A job of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    DeleteLabel(LabelDeletion),
    Merge(Merge),
}

/// A deletion of all documents that have a label when the deletion is decided. From then on, no answer uses these
/// documents. They are removed from the disk afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelDeletion {
    /// The place of the deletion in the commit order, which is also its number.
    pub number: Seq,
    pub label: Label,
    /// When the deletion was decided.
    pub accepted: TimestampMs,
    /// When the last of the documents was removed from the disk.
    pub ended: Option<TimestampMs>,
    /// The number of documents to delete.
    pub documents: u64,
    /// The number of these documents that have been removed from the disk.
    pub removed: u64,
}

/// A merge of another collection into this one: each of its documents is inserted, in order of `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The place of the merge in the commit order, which is also its number.
    pub number: Seq,
    pub source: MergeSource,
    /// The last document on which a decision was made, as its `seq` in the source.
    pub after: Seq,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    /// When the merge was accepted.
    pub accepted: TimestampMs,
    pub ended: Option<TimestampMs>,
    /// Why the merge ended early.
    pub aborted: Option<String>,
    /// The number of documents by outcome. `refused` counts those that an insertion would have refused.
    pub outcomes: BTreeMap<String, u64>,
    /// The number of documents by verdict.
    pub verdicts: BTreeMap<String, u64>,
}

/// The collection that is merged into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeSource {
    pub name: CollectionName,
    /// When the source was created. It distinguishes the source from a later collection with the same name.
    pub created: TimestampMs,
    /// The last document to insert.
    pub through: Seq,
    /// The number of documents in the source when the merge was accepted.
    pub documents: u64,
}

/// The decision on one document of a merge.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The number of the merge.
    pub merge: Seq,
    /// The document's `seq` in the source.
    pub source: Seq,
    pub report: MergeReport,
}

/// The part of a merge's report about one document.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeReport {
    pub id: DocId,
    pub outcome: &'static str,
    /// `None` if the document was refused.
    pub verdict: Option<&'static str>,
    pub duplicate_of: Option<DocId>,
    pub similarity: Option<f64>,
    pub representative: Option<DocId>,
    /// Why the document was refused.
    pub error: Option<String>,
}

impl Job {
    pub fn number(&self) -> Seq {
        match self {
            Self::DeleteLabel(deletion) => deletion.number,
            Self::Merge(merge) => merge.number,
        }
    }

    pub fn accepted(&self) -> TimestampMs {
        match self {
            Self::DeleteLabel(deletion) => deletion.accepted,
            Self::Merge(merge) => merge.accepted,
        }
    }

    /// Returns the number of documents that the job concerns.
    pub fn documents(&self) -> u64 {
        match self {
            Self::DeleteLabel(deletion) => deletion.documents,
            Self::Merge(merge) => merge.source.documents,
        }
    }

    /// Returns when the job ended; `None` if it is running.
    pub fn ended(&self) -> Option<TimestampMs> {
        match self {
            Self::DeleteLabel(deletion) => deletion.ended,
            Self::Merge(merge) => merge.ended,
        }
    }

    pub fn is_running(&self) -> bool {
        self.ended().is_none()
    }
}

impl LabelDeletion {
    /// Returns the number of documents that are still on disk.
    pub fn left(&self) -> u64 {
        self.documents - self.removed
    }
}

impl Merge {
    /// Returns the merge after the decision on one more document.
    pub fn with(mut self, merged: &Merged) -> Self {
        let Merged { source, report: MergeReport { outcome, verdict, .. }, .. } = merged;
        self.after = self.after.max(*source);
        *self.outcomes.entry((*outcome).to_owned()).or_default() += 1;
        if let Some(verdict) = verdict {
            *self.verdicts.entry((*verdict).to_owned()).or_default() += 1;
        }
        self
    }

    /// Returns the number of documents on which a decision was made.
    pub fn merged(&self) -> u64 {
        self.outcomes.values().sum()
    }
}
