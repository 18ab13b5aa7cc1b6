//! Memory for request bodies, shared by all requests. Knows nothing of its use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};

use crate::http::error::{Code, Problem};
use crate::telemetry::memory::{Bound, Refused};
use crate::telemetry::names;

/// The bytes that one semaphore permit of [`Budget`] represents.
const UNIT: usize = 4096;
/// The largest small body.
const SMALL_BYTES_MAX: usize = 256 * 1024;
/// The pause before a request looks again whether the process has memory.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// The memory for request bodies, shared by all requests.
#[derive(Clone)]
pub(crate) struct Budget {
    units: Arc<Semaphore>,
    units_max: usize,
    /// Units that large bodies leave free for small ones.
    kept: usize,
    /// Held by the one request that is waiting for a large amount of memory. The others queue here.
    waiting: Arc<Mutex<()>>,
    /// The units that decoders may keep.
    windows: Arc<Semaphore>,
    windows_max: usize,
    /// Notified when memory is given back.
    freed: Arc<Notify>,
    /// The bound of the whole process. While it is reached, large bodies get no memory.
    process: Arc<Bound>,
}

/// The memory of a decoder, which its request keeps while it waits for more; given back when dropped.
pub(crate) struct Window {
    _room: Room,
    _share: OwnedSemaphorePermit,
}

/// Reserved memory; given back when dropped.
pub(crate) struct Room {
    permit: Option<OwnedSemaphorePermit>,
    budget: Budget,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        let units_max = (bytes / UNIT).clamp(1, u32::MAX as usize);
        let (waiting, freed, process) = Default::default();
        let (units, windows) = (Arc::new(Semaphore::new(units_max)), Arc::new(Semaphore::new(0)));
        Self { units, units_max, kept: 0, waiting, windows, windows_max: 0, freed, process }
    }

    /// Gives decoders a part of their own: all that a request for `largest` bytes leaves. If that is less than
    /// `window_bytes`, the part is `window_bytes`, but at most three quarters of the budget. A request that waits for memory
    /// never waits for this part, because its holders may be waiting too.
    pub(crate) fn with_windows(self, largest: usize, window_bytes: usize) -> Self {
        let least = window_bytes.div_ceil(UNIT).min(self.units_max / 4 * 3);
        let windows_max = self.units_max.saturating_sub(self.kept + largest.div_ceil(UNIT)).max(least);
        Self { windows: Arc::new(Semaphore::new(windows_max)), windows_max, ..self }
    }

    /// Reserves the memory of a decoder, or returns 503.
    pub(crate) fn window(&self, bytes: usize) -> Result<Window, Problem> {
        let share = u32::try_from(bytes.div_ceil(UNIT)).ok();
        let share = share.and_then(|units| Arc::clone(&self.windows).try_acquire_many_owned(units).ok());
        let share = share.ok_or_else(|| {
            let detail = "all memory for the decoders of compressed bulk requests is in use; try again later, send the \
                          lines without compression, or raise `server.bodies_bytes_max`";
            Problem::new(Code::Overloaded, detail)
        })?;
        let mut room = self.room();
        room.resize(bytes)?;
        Ok(Window { _room: room, _share: share })
    }

    /// Gives large bodies no memory while the process has reached its bound.
    pub(crate) fn within(self, process: &Arc<Bound>) -> Self {
        Self { process: Arc::clone(process), ..self }
    }

    /// Keeps an eighth of the memory for bodies of up to [`SMALL_BYTES_MAX`], or less if a body of `largest` bytes
    /// would not fit otherwise. Without this, large bodies that make no progress would block all others.
    pub(crate) fn keeping_some_for_small_ones(mut self, largest: usize) -> Self {
        self.kept = (self.units_max / 8).min(self.units_max.saturating_sub(largest / UNIT + 1));
        self
    }

    /// An empty reservation; [`Room::resize`] fills it.
    pub(crate) fn room(&self) -> Room {
        Room { permit: None, budget: self.clone() }
    }

    /// Waits for memory, at most for the whole budget without the decoders' part. The caller must hold none except a
    /// [`Window`] meanwhile, because others may be waiting for it. Memory that becomes free while a large request waits
    /// goes to small ones.
    pub(crate) async fn wait(&self, bytes: usize) -> Room {
        let mut room = self.room();
        let kept = if self.windows_max > 0 { self.windows_max + self.kept } else { 0 };
        let bytes = bytes.min(self.units_max.saturating_sub(kept).max(1) * UNIT);
        if bytes <= SMALL_BYTES_MAX && room.resize(bytes).is_ok() {
            return room;
        }
        let _turn = self.waiting.lock().await;
        loop {
            if self.process.is_short() && bytes > SMALL_BYTES_MAX {
                tokio::time::sleep(SHORT_PAUSE).await;
                continue;
            }
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if room.resize(bytes).is_ok() {
                return room;
            }
            // Not for ever: the process may have had no memory, and then no notification follows.
            let _ = tokio::time::timeout(SHORT_PAUSE, freed).await;
        }
    }
}

impl Room {
    /// An empty reservation in the same budget.
    pub(crate) fn another(&self) -> Self {
        self.budget.room()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * UNIT
    }

    /// Reduces it to at most `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.resize(bytes.min(self.bytes())).expect("less than there is");
    }

    /// Grows it to hold the results of working on `bytes` bytes, at most to the whole budget: so a request that is
    /// alone is never refused.
    pub(crate) fn fit(&mut self, bytes: usize) -> Result<(), Problem> {
        self.resize(bytes.min(self.budget.units_max * UNIT))
    }

    /// Sets its size to `bytes` in total, or returns 503 if there is not enough free memory.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = bytes.div_ceil(UNIT);
        if let Some(permit) = self.permit.as_mut().filter(|_| wanted < held) {
            drop(permit.split(held - wanted));
            self.budget.freed.notify_waiters();
        } else if wanted > held {
            if bytes > SMALL_BYTES_MAX && self.budget.process.is_short() {
                self.budget.process.refused(Refused::Body);
                return Err(Problem::new(
                    Code::Overloaded,
                    "the process has no memory left for large bodies (`memory.max_bytes`); try again later",
                ));
            }
            let others = self.budget.units_max.saturating_sub(wanted);
            let kept = if bytes > SMALL_BYTES_MAX { self.budget.kept.min(others) } else { 0 };
            let more = u32::try_from(wanted - held)
                .ok()
                .filter(|more| *more as usize + kept <= self.budget.units.available_permits())
                .and_then(|more| Arc::clone(&self.budget.units).try_acquire_many_owned(more).ok())
                .ok_or_else(|| {
                    Problem::new(
                        Code::Overloaded,
                        "all memory for request bodies is in use; try again later, or raise `server.bodies_bytes_max`",
                    )
                })?;
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                None => self.permit = Some(more),
            }
        }
        metrics::gauge!(names::HTTP_BUFFERED_BYTES).increment((wanted as f64 - held as f64) * UNIT as f64);
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        metrics::gauge!(names::HTTP_BUFFERED_BYTES).decrement((permit.num_permits() * UNIT) as f64);
        drop(permit);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A compressed stream once kept 8 MiB for its decoder and waited for 28 MiB of 32, which could never be free.
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

    /// A large request that waits blocks no small ones, and gets its memory once it is free.
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
