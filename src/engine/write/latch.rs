//! One operation per id in flight: a lock by id, first come, first served.
//! Held from before an id is looked up until its operation is durable or undone, so what the lookup found stays true.
//! The operation's entry in the commit queue owns the guard, so a client that leaves keeps nobody waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::DocId;

/// The ids with an operation in flight, each with those who wait for it.
#[derive(Default)]
pub(super) struct Latches {
    held: Mutex<HashMap<DocId, VecDeque<oneshot::Sender<Latch>>>>,
}

/// The right to operate on an id, until dropped.
pub(super) struct Latch {
    latches: Arc<Latches>,
    id: DocId,
}

impl Latches {
    /// Waits until no other operation on the id is under way.
    pub(super) async fn acquire(self: &Arc<Self>, id: &DocId) -> Latch {
        let turn = {
            let mut held = self.held.lock();
            match held.get_mut(id) {
                None => {
                    held.insert(id.clone(), VecDeque::new());
                    return Latch { latches: Arc::clone(self), id: id.clone() };
                }
                Some(waiting) => {
                    let (sender, turn) = oneshot::channel();
                    if waiting.len() == waiting.capacity() {
                        waiting.retain(|waiter| !waiter.is_closed());
                    }
                    waiting.push_back(sender);
                    turn
                }
            }
        };
        turn.await.expect("a latch is handed on before its waiters are forgotten")
    }
}

impl Latches {
    /// The latch, if no operation on the id is under way.
    pub(super) fn try_acquire(self: &Arc<Self>, id: &DocId) -> Option<Latch> {
        let mut held = self.held.lock();
        if held.contains_key(id) {
            return None;
        }
        held.insert(id.clone(), VecDeque::new());
        Some(Latch { latches: Arc::clone(self), id: id.clone() })
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        let next = {
            let mut held = self.latches.held.lock();
            let waiting = held.get_mut(&self.id).expect("a latch is in the map while it is held");
            // Those that have left are passed over here and not by handing them the latch: each would drop it again,
            // one call deeper.
            let next = std::iter::from_fn(|| waiting.pop_front()).find(|next| !next.is_closed());
            if next.is_none() {
                held.remove(&self.id);
            }
            next
        };
        if let Some(next) = next {
            // A waiter that leaves just now gives the latch back unsent; dropping it here hands it to the one behind.
            let latch = Latch { latches: Arc::clone(&self.latches), id: self.id.clone() };
            drop(next.send(latch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_latch_passes_over_waiters_that_left() {
        let latches = Arc::new(Latches::default());
        let id = DocId::new("a").unwrap();
        let first = latches.acquire(&id).await;
        let mut left = Box::pin(latches.acquire(&id));
        assert!(futures::poll!(&mut left).is_pending());
        let mut stays = Box::pin(latches.acquire(&id));
        assert!(futures::poll!(&mut stays).is_pending());
        drop(left);
        drop(first);
        drop(stays.await);
        assert!(latches.held.lock().is_empty());
    }
}
