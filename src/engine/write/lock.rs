//! The decision lock of a collection. It guards the commit order, and a write holds it while the write is decided. The
//! lock also measures how long decisions hold it, and shows in advance if a thread will hold it for a long time.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use metrics::Histogram;
use parking_lot::{Mutex, MutexGuard};

use super::order::Order;
use crate::verdicts::Result;

/// The decision lock of one collection.
pub(super) struct DecisionLock {
    order: Mutex<Order>,
    /// The number of threads that hold the lock for a long time, or are about to.
    held_long: AtomicU64,
    /// How long decisions hold the lock.
    seconds: Histogram,
}

/// The decision lock, held for a decision.
pub(super) struct OpenOrder<'a> {
    order: MutexGuard<'a, Order>,
    since: Instant,
    seconds: &'a Histogram,
}

/// As long as this value exists, the decision lock counts as held for a long time.
pub(super) struct HoldsLong<'a>(&'a AtomicU64);

impl DecisionLock {
    pub(super) fn new(order: Order, seconds: Histogram) -> Self {
        Self { order: Mutex::new(order), held_long: AtomicU64::new(0), seconds }
    }

    /// Takes the lock, even if the collection is closed.
    pub(super) fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock()
    }

    /// Takes the lock for a decision. Returns an error if no write is accepted.
    pub(super) fn open(&self) -> Result<OpenOrder<'_>> {
        let order = OpenOrder { order: self.order.lock(), since: Instant::now(), seconds: &self.seconds };
        order.open()?;
        Ok(order)
    }

    /// Announces that the lock will be held for a long time, until the returned value is dropped.
    pub(super) fn hold_long(&self) -> HoldsLong<'_> {
        self.held_long.fetch_add(1, Ordering::Release);
        HoldsLong(&self.held_long)
    }

    /// Returns whether threads that serve requests should avoid waiting for the lock.
    pub(super) fn is_held_long(&self) -> bool {
        self.held_long.load(Ordering::Acquire) > 0
    }
}

impl Drop for HoldsLong<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Deref for OpenOrder<'_> {
    type Target = Order;

    fn deref(&self) -> &Order {
        &self.order
    }
}

impl DerefMut for OpenOrder<'_> {
    fn deref_mut(&mut self) -> &mut Order {
        &mut self.order
    }
}

impl Drop for OpenOrder<'_> {
    fn drop(&mut self) {
        self.seconds.record(self.since.elapsed());
    }
}
