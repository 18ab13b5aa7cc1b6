//! Places for requests that may last for a long time: bulk requests and streamed texts.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One of a limited number of places. Given back when dropped, and counted by a metric while held.
pub(super) struct StreamPlace {
    _permit: OwnedSemaphorePermit,
    taken: metrics::Gauge,
}

impl StreamPlace {
    /// Returns `None` if all places are taken. `gauge` counts the taken places.
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
