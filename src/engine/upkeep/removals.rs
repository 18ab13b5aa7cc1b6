//! Removes documents from the disk after a deletion by label, in the background. Each step removes a part: a few
//! hundred documents. A part is removed once its documents have left memory, because a reader may need their records
//! until then. If too many jobs have ended, also forgets some of them, with their reports (`engine/jobs.rs` chooses the
//! jobs).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use parking_lot::Mutex;

use super::rounds::Rounds;
use crate::engine::jobs::Part;
use crate::engine::write::Writes;
use crate::types::CollectionName;
use crate::verdicts::CollectionError;

/// The pause if no collection has anything to remove.
const IDLE: Duration = Duration::from_millis(200);
/// The pause while documents wait for their last readers. Also the shortest pause.
const REST_MIN: Duration = Duration::from_millis(1);

/// Starts the thread. After each step, it pauses for as long as the step took. So it causes at most half of the disk
/// load that one thread can cause. Stop it before the collections are closed, and join it after they are closed.
pub(super) fn start(open: impl Fn() -> Option<Vec<Arc<Removals>>> + Send + 'static) -> Rounds {
    Rounds::start("hapax-removals", open, |collections, stop| {
        let started = Instant::now();
        let mut busy = false;
        for collection in collections {
            if stop.within(Duration::ZERO) {
                break;
            }
            busy |= collection.step();
        }
        if busy { started.elapsed().clamp(REST_MIN, IDLE) } else { IDLE }
    })
}

/// The removals of one collection.
pub(crate) struct Removals {
    collection: CollectionName,
    writes: Arc<Writes>,
    /// Whether a failure has been logged. It is logged once, because every later step fails in the same way.
    complained: Mutex<bool>,
}

impl Removals {
    pub(crate) fn new(collection: CollectionName, writes: Arc<Writes>) -> Self {
        Self { collection, writes, complained: Mutex::default() }
    }

    /// Removes the next part or the next reports, if there are any and if clients leave room in the queue. Blocks the
    /// thread. Returns whether the next step may follow at once.
    fn step(&self) -> bool {
        if self.writes.is_busy() {
            return false;
        }
        let sent = match (self.writes.jobs().next_part(), self.writes.jobs().surplus()) {
            (Some(part), _) if self.is_in_memory(&part) => return true,
            (Some(part), _) => self.writes.remove_doomed(part),
            (None, Some(number)) => self.writes.forget_job(number),
            (None, None) => return false,
        };
        match sent.and_then(|sent| block_on(sent).unwrap_or_else(|_| Err(CollectionError::closed()))) {
            Ok(()) => {
                *self.complained.lock() = false;
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut *self.complained.lock(), true) {
                    let collection = &self.collection;
                    tracing::warn!(%collection, %error, "could not remove documents that were deleted by label, or reports of an old job; the next round tries again");
                }
                false
            }
        }
    }

    /// Returns whether any of these documents is still in memory.
    fn is_in_memory(&self, part: &Part) -> bool {
        let index = self.writes.lookup().index();
        let mut documents = part.places.iter().zip(&part.doomed.seqs);
        // No place changes while the lock is held, so every place with a document can be read.
        self.writes
            .locked(|| documents.any(|(&place, &seq)| index.peek(place).is_some_and(|occupant| occupant.seq == seq)))
    }
}
