//! Time to live: documents that have not been seen for long are deleted, a few at a time, in the background.
//! A document is *seen* when it is inserted, when it is inserted again unchanged or with other metadata, and, if the
//! collection's `touch` is on, when an insertion turns out to duplicate it. Checks never write, so they do not count.
//!
//! The last-seen time is updated in memory at once. It is written to disk in the background, within seconds, and only if
//! it falls into another 64th of the time to live than the one on disk: what is seen each second is not rewritten each
//! second. So a crash may cost a document that much of its time. No answer rests on a last-seen time.
//!
//! An expiry is a delete like a client's: under the id's latch, with a place in the queue, at its own place in the order.
//! What is overdue and not yet deleted is still found, and stays if it is seen again.

mod seen_times;
pub(crate) mod sweeper;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use tokio::sync::oneshot;

use super::order::{Existing, Ticket, Work, now};
use super::{Collection, Live, Result};
use crate::store::{self, Record};
use crate::types::{Seq, Slot, TimestampMs};

pub(crate) use seen_times::SeenTimes;
use seen_times::{Sight, overdue};

/// Slots looked at in one step, in well under a millisecond.
const STEP_SLOTS: u32 = 64 * 1024;
/// Documents of one step that are deleted or whose times are read or written: some ten milliseconds with the disk.
const STEP_DOCUMENTS: usize = 256;
/// Rounds begin so many times in a time to live, but within these bounds.
const ROUNDS_PER_TTL: u32 = 8;
const ROUND_MIN: Duration = Duration::from_millis(250);
const ROUND_MAX: Duration = Duration::from_secs(5);

/// How far the sweeper is with a collection.
#[derive(Default)]
pub(crate) struct Sweep {
    /// When the round under way, or the last one, began.
    begun: Option<Instant>,
    /// The next slot of a round under way.
    next: Option<Slot>,
    /// How long the most overdue document has been so, in this round and in the one before.
    lag: Duration,
    lag_before: Duration,
    /// Whether a failure has been logged: one line tells, and the next round meets it again.
    complained: bool,
}

impl Sweep {
    /// Where the step begins; `None` where it is not yet time.
    fn start(&mut self, ttl: Duration) -> Option<Slot> {
        let period = (ttl / ROUNDS_PER_TTL).clamp(ROUND_MIN, ROUND_MAX);
        if self.next.is_none() && self.begun.is_none_or(|begun| begun.elapsed() >= period) {
            self.begun = Some(Instant::now());
            self.next = Some(Slot(0));
        }
        self.next
    }

    fn end_round(&mut self) {
        self.next = None;
        self.lag_before = std::mem::take(&mut self.lag);
    }
}

/// A document of a step.
struct Found {
    slot: Slot,
    seq: Seq,
    sight: Sight,
}

/// A last-seen time to be written.
type Unwritten = (Slot, Seq, TimestampMs);

impl Live {
    /// Notes that the document in a slot was seen just now; the caller knows that it stays there meanwhile, by its id's
    /// latch or the decision lock. Says whether that was news.
    fn note_sight(&self, slot: Slot) -> bool {
        match (&self.seen_times, self.settings.ttl) {
            (Some(seen_times), Some(ttl)) => seen_times.touch(slot, now(), ttl),
            _ => false,
        }
    }

    /// What is to be done about a slot; nothing where documents stay for ever.
    fn sight(&self, slot: Slot) -> Option<Sight> {
        Some(self.seen_times.as_ref()?.sight(slot, now(), self.settings.ttl?))
    }
}

impl Collection {
    /// Where last-seen times are kept, while documents expire at all.
    pub(crate) fn seen_times_for(
        &self,
        ttl: Option<Duration>,
        held: Option<&Arc<SeenTimes>>,
    ) -> Option<Arc<SeenTimes>> {
        // Without any: the sweeper asks the disk for those of the documents that are there.
        ttl.map(|_| held.map_or_else(|| Arc::new(SeenTimes::new(self.created)), Arc::clone))
    }

    /// A document was seen.
    pub(crate) fn sighted(&self, live: &Live, slot: Slot) {
        if live.note_sight(slot) {
            self.meters.touched.increment(1);
        }
    }

    /// A document was inserted again unchanged, and so, where it was found to duplicate another, that was seen too.
    pub(crate) fn sighted_again(&self, existing: &Existing) {
        let live = self.live.read();
        self.sighted(&live, existing.slot);
        let verdict = &existing.record.verdict;
        if let (true, Some(original), Some(best)) =
            (live.settings.touch, &verdict.duplicate_of, verdict.matches.first())
        {
            let stands = |slot: &Slot| self.arena.peek(*slot).is_some_and(|held| held.seq == best.seq);
            let slots = self.ids.candidates(&self.arena, store::id_fingerprint(original));
            // Should the slot change hands just now, its next document is thought to have been seen a little later.
            slots.iter().filter(|slot| stands(slot)).for_each(|&slot| self.sighted(&live, slot));
        }
    }

    /// When a document was last seen and when it may go, where documents expire. The caller keeps the slot from being
    /// reused.
    pub(crate) fn lifetime(&self, existing: &Existing) -> Option<(TimestampMs, TimestampMs)> {
        let live = self.live.read();
        let (seen_times, ttl) = (live.seen_times.as_ref()?, live.settings.ttl?);
        let on_disk = self.seen(&existing.record);
        let last_seen = match seen_times.last_seen(existing.slot) {
            // In memory it is rounded.
            Some(noted) if noted.0 - on_disk.0 >= 1000 => noted.min(now()),
            _ => on_disk,
        };
        Some((last_seen, TimestampMs(last_seen.0.saturating_add(ttl.as_millis() as i64))))
    }

    /// One step of a round through all documents; blocking. Says whether the round goes on at once.
    fn sweep(&self) -> bool {
        let mut sweep = self.sweep.lock();
        let (seen_times, ttl) = {
            let live = self.live.read();
            match (&live.seen_times, live.settings.ttl) {
                (Some(seen_times), Some(ttl)) => (Arc::clone(seen_times), ttl),
                _ => {
                    *sweep = Sweep::default();
                    self.meters.expiry_lag_seconds.set(0.0);
                    return false;
                }
            }
        };
        let Some(start) = sweep.start(ttl) else { return false };
        let slots = self.order.lock().slots;
        let end = Slot(slots.min(start.0.saturating_add(STEP_SLOTS)));
        let (found, next) = self.find_work(&seen_times, ttl, start..end);
        sweep.next = Some(next);
        if let Err(error) = self.do_work(&seen_times, ttl, &mut sweep, found)
            && !std::mem::replace(&mut sweep.complained, true)
        {
            let collection = &self.name;
            tracing::warn!(%collection, %error, "documents that are overdue could not all be deleted; the next round tries again");
        }
        let lag = sweep.lag.max(sweep.lag_before);
        if next.0 >= slots {
            sweep.end_round();
        }
        self.meters.expiry_lag_seconds.set(lag.as_secs_f64());
        sweep.next.is_some()
    }

    /// The documents in a range of slots that something is to be done about, and where to go on.
    fn find_work(&self, seen_times: &SeenTimes, ttl: Duration, slots: std::ops::Range<Slot>) -> (Vec<Found>, Slot) {
        let now = now();
        let mut found = Vec::new();
        let mut at = slots.start;
        while at < slots.end && found.len() < STEP_DOCUMENTS {
            let slot = at;
            at = Slot(at.0 + 1);
            let sight = seen_times.sight(slot, now, ttl);
            if sight == Sight::Fresh {
                continue;
            }
            match self.arena.peek(slot) {
                Some(held) if held.removed == Seq(0) => found.push(Found { slot, seq: held.seq, sight }),
                // On its way out already.
                Some(_) => {}
                None if sight == Sight::Unknown => {}
                None => seen_times.forget(slot),
            }
        }
        (found, at)
    }

    /// Does what is to be done, and waits until it is on disk.
    fn do_work(&self, seen_times: &SeenTimes, ttl: Duration, sweep: &mut Sweep, found: Vec<Found>) -> Result<()> {
        let (mut going, mut unwritten): (Vec<Ticket<bool>>, Vec<Unwritten>) = Default::default();
        let mut first_failure = Ok(());
        for Found { slot, seq, sight } in found {
            match sight {
                Sight::Fresh => {}
                Sight::Unwritten => unwritten.extend(seen_times.take_unwritten(slot).map(|seen| (slot, seq, seen))),
                Sight::Unknown => match self.records.record(seq) {
                    Ok(Some(record)) => seen_times.learn(slot, self.seen(&record)),
                    Ok(None) => {}
                    Err(error) => first_failure = first_failure.and(Err(error)),
                },
                Sight::Overdue => {
                    let last_seen = seen_times.last_seen(slot).unwrap_or_default();
                    sweep.lag = sweep.lag.max(overdue(last_seen, now(), ttl));
                    match self.decide_expiry(slot, seq) {
                        Ok(ticket) => going.extend(ticket),
                        Err(error) => first_failure = first_failure.and(Err(error)),
                    }
                }
            }
        }
        let written = self.write_sights(seen_times, unwritten);
        for ticket in going {
            match block_on(ticket.wait()) {
                Ok(_) => self.meters.expired.increment(1),
                Err(error) => first_failure = first_failure.and(Err(error)),
            }
        }
        first_failure.and(written)
    }

    /// Deletes a document that is overdue; not where somebody works on its id or clients need the queue: the next round
    /// comes soon.
    fn decide_expiry(&self, slot: Slot, seq: Seq) -> Result<Option<Ticket<bool>>> {
        if self.places.available_permits() * 2 < self.limits.commit_queue_max {
            return Ok(None);
        }
        let Some(record) = self.records.record(seq)? else { return Ok(None) };
        let Some(latch) = self.latches.try_acquire(&record.id) else { return Ok(None) };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return Ok(None) };
        let mut order = self.order.lock();
        order.open()?;
        // Looked at again, where nothing moves: it may have been seen or replaced, and the time to live changed.
        let there = self.arena.peek(slot).is_some_and(|held| held.seq == seq && held.removed == Seq(0));
        let goes = there && self.live.read().sight(slot) == Some(Sight::Overdue);
        Ok(goes.then(|| self.remove(&mut order, Existing { slot, record }, latch, place)))
    }

    /// Sends last-seen times to the disk with the next transaction, and waits for it: so one set of them is under way at a
    /// time.
    fn write_sights(&self, seen_times: &SeenTimes, unwritten: Vec<Unwritten>) -> Result<()> {
        if unwritten.is_empty() {
            return Ok(());
        }
        let (answer, written) = oneshot::channel();
        let written = {
            let mut order = self.order.lock();
            order.open().map(|()| {
                let sights = unwritten.iter().map(|&(_, seq, seen)| (seq, seen)).collect();
                order.queue.push_back(Work::Sights { sights, answer });
                self.work.notify_one();
                written
            })
        };
        let written = written.and_then(|written| block_on(written).unwrap_or_else(|_| Err(super::order::closed())));
        if written.is_err() {
            unwritten.iter().for_each(|&(slot, ..)| seen_times.not_written(slot));
        }
        written
    }

    /// When a document was last seen as far as its record tells.
    fn seen(&self, record: &Record) -> TimestampMs {
        if record.seen == TimestampMs(0) { self.seen_floor } else { record.seen }
    }
}
