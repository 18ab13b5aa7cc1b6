//! Places for connections: so many at once, and which connection is on each. When all are taken and another client waits, the
//! connection that has been without a request for longest makes room.
//! Without that, one client with a request now and then on all places would keep all others out.
//!
//! A client that is just about to send its next request must not lose it to the close. So a connection that has answered
//! a moment ago is spared, and the next HTTP/1 answer says `Connection: close` instead: clients that are all at work take
//! turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::activity::{Activity, ConnectionState};
use crate::telemetry::names;

/// Most connections that are closing, or closed and being read to their end, beyond those that have a place.
const fn leaving_max(connections_max: usize) -> usize {
    match connections_max / 16 {
        0..4 => 4,
        sixteenth @ 4..256 => sixteenth,
        _ => 256,
    }
}

/// Most sockets of a listener that lets this many connections in.
pub const fn sockets_max(connections_max: usize) -> usize {
    // One is let in before it has its place.
    connections_max + leaving_max(connections_max) + 1
}

/// How long a connection that was asked to make room has, before another one is asked.
const NEXT_AFTER: Duration = Duration::from_millis(20);
/// A connection that has answered less than this ago is asked only if nothing else has made room for as long.
const SPARED: Duration = Duration::from_secs(1);
/// The oldest are looked up together: for each one alone, all would have to be looked at.
const OLDEST_MAX: usize = 64;

/// All places of one listener.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<HashMap<u64, Arc<Activity>>>>,
    next: AtomicU64,
    max: usize,
    leaving: Arc<Semaphore>,
    wanted: Arc<AtomicBool>,
    /// Newest first.
    oldest: Mutex<Vec<(Instant, Arc<Activity>)>>,
}

/// One that is taken; free again when dropped.
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

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.max - self.free.available_permits()
    }

    /// A place, as soon as there is one; until then connections without a request are asked to leave.
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

    /// Asks the connection that has been without a request for longest to leave. `false`: all are busy, or have answered
    /// less than `spared` ago.
    pub(crate) fn make_room(&self, spared: Duration) -> bool {
        let mut oldest = self.oldest.lock();
        // Twice: what was looked up some time ago, and what is looked up now.
        for _ in 0..2 {
            // One that has answered a request since is no longer among the oldest.
            while let Some((since, activity)) = oldest.pop() {
                let spared = activity.state() == ConnectionState::Idle && since.elapsed() < spared;
                if !spared && activity.free_since() == Some(since) {
                    activity.ask_to_leave();
                    return true;
                }
            }
            *oldest = self.look_up_oldest();
        }
        false
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
    /// Gives the place to others while the connection closes. `false`: too many are doing that, so close at once.
    pub(crate) fn vacate(&mut self) -> bool {
        let Ok(leaving) = Arc::clone(&self.leaving).try_acquire_owned() else { return false };
        self.permit = leaving;
        self.leave();
        true
    }

    /// Whether a client waits for a place; to be taken by the connection that will be over with its answer.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted(Arc::clone(&self.wanted))
    }

    /// Places for sockets that linger.
    pub(crate) fn leaving(&self) -> Arc<Semaphore> {
        Arc::clone(&self.leaving)
    }

    fn leave(&self) {
        self.taken.lock().remove(&self.number);
        self.activity.end();
    }
}

/// Set while a client waits for a place.
#[derive(Clone)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// True for one of those that ask.
    pub(crate) fn take(&self) -> bool {
        // The load first: most often it is not set, and then no core has to wait for another.
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
        // Without a request at all, so not spared; the second has just answered, the first is being answered.
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
