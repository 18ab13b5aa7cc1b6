//! Removed documents and promoted links wait for earlier readers. A reader takes the durable position in the commit
//! order, and then reads the data that was durable at that position. Meanwhile the position advances. A deleted
//! document keeps its postings and its place in the index until the last reader with an earlier position has finished.
//! A promoted link is still marked as a link until then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::place::Place;

/// A document that waits for earlier readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// A link became an ordinary document.
    Promoted(Place),
    /// A document was deleted.
    Gone(Place),
}

/// The readers, and the documents that they may still see in their earlier state. Each batch of such documents takes
/// the current token. If nothing else refers to a token, its readers have finished.
#[derive(Default)]
pub(super) struct Leaving {
    /// The current token. Each reader notes the token in memory of its own thread, so readers do not wait for each
    /// other. The thread that replaces the token counts these notes.
    now: ArcSwap<()>,
    /// Batches, in the order of their commits.
    waiting: Mutex<VecDeque<(Arc<()>, std::vec::IntoIter<Settled>)>>,
    /// The number of documents that are deleted but not removed yet.
    count: AtomicU64,
}

/// The registration of a reader. It is made before the reader takes the durable position in the commit order, and
/// dropped when the reader has read everything that it needs.
pub struct Reading(#[allow(dead_code, reason = "held for its count")] Guard<Arc<()>>);

impl Leaving {
    /// Registers a reader. Call it before taking the durable position.
    pub(super) fn reading(&self) -> Reading {
        Reading(self.now.load())
    }

    /// Adds the documents that were deleted, and the links that were promoted, when the durable position advanced to
    /// its present value. Call it after the position has advanced: readers that register from then on see the new
    /// position.
    pub(super) fn gone(&self, places: Vec<Place>, promoted: Vec<Place>) {
        self.count.fetch_add(places.len() as u64, Ordering::Relaxed);
        // Promotions come first, because a link that was promoted may be among the deleted documents.
        let promoted = promoted.into_iter().map(Settled::Promoted);
        let all: Vec<Settled> = promoted.chain(places.into_iter().map(Settled::Gone)).collect();
        if !all.is_empty() {
            let readers = self.now.swap(Arc::default());
            self.waiting.lock().push_back((readers, all.into_iter()));
        }
    }

    /// Returns the oldest waiting document. Returns `None` if there is none, or if a reader may still see it in its
    /// earlier state.
    pub(super) fn next(&self) -> Option<Settled> {
        let mut waiting = self.waiting.lock();
        let (readers, places) = waiting.front_mut()?;
        if Arc::strong_count(readers) > 1 {
            return None;
        }
        let left = places.next();
        if places.len() == 0 {
            waiting.pop_front();
        }
        left
    }

    /// Returns whether a document can be removed now.
    pub(super) fn is_removable(&self) -> bool {
        self.waiting.lock().front().is_some_and(|(readers, _)| Arc::strong_count(readers) == 1)
    }

    pub(super) fn any(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// Counts a document as removed.
    pub(super) fn removed(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many documents are deleted but not removed yet.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_document_waits_for_earlier_readers_only() {
        let leaving = Leaving::default();
        let early = leaving.reading();
        leaving.gone(vec![Place(1)], vec![Place(3)]);
        let late = leaving.reading();
        leaving.gone(vec![Place(2)], vec![]);
        assert_eq!((leaving.next(), leaving.count()), (None, 2));
        drop(early);
        assert_eq!(leaving.next(), Some(Settled::Promoted(Place(3))));
        assert_eq!(leaving.next(), Some(Settled::Gone(Place(1))));
        assert_eq!(leaving.next(), None, "the late reader may still read the second batch");
        drop(late);
        assert!(leaving.any());
        assert_eq!(leaving.next(), Some(Settled::Gone(Place(2))));
        assert!(!leaving.any());
    }
}
