//! Places for requests that may be there for long: bulk requests and streamed texts.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One of a bounded number of places; given back when dropped, and counted while it is held.
pub(super) struct StreamPlace {
    _permit: OwnedSemaphorePermit,
    taken: metrics::Gauge,
}

impl StreamPlace {
    /// `None` if all are taken; `gauge` counts those that are.
    pub(super) fn take(places: &Arc<Semaphore>, gauge: &'static str) -> Option<Self> {
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        let taken = metrics::gauge!(gauge);
        taken.increment(1.0);
        Some(Self { _permit: permit, taken })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.taken.decrement(1.0);
    }
}
