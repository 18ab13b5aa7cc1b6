//! The commit order: what the decision lock guards, and what waits for the disk.
//! Under the lock there is no I/O, no await and no wait for room.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::clusters::{Clusters, Left};
use super::turn::WriteTurn;
use crate::engine::memory_budget::BudgetShare;
use crate::index::Place;
use crate::store::{Change, Changeable};
use crate::types::{Seq, TimestampMs};
use crate::verdicts::{CollectionError, Result, WriteFailure};

/// All that the decision lock guards, beside the right to change the index.
pub(crate) struct Order {
    /// The last `seq` given out.
    last: Seq,
    /// What the committer has not taken yet.
    queue: VecDeque<Work>,
    clusters: Clusters,
    /// No more work is taken.
    closed: bool,
    /// Why no write is taken until the file is opened again: an earlier one may or may not be on disk.
    refused: Option<String>,
    /// What the collection takes of the memory budget.
    memory: BudgetShare,
}

/// What waits for the committer, in order.
pub(super) enum Work {
    /// A decision about a document.
    Write(QueuedWrite),
    Settings {
        changeable: Changeable,
        /// Told when it is on disk.
        answer: oneshot::Sender<Result<()>>,
    },
    /// When documents were last seen. No answer to a client rests on it.
    LastSeen(LastSeenTimes),
}

/// When documents were last seen, on its way to the disk.
pub(super) struct LastSeenTimes {
    pub times: Vec<(Seq, TimestampMs)>,
    /// Told when it is on disk.
    pub answer: oneshot::Sender<Result<()>>,
}

/// A decision on its way to the disk. Dropping it lets the next operation on the id begin.
pub(super) struct QueuedWrite {
    /// What to write; nothing for an answer that only has to wait for those before it.
    pub change: Option<Change>,
    /// What it did to the index.
    pub step: Step,
    /// The last `seq` given out when it was made.
    pub at: Seq,
    /// Told when it is on disk.
    pub answer: oneshot::Sender<Result<()>>,
    /// Given back when it has been answered.
    pub _turn: WriteTurn,
}

/// An effect on the index, to be finished when durable or undone when not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    None,
    /// A document came, perhaps in place of another.
    Added {
        place: Place,
        /// Whether it is a link.
        linked: bool,
        /// What it replaces, and how that left its cluster.
        replaced: Option<(Place, Left)>,
    },
    Removed {
        place: Place,
        /// How it left its cluster.
        left: Left,
    },
    /// A document's metadata changes.
    Updated {
        seq: Seq,
    },
}

impl Step {
    /// How a document that goes with it leaves its cluster.
    pub(super) fn left(&self) -> Option<Left> {
        match *self {
            Self::None | Self::Updated { .. } | Self::Added { replaced: None, .. } => None,
            Self::Added { replaced: Some((_, left)), .. } | Self::Removed { left, .. } => Some(left),
        }
    }
}

impl Work {
    /// Whether it takes a transaction.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Write(write) => write.change.is_some(),
            Self::Settings { .. } | Self::LastSeen(_) => true,
        }
    }
}

impl Order {
    /// Of a collection that has just been opened.
    pub(crate) fn new(last: Seq, clusters: Clusters, memory: BudgetShare) -> Self {
        Self { last, queue: VecDeque::new(), clusters, closed: false, refused: None, memory }
    }

    /// The last `seq` given out.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    /// The `seq` that [`Self::next`] will give out.
    pub(super) fn upcoming(&self) -> Seq {
        Seq(self.last.0 + 1)
    }

    /// Gives out a `seq`.
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

    pub(super) fn memory_mut(&mut self) -> &mut BudgetShare {
        &mut self.memory
    }

    /// Takes no more work.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes no write until the file is opened again.
    pub(super) fn refuse(&mut self, why: String) {
        self.refused = Some(why);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Refuses a write that nothing would come of.
    pub(super) fn open(&self) -> Result<()> {
        match &self.refused {
            Some(detail) => Err(CollectionError::WriteFailed { detail: detail.clone(), why: WriteFailure::Uncertain }),
            None if self.closed => Err(CollectionError::closed()),
            None => Ok(()),
        }
    }

    /// What waits for the committer.
    pub(super) fn queue(&mut self) -> &mut VecDeque<Work> {
        &mut self.queue
    }
}
