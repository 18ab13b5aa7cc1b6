//! New settings for a collection in use.
//! A new banding is built beside the old one from the signatures in memory, a few documents at a time under the
//! decision lock, while every decision keeps both up to date. It takes over once it is complete and on disk.

use std::sync::Arc;

use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use super::order::{Work, closed};
use super::{Changes, Collection, Description, Result, exact};
use crate::index::BandIndex;
use crate::types::{Seq, Slot};

/// Documents placed per hold of the decision lock: well under a millisecond.
const STEP: u32 = 32;

impl Collection {
    /// Changes what can change; the index is rebuilt where the banding does. Once begun it is finished, even where the
    /// caller leaves: the file and the memory must not differ.
    pub async fn update(self: &Arc<Self>, changes: Changes) -> Result<Description> {
        let collection = Arc::clone(self);
        let updated = tokio::spawn(async move { collection.update_whole(changes).await });
        updated.await.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic()))
    }

    async fn update_whole(self: Arc<Self>, changes: Changes) -> Result<Description> {
        let _one_at_a_time = self.rebanding.lock().await;
        let now = self.settings();
        let settings = changes.applied_to(now.clone()).checked()?;
        let unfinished = if settings.banding == now.banding {
            None
        } else {
            let unfinished = Unfinished::begin(&self, BandIndex::new(settings.banding, self.preparer.shape()));
            let (next, last, slots) = (Arc::clone(&unfinished.next), unfinished.last, unfinished.slots);
            let collection = Arc::clone(&self);
            super::long_work::blocking(move || {
                collection.fill(&next, last, slots);
                Ok(())
            })
            .await?;
            Some(unfinished)
        };
        let (answer, written) = oneshot::channel();
        {
            let mut order = self.order.lock();
            order.open()?;
            order.queue.push_back(Work::Settings { changeable: settings.changeable(), answer });
            self.work.notify_one();
        }
        written.await.unwrap_or_else(|_| Err(closed()))?;
        {
            let _order = self.order.lock();
            let mut live = self.live.write();
            if let Some(unfinished) = &unfinished {
                // Both at once: a decision between the two would enter its postings twice.
                live.bands = Arc::clone(&unfinished.next);
                live.next = None;
            }
            live.matching_min = exact::matching_min(settings.verify, settings.threshold, self.preparer.spec());
            live.seen_times = self.seen_times_for(settings.ttl, live.seen_times.as_ref());
            live.settings = settings;
        }
        drop(unfinished);
        Ok(self.describe())
    }

    /// Adds every document that was there before decisions began to do so themselves.
    fn fill(&self, next: &BandIndex, last: Seq, slots: u32) {
        for first in (0..slots).step_by(STEP as usize) {
            let order = self.order.lock();
            if order.closed {
                return;
            }
            let live = self.live.read();
            for slot in (first..slots.min(first + STEP)).map(Slot) {
                let older = self.arena.peek(slot).is_some_and(|seen| seen.seq <= last);
                // By what the old index has, and not by the arena's flags: a link that is being promoted can be found, and
                // may be in the new index already.
                if older && live.bands.here(slot) && !next.here(slot) {
                    next.insert(&self.arena, slot, live.bands.is_findable(slot));
                }
            }
            drop(live);
            // To whoever waits: taken and given up in a row, the lock would rarely change hands.
            MutexGuard::unlock_fair(order);
        }
    }
}

/// An index under construction, registered with every decision until dropped.
struct Unfinished<'a> {
    collection: &'a Collection,
    next: Arc<BandIndex>,
    last: Seq,
    slots: u32,
}

impl<'a> Unfinished<'a> {
    fn begin(collection: &'a Collection, next: BandIndex) -> Self {
        let next = Arc::new(next);
        let order = collection.order.lock();
        collection.live.write().next = Some(Arc::clone(&next));
        Self { collection, next, last: order.last, slots: order.slots }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _order = self.collection.order.lock();
        self.collection.live.write().next = None;
    }
}
