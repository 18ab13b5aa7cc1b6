//! Decides whether there is memory for a request body. All requests share one budget. Knows nothing of how the memory
//! is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use metrics::Gauge;
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};

use crate::http::error::{Code, Problem};
use crate::telemetry::memory::{Bound, Refused};
use crate::telemetry::names;

/// The unit of [`Budget`]. A finer unit would change the counter and the metric more often.
const UNIT: usize = 4096;
/// The largest small body.
const SMALL_BYTES_MAX: usize = 256 * 1024;
/// The pause after which a waiting request checks again whether the process has memory.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// The memory for request bodies, shared by all requests.
#[derive(Clone)]
pub(crate) struct Budget(Arc<Shared>);

struct Shared {
    free: Units,
    units_max: usize,
    /// Units that large bodies leave free for small ones.
    kept: usize,
    /// Held by the one request that is waiting for a large amount of memory. Other such requests queue here.
    waiting: Mutex<()>,
    /// The units that are reserved for decoders.
    windows: Arc<Semaphore>,
    windows_max: usize,
    /// The memory limit of the whole process. While this limit is reached, large bodies get no memory.
    process: Arc<Bound>,
    /// The handle is looked up once, because every request changes the metric.
    taken: Gauge,
}

/// A number of free units. Taking units costs one write, and so does giving them back. A semaphore would take a lock
/// each time.
struct Units {
    free: AtomicUsize,
    /// Whether a request waits for free units.
    awaited: AtomicBool,
    freed: Notify,
}

impl Units {
    /// Takes `units` if at least `kept` units remain free.
    fn take(&self, units: usize, kept: usize) -> bool {
        let taken = |free: usize| free.checked_sub(units).filter(|left| *left >= kept);
        self.free.fetch_update(Ordering::SeqCst, Ordering::Relaxed, taken).is_ok()
    }

    fn give_back(&self, units: usize) {
        self.free.fetch_add(units, Ordering::SeqCst);
        // A request that waits sets `awaited` before it looks at `free`. So either the request sees the new units, or
        // this function sees `awaited`.
        if self.awaited.load(Ordering::SeqCst) {
            self.freed.notify_waiters();
        }
    }
}

/// The memory of a decoder; given back when dropped. A request keeps this memory while it waits for more.
pub(crate) struct Window {
    _room: Room,
    _share: OwnedSemaphorePermit,
}

/// Reserved memory; given back when dropped.
pub(crate) struct Room {
    units: usize,
    budget: Budget,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        let units_max = (bytes / UNIT).clamp(1, u32::MAX as usize);
        let free = Units { free: AtomicUsize::new(units_max), awaited: AtomicBool::new(false), freed: Notify::new() };
        let (waiting, process) = Default::default();
        let (windows, taken) = (Arc::new(Semaphore::new(0)), metrics::gauge!(names::HTTP_BUFFERED_BYTES));
        Self(Arc::new(Shared { free, units_max, kept: 0, waiting, windows, windows_max: 0, process, taken }))
    }

    /// Changes a budget from which nothing has been taken yet.
    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::get_mut(&mut self.0).expect("nothing is taken yet"));
        self
    }

    /// Reserves a part of the budget for decoders: the whole budget without `largest` bytes and without the part for
    /// small bodies, but at most half of the budget. If this would be less than `window_bytes`, the part is
    /// `window_bytes`, but at most three quarters of the budget. A request that waits for memory never waits for this
    /// part, because the requests that use it may be waiting too.
    pub(crate) fn with_windows(self, largest: usize, window_bytes: usize) -> Self {
        self.with(|shared| {
            let least = window_bytes.div_ceil(UNIT).min(shared.units_max / 4 * 3);
            let left = shared.units_max.saturating_sub(shared.kept + largest.div_ceil(UNIT));
            shared.windows_max = left.min(shared.units_max / 2).max(least);
            shared.windows = Arc::new(Semaphore::new(shared.windows_max));
        })
    }

    /// Reserves the memory of a decoder, or returns 503.
    pub(crate) fn window(&self, bytes: usize) -> Result<Window, Problem> {
        let share = u32::try_from(bytes.div_ceil(UNIT)).ok();
        let share = share.and_then(|units| Arc::clone(&self.0.windows).try_acquire_many_owned(units).ok());
        let share = share.ok_or_else(|| {
            let detail = "all memory for the decoders of compressed bulk requests is in use; try again later, send the \
                          lines without compression, or raise `server.bodies_bytes_max`";
            Problem::new(Code::Overloaded, detail)
        })?;
        let mut room = self.room();
        room.resize(bytes)?;
        Ok(Window { _room: room, _share: share })
    }

    /// Sets the memory limit of the process. While the process has reached this limit, large bodies get no memory.
    pub(crate) fn within(self, process: &Arc<Bound>) -> Self {
        self.with(|shared| shared.process = Arc::clone(process))
    }

    /// Reserves an eighth of the memory for bodies of up to [`SMALL_BYTES_MAX`], or less if a body of `largest` bytes
    /// would otherwise not fit. Without this reserve, large bodies that make no progress would block all other bodies.
    pub(crate) fn keeping_some_for_small_ones(self, largest: usize) -> Self {
        self.with(|shared| {
            shared.kept = (shared.units_max / 8).min(shared.units_max.saturating_sub(largest / UNIT + 1));
        })
    }

    /// An empty reservation; [`Room::resize`] fills it.
    pub(crate) fn room(&self) -> Room {
        Room { units: 0, budget: self.clone() }
    }

    /// Waits for memory. A request gets at most the budget minus the part that is reserved for decoders. During the wait, the
    /// caller must hold no memory except a [`Window`], because other requests may be waiting for that memory. While a
    /// large request waits, small requests may take the memory that becomes free.
    pub(crate) async fn wait(&self, bytes: usize) -> Room {
        let Shared { free, units_max, kept, waiting, windows_max, process, .. } = &*self.0;
        let mut room = self.room();
        let kept = if *windows_max > 0 { windows_max + kept } else { 0 };
        let bytes = bytes.min(units_max.saturating_sub(kept).max(1) * UNIT);
        if bytes <= SMALL_BYTES_MAX && room.resize(bytes).is_ok() {
            return room;
        }
        let _turn = waiting.lock().await;
        let _awaited = Awaited::of(free);
        loop {
            if process.is_short() && bytes > SMALL_BYTES_MAX {
                tokio::time::sleep(SHORT_PAUSE).await;
                continue;
            }
            let mut freed = std::pin::pin!(free.freed.notified());
            freed.as_mut().enable();
            if room.resize(bytes).is_ok() {
                return room;
            }
            // This task is notified when units are given back, but not when the memory of the process falls below its
            // limit. So the task also wakes after a pause.
            let _ = tokio::time::timeout(SHORT_PAUSE, freed).await;
        }
    }
}

/// While this value exists, waiting requests are notified when units are given back.
struct Awaited<'a>(&'a Units);

impl<'a> Awaited<'a> {
    fn of(units: &'a Units) -> Self {
        units.awaited.store(true, Ordering::SeqCst);
        Self(units)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.awaited.store(false, Ordering::SeqCst);
    }
}

impl Room {
    /// An empty reservation in the same budget.
    pub(crate) fn another(&self) -> Self {
        self.budget.room()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.units * UNIT
    }

    /// Reduces the reservation to at most `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.resize(bytes.min(self.bytes())).expect("less than there is");
    }

    /// Sets the reservation to `bytes`, the memory that the work needs. If `bytes` is more than the whole budget,
    /// reserves the whole budget instead. So the budget never refuses a request that is the only one. The limit on the
    /// memory of the process may still refuse it.
    pub(crate) fn fit(&mut self, bytes: usize) -> Result<(), Problem> {
        self.resize(bytes.min(self.budget.0.units_max * UNIT))
    }

    /// Sets the reservation to `bytes` in total, or returns 503 if there is not enough free memory.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let Shared { free, units_max, kept, process, taken, .. } = &*self.budget.0;
        let (held, wanted) = (self.units, bytes.div_ceil(UNIT));
        if wanted < held {
            free.give_back(held - wanted);
        } else if wanted > held {
            let large = bytes > SMALL_BYTES_MAX;
            if large && process.is_short() {
                process.refused(Refused::Body);
                return Err(Problem::new(
                    Code::Overloaded,
                    "the process has no memory left for large bodies (`memory.max_bytes`); try again later",
                ));
            }
            let kept = if large { (*kept).min(units_max.saturating_sub(wanted)) } else { 0 };
            if !free.take(wanted - held, kept) {
                return Err(Problem::new(
                    Code::Overloaded,
                    "all memory for request bodies is in use; try again later, or raise `server.bodies_bytes_max`",
                ));
            }
        } else {
            return Ok(());
        }
        self.units = wanted;
        taken.increment((wanted as f64 - held as f64) * UNIT as f64);
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.units > 0 {
            self.budget.0.taken.decrement(self.bytes() as f64);
            self.budget.0.free.give_back(self.units);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A compressed stream once kept 8 MiB for its decoder and waited for another 28 MiB of a budget of 32 MiB. That
    /// much could never become free.
    #[tokio::test]
    async fn what_decoders_keep_is_never_waited_for() {
        const WINDOW: usize = 8 << 20;
        for (mib, largest) in [(12, 10), (32, 28), (64, 32), (512, 32)] {
            let largest = largest << 20;
            let budget = Budget::new(mib << 20).keeping_some_for_small_ones(largest).with_windows(largest, WINDOW);
            let mut windows = Vec::new();
            while let Ok(window) = budget.window(WINDOW) {
                windows.push(window);
            }
            assert!(!windows.is_empty(), "{mib} MiB");
            let line = tokio::time::timeout(Duration::from_secs(60), budget.wait(largest)).await;
            assert!(line.is_ok_and(|line| line.bytes() >= largest.min(2 << 20)), "{mib} MiB");
        }
    }

    #[tokio::test]
    async fn while_the_process_is_short_of_memory_only_small_rooms_are_given() {
        let process = Bound::new(Some(1000));
        let budget = Budget::new(8 << 20).within(&process);
        let mut held = budget.wait(1 << 20).await;
        process.note(1000);
        assert_eq!(budget.room().resize(1 << 20).err().unwrap().code, Code::Overloaded);
        assert_eq!(held.resize(2 << 20).err().unwrap().code, Code::Overloaded);
        assert!(held.resize(1 << 19).is_ok() && budget.room().resize(SMALL_BYTES_MAX).is_ok());
        let small = budget.wait(SMALL_BYTES_MAX).await;
        let waiting = budget.clone();
        let large = tokio::spawn(async move { waiting.wait(1 << 20).await.bytes() });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!large.is_finished(), "a large one waits");
        process.note(0);
        assert_eq!(large.await.unwrap(), 1 << 20);
        drop(small);
    }

    #[tokio::test]
    async fn alone_all_there_is_will_do() {
        let budget = Budget::new(1 << 20);
        let mut room = budget.room();
        room.fit(1 << 30).unwrap_or_else(|problem| panic!("alone it is done: {problem:?}"));
        assert_eq!(budget.room().fit(1).err().unwrap().code, Code::Overloaded);
        room.shrink(1 << 19);
        assert!(budget.room().fit(1 << 19).is_ok());
    }

    /// A large request that waits does not block small requests, and gets its memory once enough is free.
    #[tokio::test]
    async fn small_rooms_pass_a_large_one_that_waits() {
        let budget = Budget::new(8 << 20).keeping_some_for_small_ones(1 << 20);
        let held = budget.wait(2 << 20).await;
        let waiting = budget.clone();
        let mut large = tokio::spawn(async move { waiting.wait(6 << 20).await.bytes() });
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut large).await.is_err(),
            "some is kept for small ones"
        );
        let small = budget.wait(SMALL_BYTES_MAX).await;
        drop(held);
        assert_eq!(large.await.unwrap(), 6 << 20);
        drop(small);
        assert_eq!(budget.wait(usize::MAX).await.bytes(), 8 << 20);
    }
}
