//! Allows one operation per id at a time: each id has a lock, first come, first served. An operation holds the lock
//! from before its id is looked up until the operation is durable or undone, so the result of the lookup stays true.
//! The guard belongs to the operation's entry in the commit queue, so a client that disconnects keeps no other client
//! waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::DocId;

/// The ids with an operation in progress, each with the operations that wait for it.
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
    /// Waits until no other operation on the id is in progress.
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
        turn.await.expect("a latch is handed to every waiter in turn")
    }
}

impl Latches {
    /// Returns the latch, if no operation on the id is in progress.
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
            // Cancelled waiters are skipped here. If one of them received the latch, it would drop the latch again, one
            // call deeper in the stack.
            let next = std::iter::from_fn(|| waiting.pop_front()).find(|next| !next.is_closed());
            if next.is_none() {
                held.remove(&self.id);
            }
            next
        };
        if let Some(next) = next {
            // If the waiter is cancelled at this moment, `send` returns the latch. Dropping the latch here passes it to
            // the next waiter.
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
