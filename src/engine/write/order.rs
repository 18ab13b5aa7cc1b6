//! The commit order: the state that the decision lock guards, and the queue for the disk.
//! Under the lock there is no I/O, no await and no wait for room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::clusters::{Clusters, Left};
use super::id_turn::WriteTurn;
use crate::engine::jobs::Part;
use crate::engine::lookup::Lookup;
use crate::engine::memory_budget::BudgetShare;
use crate::index::{LabelSet, Place};
use crate::store::{Change, Changeable, StoredStatistics};
use crate::types::{GoldenPair, Job, Merged, Seq, TimestampMs};
use crate::verdicts::{CollectionError, Result, WriteFailure};

/// Everything that the decision lock guards, in addition to the right to change the index.
pub(crate) struct Order {
    /// The last `seq` assigned.
    last: Seq,
    /// The work that the committer has not taken yet.
    queue: VecDeque<Work>,
    /// The length of the queue at which the committer wants to be woken.
    wake_at: usize,
    /// Whether the committer wants to be woken by a write that is not patient.
    wake_by_others: bool,
    clusters: Clusters,
    /// The decided labels of documents whose new labels are not on disk yet.
    relabelled: HashMap<Place, LabelSet>,
    /// True once the collection takes no more work.
    closed: bool,
    /// The reason for refusing writes until the file is opened again: an earlier write may or may not be on disk.
    refused: Option<String>,
    /// The collection's share of the memory budget.
    memory: BudgetShare,
}

/// An entry of the committer's queue.
pub(super) enum Work {
    /// A decision about a document.
    Write(QueuedWrite),
    /// A write that has a transaction of its own.
    Alone {
        write: Alone,
        /// Receives the outcome of the write.
        answer: oneshot::Sender<Result<()>>,
    },
    /// Last-seen times. No answer to a client depends on them.
    LastSeen(LastSeenTimes),
}

/// A write that is not a decision about a document.
pub(super) enum Alone {
    Settings(Changeable),
    Golden(Arc<Vec<GoldenPair>>),
    /// Removes from the disk a part of the documents that a deletion by label must still remove.
    RemoveDoomed(Arc<Part>),
    Statistics(Arc<Vec<StoredStatistics>>),
    /// The new state of a job.
    Job(Box<Job>),
    /// Forgets reports of a job that has ended, or the job itself if it has no report left.
    ForgetJob(Seq),
}

/// Last-seen times on their way to the disk.
pub(super) struct LastSeenTimes {
    pub times: Vec<(Seq, TimestampMs)>,
    /// Receives the outcome of the write.
    pub answer: oneshot::Sender<Result<()>>,
}

/// A decision on its way to the disk. Dropping it lets the next operation on the id begin.
pub(super) struct QueuedWrite {
    /// The change to write. `None` for an answer that only has to wait for earlier decisions.
    pub change: Option<Change>,
    /// The report of a merge about the document. It is written together with the change.
    pub merged: Option<Arc<Merged>>,
    /// The effect on the index.
    pub step: Step,
    /// The last `seq` that was assigned when the decision was made.
    pub at: Seq,
    /// Whether the decision may wait longer for other writes that share its transaction.
    pub patient: bool,
    /// Receives the outcome of the write.
    pub answer: oneshot::Sender<Result<()>>,
    /// Released once the decision has been answered. `None` if the decision is not about a single id.
    pub _turn: Option<WriteTurn>,
}

/// An effect on the index: finished once it is durable, or undone if the disk refuses it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    None,
    /// A document was added, and may have replaced another.
    Added {
        place: Place,
        linked: bool,
        /// The document that it replaced, and how that document left its cluster.
        replaced: Option<(Place, Left)>,
    },
    Removed {
        place: Place,
        /// How it left its cluster.
        left: Left,
    },
    /// A document got other metadata or labels.
    Updated {
        seq: Seq,
        /// How its labels change. `None` if they stay the same.
        labels: Option<Relabelling>,
    },
    /// Documents were deleted by label.
    Doomed(Arc<DoomedDocuments>),
    /// A merge with this number begins.
    BegunMerge(Seq),
}

/// The documents that a deletion by label removes from the index.
#[derive(Debug)]
pub(super) struct DoomedDocuments {
    /// The number of the deletion in the list of jobs, which is also its position in the commit order.
    pub number: Seq,
    /// The documents in order of `seq`, with their labels as decided.
    pub documents: Vec<(Seq, Place, LabelSet)>,
    /// How the documents left their clusters, the newest document first. Documents without a cluster are left out.
    pub left: Vec<Left>,
}

/// A change of a document's labels that is not on disk yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relabelling {
    pub place: Place,
    /// The labels that the document had, as decided.
    pub from: LabelSet,
    /// The new labels of the document, which are held for it.
    pub to: LabelSet,
}

impl Relabelling {
    /// Counts the document for its new labels instead of its former ones. Call this when the change is decided.
    pub(super) fn decided(&self, lookup: &Lookup, order: &mut Order) {
        order.relabelled.insert(self.place, self.to);
        lookup.index().count_labels(self.from, false);
        lookup.index().count_labels(self.to, true);
    }

    /// Undoes [`Self::decided`].
    pub(super) fn undone(&self, lookup: &Lookup, order: &mut Order) {
        order.relabelled.remove(&self.place);
        lookup.index().count_labels(self.to, false);
        lookup.index().count_labels(self.from, true);
        lookup.index().release_labels(self.to);
    }

    /// Gives the document its new labels, once they are on disk.
    pub(super) fn published(&self, lookup: &Lookup, order: &mut Order) {
        order.relabelled.remove(&self.place);
        lookup.index().set_labels(self.place, self.to);
    }
}

impl Step {
    /// Returns how the documents that this step removes left their clusters.
    pub(super) fn left(&self) -> &[Left] {
        match self {
            Self::None | Self::Updated { .. } | Self::Added { replaced: None, .. } | Self::BegunMerge(_) => &[],
            Self::Added { replaced: Some((_, left)), .. } | Self::Removed { left, .. } => std::slice::from_ref(left),
            Self::Doomed(doomed) => &doomed.left,
        }
    }
}

impl Work {
    /// Returns whether this entry needs a transaction.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Write(write) => write.change.is_some() || write.merged.is_some(),
            Self::Alone { .. } | Self::LastSeen(_) => true,
        }
    }

    /// Returns whether this entry may wait longer for other entries that share its transaction.
    fn is_patient(&self) -> bool {
        match self {
            Self::Write(write) => write.patient,
            Self::LastSeen(_) => true,
            Self::Alone { .. } => false,
        }
    }
}

impl Order {
    /// Makes the order of a collection that has just been opened.
    pub(crate) fn new(last: Seq, clusters: Clusters, memory: BudgetShare) -> Self {
        Self {
            last,
            queue: VecDeque::new(),
            wake_at: 1,
            wake_by_others: false,
            clusters,
            relabelled: HashMap::new(),
            closed: false,
            refused: None,
            memory,
        }
    }

    /// Returns the last `seq` assigned.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    /// Returns the `seq` that [`Self::next`] will assign.
    pub(super) fn upcoming(&self) -> Seq {
        Seq(self.last.0 + 1)
    }

    /// Assigns the next `seq`.
    pub(super) fn next(&mut self) -> Seq {
        self.last = self.upcoming();
        self.last
    }

    pub(super) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    pub(super) fn clusters_mut(&mut self) -> &mut Clusters {
        &mut self.clusters
    }

    /// Returns the decided labels of documents whose new labels are not on disk yet.
    pub(super) fn relabelled(&self) -> &HashMap<Place, LabelSet> {
        &self.relabelled
    }

    pub(super) fn memory_mut(&mut self) -> &mut BudgetShare {
        &mut self.memory
    }

    /// Stops taking work.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Stops taking writes until the file is opened again.
    pub(super) fn refuse(&mut self, why: String) {
        self.refused = Some(why);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Returns an error if writes are refused or the collection is closed.
    pub(super) fn open(&self) -> Result<()> {
        match &self.refused {
            Some(detail) => Err(CollectionError::WriteFailed { detail: detail.clone(), why: WriteFailure::Uncertain }),
            None if self.closed => Err(CollectionError::closed()),
            None => Ok(()),
        }
    }

    /// Adds an entry to the committer's queue. Returns whether the committer must be woken.
    pub(super) fn push(&mut self, work: Work) -> bool {
        let wakes = self.wake_by_others && !work.is_patient();
        self.queue.push_back(work);
        wakes || self.queue.len() >= self.wake_at
    }

    /// Sets the length of the queue at which the committer wants to be woken, and whether a write that is not patient
    /// wakes it earlier.
    pub(super) fn wake_at(&mut self, length: usize, by_others: bool) {
        (self.wake_at, self.wake_by_others) = (length, by_others);
    }

    /// Returns whether all entries of the committer's queue are patient.
    pub(super) fn is_patient(&self) -> bool {
        self.queue.iter().all(Work::is_patient)
    }

    /// Returns the committer's queue.
    pub(super) fn queue(&mut self) -> &mut VecDeque<Work> {
        &mut self.queue
    }
}
