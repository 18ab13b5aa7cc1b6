//! Jobs of a collection: work that goes on after its request was answered, through restarts.

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

/// A deletion of all documents that had a label when it was decided. From then on no answer rests on them. They are
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

/// A merge of another collection into this one: each of its documents is inserted, in order of `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Its place in the commit order, which also is its number.
    pub number: Seq,
    pub source: MergeSource,
    /// The last document of the source that was decided on.
    pub after: Seq,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    /// When it was accepted.
    pub accepted: TimestampMs,
    pub ended: Option<TimestampMs>,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// How many documents had each outcome. `refused` counts those that an insertion would have refused.
    pub outcomes: BTreeMap<String, u64>,
    /// How many documents had each verdict.
    pub verdicts: BTreeMap<String, u64>,
}

/// The collection that is merged into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeSource {
    pub name: CollectionName,
    /// When it was created, which tells it from a later one of the same name.
    pub created: TimestampMs,
    /// The last document to insert.
    pub through: Seq,
    /// How many documents it had when the merge was accepted.
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

/// The report of a merge on a document.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeReport {
    pub id: DocId,
    pub outcome: &'static str,
    /// `None` if it was refused.
    pub verdict: Option<&'static str>,
    pub duplicate_of: Option<DocId>,
    pub similarity: Option<f64>,
    pub representative: Option<DocId>,
    /// Why it was refused.
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

    /// Returns how many documents it concerns.
    pub fn documents(&self) -> u64 {
        match self {
            Self::DeleteLabel(deletion) => deletion.documents,
            Self::Merge(merge) => merge.source.documents,
        }
    }

    /// Returns when it ended; `None` if it runs.
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
    /// Returns how many documents are still on disk.
    pub fn left(&self) -> u64 {
        self.documents - self.removed
    }
}

impl Merge {
    /// Returns it with another document that was decided on.
    pub fn with(mut self, merged: &Merged) -> Self {
        let Merged { source, report: MergeReport { outcome, verdict, .. }, .. } = merged;
        self.after = self.after.max(*source);
        *self.outcomes.entry((*outcome).to_owned()).or_default() += 1;
        if let Some(verdict) = verdict {
            *self.verdicts.entry((*verdict).to_owned()).or_default() += 1;
        }
        self
    }

    /// Returns how many documents were decided on.
    pub fn merged(&self) -> u64 {
        self.outcomes.values().sum()
    }
}
