//! How far a backup or a restore is, shared by who does it, who shows it and who calls it off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts work in bytes, roughly; whoever works tells, anyone reads.
#[derive(Debug, Default)]
pub struct Progress {
    expected: AtomicU64,
    done: AtomicU64,
    copied: AtomicU64,
    cancelled: AtomicBool,
    finished: AtomicBool,
}

impl Progress {
    /// How much there will be.
    pub fn expect(&self, units: u64) {
        self.expected.store(units, Ordering::Relaxed);
    }

    /// The share that is done, 0 to 1; 1 only when all is.
    pub fn share(&self) -> f64 {
        if self.finished.load(Ordering::Relaxed) {
            return 1.0;
        }
        let expected = self.expected.load(Ordering::Relaxed).max(1);
        (self.done.load(Ordering::Relaxed) as f64 / expected as f64).min(0.999)
    }

    /// Bytes of the copies that are whole.
    pub fn copied_bytes(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    /// Asks for an end; it comes within a fraction of a second.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether an end was asked for.
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

/// A part of the work; dropped, it is done.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    progress: Arc<Progress>,
    from: u64,
    units: u64,
}

impl Stage {
    /// This share of it is done.
    pub(super) fn at(&self, share: f64) {
        let units = (self.units as f64 * share.clamp(0.0, 1.0)) as u64;
        self.progress.done.store(self.from + units, Ordering::Relaxed);
    }

    /// What it is a part of.
    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Whether an end was asked for.
    pub(super) fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }

    /// How much it is.
    pub(super) fn units(&self) -> u64 {
        self.units
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.progress.done.store(self.from + self.units, Ordering::Relaxed);
    }
}
