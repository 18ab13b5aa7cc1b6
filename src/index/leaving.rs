//! Removed documents wait for earlier readers.
//! A reader takes the durable place in the order and then reads what was durable there, while the order moves on. Until
//! the last reader that may look from an earlier place has left, a document that is gone keeps its postings and its
//! place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::place::Place;

/// Who reads since when, and what is gone and may still be read. Each batch that goes takes the present token with it; a
/// token that nobody else holds has no readers left.
#[derive(Default)]
pub(super) struct Leaving {
    now: Mutex<Arc<()>>,
    /// In the order in which it went.
    waiting: Mutex<VecDeque<(Arc<()>, std::vec::IntoIter<Place>)>>,
    /// Documents that are gone and have not been removed yet.
    count: AtomicU64,
}

/// A reader, from before it takes the durable place in the order until it has read all it needs.
pub struct Reading(#[allow(dead_code, reason = "held for its count")] Arc<()>);

impl Leaving {
    /// Call it before taking the durable place.
    pub(super) fn reading(&self) -> Reading {
        Reading(Arc::clone(&self.now.lock()))
    }

    /// Adds what went with the step to the present durable place. Call it after moving that on: who comes from here on
    /// sees the new place.
    pub(super) fn gone(&self, places: Vec<Place>) {
        if !places.is_empty() {
            self.count.fetch_add(places.len() as u64, Ordering::Relaxed);
            let readers = std::mem::take(&mut *self.now.lock());
            self.waiting.lock().push_back((readers, places.into_iter()));
        }
    }

    /// The oldest that no reader can still look for.
    pub(super) fn next_removable(&self) -> Option<Place> {
        let mut waiting = self.waiting.lock();
        let (readers, places) = waiting.front_mut()?;
        if Arc::strong_count(readers) > 1 {
            return None;
        }
        let place = places.next();
        if places.len() == 0 {
            waiting.pop_front();
        }
        place
    }

    pub(super) fn any(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// One has been removed.
    pub(super) fn removed(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many are gone and have not been removed yet.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_waits_for_readers_that_came_before_and_not_for_later_ones() {
        let leaving = Leaving::default();
        let early = leaving.reading();
        leaving.gone(vec![Place(1), Place(3)]);
        let late = leaving.reading();
        leaving.gone(vec![Place(2)]);
        assert_eq!(leaving.next_removable(), None);
        drop(early);
        assert_eq!(leaving.next_removable(), Some(Place(1)));
        assert_eq!(leaving.next_removable(), Some(Place(3)));
        assert_eq!(leaving.next_removable(), None, "the late reader may look for the second");
        drop(late);
        assert!(leaving.any());
        assert_eq!(leaving.next_removable(), Some(Place(2)));
        assert!(!leaving.any());
    }
}
