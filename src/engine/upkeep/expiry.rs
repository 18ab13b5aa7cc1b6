//! Time to live: deletes documents that have not been seen for a long time, a few at a time, in the background. A
//! document is *seen* when it is inserted, when it is inserted again with the same content, and, if the collection's
//! `touch` is on, when an insertion turns out to duplicate it. Checks never write, so a document does not count as seen
//! if only a check finds it.
//!
//! The last-seen time is updated in memory at once. It is written to disk in the background, within seconds. It is
//! written only if the time in memory and the time on disk fall into different 64ths of the time to live, so a document
//! that is seen each second is not rewritten each second. Times in the same 64th are not written when the server stops
//! either. So a restart, with or without a crash, may shorten the life of a document by a 64th of the time to live. No
//! answer depends on a last-seen time.
//!
//! An expiry is a delete like a client's: it takes the id's latch, a place in the queue and its own position in the
//! commit order. An expired document that is not yet deleted is still found, and stays if it is seen again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use parking_lot::Mutex;

use super::clock::Clock;
use super::rounds::Rounds;
use crate::engine::lookup::{Existing, Lookup};
use crate::engine::write::{Ticket, Writes, expire};
use crate::index::{Due, LastSeen, Place, Walk};
use crate::types::{CollectionName, Seq, TimestampMs, overdue};
use crate::verdicts::{CollectionError, Result};

/// The number of places to look at in one step. This takes well under a millisecond.
const STEP_PLACES: usize = 64 * 1024;
/// The maximum number of documents that one step deletes, or whose last-seen times it reads or writes. With the disk,
/// this takes about ten milliseconds.
const STEP_DOCUMENTS: usize = 256;
/// The number of rounds per time to live. The interval between rounds is at least `ROUND_MIN` and at most
/// `ROUND_MAX`.
const ROUNDS_PER_TTL: u32 = 8;
/// A clock is not trusted after it was set forward by more than the time to live divided by this number, and by more
/// than `JUMP_MIN`.
const JUMPS_PER_TTL: u32 = 64;
const JUMP_MIN: Duration = Duration::from_secs(60);
const ROUND_MIN: Duration = Duration::from_millis(250);
const ROUND_MAX: Duration = Duration::from_secs(5);

/// The pause if no collection has anything to do.
const IDLE: Duration = Duration::from_millis(200);
/// The shortest pause between two steps.
const REST_MIN: Duration = Duration::from_millis(1);

/// Starts the thread. It runs the next step of expiry in each open collection, and then pauses for as long as these
/// steps took. Expiry therefore causes at most half of the disk load that one thread can cause. Stop the thread before
/// the collections are closed, and join it after they are closed, so that nothing blocks its last step.
pub(super) fn start(open: impl Fn() -> Option<Vec<Arc<Expiry>>> + Send + 'static) -> Rounds {
    Rounds::start("hapax-expiry", open, |collections, stop| {
        let started = Instant::now();
        let mut busy = false;
        for collection in collections {
            if stop.within(Duration::ZERO) {
                break;
            }
            busy |= collection.sweep();
        }
        if busy { started.elapsed().clamp(REST_MIN, IDLE) } else { IDLE }
    })
}

/// The expiry of one collection.
pub(crate) struct Expiry {
    collection: CollectionName,
    writes: Arc<Writes>,
    sweep: Mutex<Sweep>,
}

/// The progress of expiry in a collection.
#[derive(Default)]
struct Sweep {
    /// The start of the current round, or of the last one.
    begun: Option<Instant>,
    /// The place at which the current round continues.
    next: Option<Walk>,
    /// How long the most overdue document has been overdue, in this round and in the one before.
    lag: Duration,
    lag_before: Duration,
    /// Whether a failure has been logged. It is logged once, because every later round fails in the same way.
    complained: bool,
    clock: Clock,
}

impl Sweep {
    /// Returns the place at which the next step begins; `None` if it is not yet time.
    fn start(&mut self, ttl: Duration) -> Option<Walk> {
        let period = (ttl / ROUNDS_PER_TTL).clamp(ROUND_MIN, ROUND_MAX);
        if self.next.is_none() && self.begun.is_none_or(|begun| begun.elapsed() >= period) {
            self.begun = Some(Instant::now());
            self.next = Some(Walk::start());
        }
        self.next
    }

    fn end_round(&mut self) {
        self.next = None;
        self.lag_before = std::mem::take(&mut self.lag);
    }
}

/// A document of a step that needs work.
struct Task {
    place: Place,
    seq: Seq,
    due: Due,
}

/// A last-seen time to write.
type Unwritten = (Place, Seq, TimestampMs);

impl Expiry {
    /// Makes the expiry of a collection that has just been opened.
    pub(crate) fn new(collection: CollectionName, writes: Arc<Writes>) -> Self {
        Self { collection, writes, sweep: Mutex::default() }
    }

    fn lookup(&self) -> &Lookup {
        self.writes.lookup()
    }

    /// Runs one step of a round through all documents. Blocks the thread. Returns whether the round continues at once.
    fn sweep(&self) -> bool {
        let mut sweep = self.sweep.lock();
        let ttl = self.lookup().policy().settings.ttl;
        let (Some(times), Some(ttl)) = (self.lookup().index().last_seen(), ttl) else {
            *sweep = Sweep::default();
            self.lookup().meters().expiry_lag_seconds.set(0.0);
            return false;
        };
        let tolerated = (ttl / JUMPS_PER_TTL).max(JUMP_MIN);
        if let Some(ahead) = sweep.clock.note(Instant::now(), TimestampMs::now(), tolerated) {
            let (collection, seconds) = (&self.collection, ahead.as_secs());
            tracing::warn!(%collection, seconds, "the clock was set forward; no document expires for ten minutes");
        }
        let Some(start) = sweep.start(ttl) else { return false };
        let (mut tasks, next) = self.find_tasks(&times, ttl, start);
        if !sweep.clock.is_trusted(Instant::now()) {
            tasks.retain(|task| task.due != Due::Delete);
        }
        if let Err(error) = self.do_tasks(&times, ttl, &mut sweep, tasks)
            && !std::mem::replace(&mut sweep.complained, true)
        {
            let collection = &self.collection;
            tracing::warn!(%collection, %error, "could not delete all expired documents; the next round tries again");
        }
        let lag = sweep.lag.max(sweep.lag_before);
        sweep.next = next;
        if next.is_none() {
            sweep.end_round();
        }
        self.lookup().meters().expiry_lag_seconds.set(lag.as_secs_f64());
        sweep.next.is_some()
    }

    /// Returns the documents of a step that need work, and the place at which to continue.
    fn find_tasks(&self, times: &LastSeen, ttl: Duration, from: Walk) -> (Vec<Task>, Option<Walk>) {
        let (now, index) = (TimestampMs::now(), self.lookup().index());
        let (mut tasks, mut last) = (Vec::new(), None);
        let mut places = index.places(from);
        for place in places.by_ref().take(STEP_PLACES) {
            last = Some(place);
            let due = times.due(place, now, ttl);
            if due != Due::Nothing {
                match index.peek(place) {
                    Some(held) if held.removed == Seq(0) => tasks.push(Task { place, seq: held.seq, due }),
                    // The document is being removed already.
                    Some(_) => {}
                    None if due == Due::Read => {}
                    None => times.forget(place),
                }
            }
            if tasks.len() == STEP_DOCUMENTS {
                break;
            }
        }
        (tasks, places.next().and(last).map(Walk::after))
    }

    /// Does the work of a step, and waits until it is on disk.
    fn do_tasks(&self, times: &LastSeen, ttl: Duration, sweep: &mut Sweep, tasks: Vec<Task>) -> Result<()> {
        let (mut going, mut unwritten): (Vec<Ticket<bool>>, Vec<Unwritten>) = Default::default();
        let mut first_failure = Ok(());
        for Task { place, seq, due } in tasks {
            match due {
                Due::Nothing => {}
                Due::Write => unwritten.extend(times.take_unwritten(place).map(|seen| (place, seq, seen))),
                Due::Read => match self.lookup().records().record(seq) {
                    Ok(Some(record)) => times.learn(place, self.lookup().last_seen_on_disk(&record)),
                    Ok(None) => {}
                    Err(error) => first_failure = first_failure.and(Err(error)),
                },
                Due::Delete => {
                    let last_seen = times.last_seen(place).unwrap_or_default();
                    sweep.lag = sweep.lag.max(overdue(last_seen, TimestampMs::now(), ttl));
                    match self.expire(place, seq) {
                        Ok(ticket) => going.extend(ticket),
                        Err(error) => first_failure = first_failure.and(Err(error)),
                    }
                }
            }
        }
        let written = self.write_times(times, unwritten);
        for ticket in going {
            match block_on(ticket.wait()) {
                Ok(_) => self.lookup().meters().expired.increment(1),
                Err(error) => first_failure = first_failure.and(Err(error)),
            }
        }
        first_failure.and(written)
    }

    /// Deletes an expired document. Does nothing if clients need the queue.
    fn expire(&self, place: Place, seq: Seq) -> Result<Option<Ticket<bool>>> {
        // This is checked before the record is read, because the disk is busy while clients need the queue.
        if self.writes.is_busy() {
            return Ok(None);
        }
        let (lookup, index) = (self.lookup(), self.lookup().index());
        let Some(record) = lookup.records().record(seq)? else { return Ok(None) };
        expire(&self.writes, &Existing { place, record }, || {
            // This is checked again, because the document may have been seen or replaced, or the time to live may have
            // changed.
            let there = index.peek(place).is_some_and(|held| held.seq == seq && held.removed == Seq(0));
            let ttl = lookup.policy().settings.ttl;
            let due = index.last_seen().zip(ttl).map(|(times, ttl)| times.due(place, TimestampMs::now(), ttl));
            there && due == Some(Due::Delete)
        })
    }

    /// Sends last-seen times to the disk with the next transaction, and waits until they are written. Therefore only
    /// one set of times is on its way to the disk at a time.
    fn write_times(&self, times: &LastSeen, unwritten: Vec<Unwritten>) -> Result<()> {
        if unwritten.is_empty() {
            return Ok(());
        }
        let sent = self.writes.write_last_seen(unwritten.iter().map(|&(_, seq, seen)| (seq, seen)).collect());
        let written = sent.and_then(|written| block_on(written).unwrap_or_else(|_| Err(CollectionError::closed())));
        if written.is_err() {
            unwritten.iter().for_each(|&(place, ..)| times.not_written(place));
        }
        written
    }
}
