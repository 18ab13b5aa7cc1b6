//! The decision lock of a collection, which a write holds while it is decided. It measures how long it is held.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use metrics::Histogram;
use parking_lot::MutexGuard;

use super::order::Order;

/// The decision lock, held.
pub(super) struct OpenOrder<'a> {
    order: MutexGuard<'a, Order>,
    since: Instant,
    seconds: &'a Histogram,
}

impl<'a> OpenOrder<'a> {
    pub(super) fn new(order: MutexGuard<'a, Order>, seconds: &'a Histogram) -> Self {
        Self { order, since: Instant::now(), seconds }
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
