//! The places for connections: how many may be open at once, and the connection in each place.
//! If all places are taken and another client waits, the connection that has been without a request for the longest
//! time is closed to make room. Without that, one client could hold all places by sending a request now and then, and
//! keep all others out.
//!
//! A client may be about to send its next request. If its connection were closed at that moment, the request would be
//! lost. So a connection that has just answered is not closed at once. If all connections are busy, the next answer
//! ends its connection (HTTP/1: `Connection: close`), so that busy clients take turns. A client that leaves its answers
//! unread does not count as busy: if all others are busy, its connection is closed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::activity::{Activity, ConnectionState};
use crate::telemetry::names;

/// How many connections may be without a place at once: those that are closing, and closed ones that are still being
/// read.
const fn leaving_max(connections_max: usize) -> usize {
    match connections_max / 16 {
        0..4 => 4,
        sixteenth @ 4..256 => sixteenth,
        _ => 256,
    }
}

/// The most sockets that a listener with this many places has open.
pub const fn sockets_max(connections_max: usize) -> usize {
    // One connection is accepted before it has a place.
    connections_max + leaving_max(connections_max) + 1
}

/// After one connection is asked to close, the server waits this long for a place before it asks the next one.
const NEXT_AFTER: Duration = Duration::from_millis(20);
/// A connection that has answered within this time keeps its place, unless another client has waited this long for a
/// place.
const SPARED: Duration = Duration::from_secs(1);
/// How long a client may leave all of its answers unread before its place may be given to another client.
pub(super) const UNREAD_SPARED: Duration = Duration::from_secs(5);
/// How many of the longest idle connections one lookup returns. A lookup goes through all connections, so one lookup
/// finds several of them.
const OLDEST_MAX: usize = 64;

/// The places of one listener.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<HashMap<u64, Arc<Activity>>>>,
    next: AtomicU64,
    max: usize,
    leaving: Arc<Semaphore>,
    wanted: Arc<AtomicBool>,
    /// The longest idle connections, sorted newest first.
    oldest: Mutex<Vec<(Instant, Arc<Activity>)>>,
}

/// A taken place; free again when dropped.
pub(crate) struct ConnectionPlace {
    number: u64,
    activity: Arc<Activity>,
    permit: OwnedSemaphorePermit,
    taken: Arc<Mutex<HashMap<u64, Arc<Activity>>>>,
    leaving: Arc<Semaphore>,
    wanted: Arc<AtomicBool>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(max)),
            taken: Arc::default(),
            next: AtomicU64::new(0),
            max,
            leaving: Arc::new(Semaphore::new(leaving_max(max))),
            wanted: Arc::default(),
            oldest: Mutex::default(),
        }
    }

    pub(crate) fn taken(&self) -> usize {
        self.max - self.free.available_permits()
    }

    /// Waits for a place. While it waits, it asks connections without a request to leave.
    pub(crate) async fn take(&self, activity: &Arc<Activity>) -> ConnectionPlace {
        let begun = Instant::now();
        let permit = loop {
            let free = Arc::clone(&self.free);
            if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
                break permit;
            }
            let waited = begun.elapsed();
            if !self.make_room(if waited < SPARED { SPARED } else { Duration::ZERO }) {
                self.wanted.store(true, Ordering::Relaxed);
            }
            if let Ok(permit) = tokio::time::timeout(NEXT_AFTER, free.acquire_owned()).await {
                break permit.expect("the semaphore is never closed");
            }
        };
        self.wanted.store(false, Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.taken.lock().insert(number, Arc::clone(activity));
        metrics::gauge!(names::HTTP_CONNECTIONS).increment(1.0);
        ConnectionPlace {
            number,
            activity: Arc::clone(activity),
            permit,
            taken: Arc::clone(&self.taken),
            leaving: Arc::clone(&self.leaving),
            wanted: Arc::clone(&self.wanted),
        }
    }

    /// Asks the connection that has been without a request for the longest time to leave. If there is none, asks the
    /// connection whose answers have been unread for the longest time. Returns `false` if all connections are busy or
    /// have answered less than `spared` ago.
    pub(crate) fn make_room(&self, spared: Duration) -> bool {
        let mut oldest = self.oldest.lock();
        // The first round uses the last lookup, and the second round makes a new one.
        for _ in 0..2 {
            // A connection that has answered a request since the lookup is no longer one of the longest idle.
            while let Some((since, activity)) = oldest.pop() {
                let spared = activity.state() == ConnectionState::Idle && since.elapsed() < spared;
                if !spared && activity.free_since() == Some(since) {
                    activity.ask_to_leave();
                    return true;
                }
            }
            *oldest = self.look_up_oldest();
        }
        drop(oldest);
        self.longest_unread().is_some_and(|activity| {
            activity.ask_to_leave();
            true
        })
    }

    fn longest_unread(&self) -> Option<Arc<Activity>> {
        let taken: Vec<_> = self.taken.lock().values().cloned().collect();
        let unread = taken.into_iter().filter_map(|activity| Some((activity.unread_for()?, activity)));
        let (waited, activity) = unread.max_by_key(|(waited, _)| *waited)?;
        (waited >= UNREAD_SPARED).then_some(activity)
    }

    fn look_up_oldest(&self) -> Vec<(Instant, Arc<Activity>)> {
        let mut free: Vec<_> = {
            let taken = self.taken.lock();
            taken.values().filter_map(|activity| Some((activity.free_since()?, Arc::clone(activity)))).collect()
        };
        if free.len() > OLDEST_MAX {
            free.select_nth_unstable_by_key(OLDEST_MAX, |(since, _)| *since);
            free.truncate(OLDEST_MAX);
        }
        free.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        free
    }
}

impl ConnectionPlace {
    /// Gives back the place before the connection has closed, so that another client can have it. Returns `false` if
    /// too many connections are already closing; this connection must then close immediately.
    pub(crate) fn vacate(&mut self) -> bool {
        let Ok(leaving) = Arc::clone(&self.leaving).try_acquire_owned() else { return false };
        self.permit = leaving;
        self.leave();
        true
    }

    /// Returns a flag that is set while a client waits for a place. A connection that takes the flag must close after
    /// its answer.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted(Arc::clone(&self.wanted))
    }

    /// Returns the places for closed sockets that are still being read.
    pub(crate) fn leaving(&self) -> Arc<Semaphore> {
        Arc::clone(&self.leaving)
    }

    fn leave(&self) {
        self.taken.lock().remove(&self.number);
        self.activity.end();
    }
}

/// A flag that is set while a client waits for a place.
#[derive(Clone)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Returns true to only one of its callers, and clears the flag.
    pub(crate) fn take(&self) -> bool {
        // Load first: the flag is rarely set, and a plain load lets the cores share the cache line.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.leave();
        metrics::gauge!(names::HTTP_CONNECTIONS).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_without_a_request_is_asked_first_and_the_busy_never() {
        let places = Places::new(3);
        let activities = [Activity::new(), Activity::new(), Activity::new()];
        let mut taken = Vec::new();
        for activity in &activities {
            taken.push(places.take(activity).await);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let _answering = activities[0].answer(false);
        drop(activities[1].answer(false));
        let asked = || activities.iter().position(|activity| activity.take_asked_to_leave());
        assert!(places.make_room(Duration::ZERO));
        assert_eq!(asked(), Some(2), "the second has answered since");
        // A connection without any request is not spared, so the third one gets a request. The second has just
        // answered, and the first is busy.
        places.oldest.lock().clear();
        drop(activities[2].answer(false));
        assert!(!places.make_room(SPARED));
        assert_eq!(asked(), None);
        assert!(places.make_room(Duration::ZERO));
        assert_eq!(asked(), Some(1));
        let newcomer = Activity::new();
        let waiting = places.take(&newcomer);
        assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
        assert!(taken[0].wanted().take() && !taken[1].wanted().take(), "one answer ends its connection for it");
        assert!(taken[1].vacate());
        assert_eq!(places.taken(), 2);
        places.take(&newcomer).await;
    }
}
