//! Freed slots wait for earlier readers.
//! A reader takes `durable` and then reads what was durable there, while the committer moves on. Until the last reader
//! that may look from an earlier place has left, a document that is gone keeps its postings, its slot and its record.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::types::Slot;

/// Who reads since when. Each turn hands out another token; a token that nobody else holds has no readers left.
#[derive(Default)]
pub(crate) struct Epochs {
    now: Mutex<Arc<()>>,
}

/// A reader, from before it takes `durable` until it has read all it needs.
pub(crate) struct Reading(#[allow(dead_code, reason = "held for its count")] Arc<()>);

/// What is gone and may still be read, in the order in which it went. The committer's own.
#[derive(Default)]
pub(crate) struct Leaving {
    waiting: VecDeque<(Arc<()>, Vec<Slot>)>,
}

impl Epochs {
    /// Call it before taking `durable`.
    pub(crate) fn enter(&self) -> Reading {
        Reading(Arc::clone(&self.now.lock()))
    }

    /// Call it after moving `durable` on: who enters from here on sees the new place.
    fn turn(&self) -> Arc<()> {
        std::mem::take(&mut *self.now.lock())
    }
}

impl Leaving {
    /// Adds what went with the step to the present `durable`.
    pub(crate) fn push(&mut self, epochs: &Epochs, gone: Vec<Slot>) {
        if !gone.is_empty() {
            self.waiting.push_back((epochs.turn(), gone));
        }
    }

    /// The oldest that no reader can still look for.
    pub(crate) fn pop(&mut self) -> Option<Vec<Slot>> {
        let (readers, _) = self.waiting.front()?;
        if Arc::strong_count(readers) > 1 {
            return None;
        }
        self.waiting.pop_front().map(|(_, gone)| gone)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_waits_for_readers_that_came_before_and_not_for_later_ones() {
        let (epochs, mut leaving) = (Epochs::default(), Leaving::default());
        let early = epochs.enter();
        leaving.push(&epochs, vec![Slot(1)]);
        let late = epochs.enter();
        leaving.push(&epochs, vec![Slot(2)]);
        assert_eq!(leaving.pop(), None);
        drop(early);
        assert_eq!(leaving.pop(), Some(vec![Slot(1)]));
        assert_eq!(leaving.pop(), None, "the late reader may look for the second");
        drop(late);
        assert_eq!(leaving.pop(), Some(vec![Slot(2)]));
        assert!(leaving.is_empty());
    }
}
