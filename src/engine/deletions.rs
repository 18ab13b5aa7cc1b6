//! The deletions by label of one collection: those that have yet to remove documents from the disk, and the last ones
//! that have ended.
//!
//! A deletion is decided like a write (`write/label_deletion.rs`). Once it is durable, the documents leave memory as soon
//! as no reader sees them any more, and then the disk, a part at a time (`upkeep/label_deletions.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::index::Place;
use crate::store::{self, DoomedPart};
use crate::types::{LabelDeletion, Seq};
use crate::verdicts::{CollectionError, Result};

/// The deletions of a collection that may run at a time. Each read that lists documents looks at all of them.
const RUNNING_MAX: usize = 64;
/// The deletions that have ended and are still listed. The store keeps about as many.
const ENDED_MAX: usize = 100;

/// The deletions by label of one collection.
#[derive(Default)]
pub(crate) struct Deletions(Mutex<BTreeMap<Seq, Known>>);

struct Known {
    deletion: LabelDeletion,
    /// The parts that are still on disk.
    parts: VecDeque<Arc<Part>>,
    /// Whether the deletion itself is on disk.
    durable: bool,
}

/// Documents to remove from the disk in one transaction.
pub(crate) struct Part {
    pub doomed: DoomedPart,
    /// The places that these documents had in memory, in their order. Empty if they never were in memory, because the
    /// deletion is older than the process.
    pub places: Vec<Place>,
}

impl Deletions {
    /// Takes the deletions of a file that has just been opened.
    pub(crate) fn of(stored: store::Deletions) -> Self {
        let mut known: BTreeMap<Seq, Known> = BTreeMap::new();
        for deletion in stored.deletions {
            known.insert(deletion.number, Known { deletion, parts: VecDeque::new(), durable: true });
        }
        for doomed in stored.doomed {
            let known = known.get_mut(&doomed.deletion).expect("the store has compared the two");
            known.parts.push_back(Arc::new(Part { doomed, places: Vec::new() }));
        }
        Self(Mutex::new(known))
    }

    /// Returns an error if no other deletion may begin.
    pub(crate) fn admit(&self) -> Result<()> {
        let running = self.0.lock().values().filter(|known| !known.parts.is_empty()).count();
        if running < RUNNING_MAX {
            return Ok(());
        }
        Err(CollectionError::Overloaded {
            detail: format!(
                "{running} deletions by label are running in this collection, the most at a time; try again later"
            ),
            retry_after: Duration::from_secs(10),
        })
    }

    /// Adds a deletion that has been decided.
    pub(crate) fn decided(&self, deletion: LabelDeletion, parts: VecDeque<Arc<Part>>) {
        self.0.lock().insert(deletion.number, Known { deletion, parts, durable: false });
    }

    /// Notes that a deletion is on disk.
    pub(crate) fn is_durable(&self, number: Seq) {
        if let Some(known) = self.0.lock().get_mut(&number) {
            known.durable = true;
        }
    }

    /// Drops a deletion that was undone.
    pub(crate) fn undone(&self, number: Seq) {
        self.0.lock().remove(&number);
    }

    /// Returns the next part to remove.
    pub(crate) fn next(&self) -> Option<Arc<Part>> {
        let known = self.0.lock();
        known.values().filter(|known| known.durable).find_map(|known| known.parts.front().cloned())
    }

    /// Notes that a part is gone from the disk, with the deletion as it is then.
    pub(crate) fn removed(&self, deletion: LabelDeletion) {
        let mut known = self.0.lock();
        if let Some(known) = known.get_mut(&deletion.number) {
            known.parts.pop_front();
            known.deletion = deletion;
        }
        let ended = |known: &Known| known.deletion.ended.is_some();
        let excess = known.values().filter(|known| ended(known)).count().saturating_sub(ENDED_MAX);
        let oldest: Vec<Seq> =
            known.iter().filter(|(_, known)| ended(known)).map(|(number, _)| *number).take(excess).collect();
        oldest.iter().for_each(|number| drop(known.remove(number)));
    }

    /// Returns the deletions that are on disk, the newest first.
    pub(crate) fn list(&self) -> Vec<LabelDeletion> {
        let known = self.0.lock();
        known.values().rev().filter(|known| known.durable).map(|known| known.deletion.clone()).collect()
    }

    /// Returns how many documents have yet to be removed from the disk.
    pub(crate) fn left(&self) -> u64 {
        self.0.lock().values().map(|known| known.deletion.left()).sum()
    }
}
