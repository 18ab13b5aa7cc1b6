//! The progress of a backup or a restore. The thread that works shares it with the threads that show or cancel the
//! work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress, counted in approximate bytes.
#[derive(Debug, Default)]
pub struct Progress {
    expected: AtomicU64,
    done: AtomicU64,
    copied: AtomicU64,
    cancelled: AtomicBool,
    finished: AtomicBool,
}

impl Progress {
    /// Sets the total number of units.
    pub fn expect(&self, units: u64) {
        self.expected.store(units, Ordering::Relaxed);
    }

    /// Returns the share that is done, from 0 to 1. It is 1 only when everything is done.
    pub fn share(&self) -> f64 {
        if self.finished.load(Ordering::Relaxed) {
            return 1.0;
        }
        let expected = self.expected.load(Ordering::Relaxed).max(1);
        (self.done.load(Ordering::Relaxed) as f64 / expected as f64).min(0.999)
    }

    /// Returns the number of bytes in complete copies.
    pub fn copied_bytes(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    /// Asks the work to stop. The work stops within a fraction of a second.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn stage(self: &Arc<Self>, units: u64) -> Stage {
        Stage { progress: self.clone(), from: self.done.load(Ordering::Relaxed), units }
    }

    pub(super) fn copied(&self, bytes: u64) {
        self.copied.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }
}

/// A part of the work. Dropping it marks the part as done.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    progress: Arc<Progress>,
    from: u64,
    units: u64,
}

impl Stage {
    /// Marks this share of the part as done.
    pub(super) fn at(&self, share: f64) {
        let units = (self.units as f64 * share.clamp(0.0, 1.0)) as u64;
        self.progress.done.store(self.from + units, Ordering::Relaxed);
    }

    /// Returns the progress that this part belongs to.
    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Returns whether the work was asked to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }

    /// Returns the size of this part.
    pub(super) fn units(&self) -> u64 {
        self.units
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.progress.done.store(self.from + self.units, Ordering::Relaxed);
    }
}
