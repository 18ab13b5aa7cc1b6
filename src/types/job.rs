//! Jobs of a collection: work that goes on after its request was answered, through restarts.

use std::collections::BTreeMap;

use super::ids::CollectionName;
use super::labels::Label;
use super::options::{OnDuplicate, OnExisting};
use super::places::{Seq, TimestampMs};

/// A job of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    DeleteLabel(LabelDeletion),
    Merge(Merge),
}

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

/// A merge of another collection into this one: each of its documents is inserted, in order of `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Its place in the commit order, which also is its number.
    pub number: Seq,
    /// The other collection.
    pub from: CollectionName,
    /// When the other collection was created, which tells it from a later one of the same name.
    pub from_created: TimestampMs,
    /// The last document to insert.
    pub through: Seq,
    /// The last document that was decided on.
    pub after: Seq,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    /// When it was accepted.
    pub accepted: TimestampMs,
    pub ended: Option<TimestampMs>,
    /// Why it ended early.
    pub aborted: Option<String>,
    /// How many documents the other collection had when it was accepted.
    pub documents: u64,
    /// How many documents had each outcome. `refused` counts those that an insertion would have refused.
    pub outcomes: BTreeMap<String, u64>,
    /// How many documents had each verdict.
    pub verdicts: BTreeMap<String, u64>,
}

/// The decision on one document of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The number of the merge.
    pub merge: Seq,
    /// The document's `seq` in the other collection.
    pub source: Seq,
    pub outcome: &'static str,
    /// `None` if it was refused.
    pub verdict: Option<&'static str>,
    /// The report as JSON.
    pub report: String,
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

    /// Returns whether it has not ended.
    pub fn is_running(&self) -> bool {
        match self {
            Self::DeleteLabel(deletion) => deletion.ended.is_none(),
            Self::Merge(merge) => merge.ended.is_none(),
        }
    }
}

impl LabelDeletion {
    /// Returns how many documents are still on disk.
    pub fn left(&self) -> u64 {
        self.documents - self.removed
    }
}

impl Merge {
    /// Counts a document that was decided on.
    pub fn count(&mut self, merged: &Merged) {
        self.after = self.after.max(merged.source);
        *self.outcomes.entry(merged.outcome.to_owned()).or_default() += 1;
        if let Some(verdict) = merged.verdict {
            *self.verdicts.entry(verdict.to_owned()).or_default() += 1;
        }
    }

    /// Returns how many documents were decided on.
    pub fn merged(&self) -> u64 {
        self.outcomes.values().sum()
    }
}
