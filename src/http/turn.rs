//! A request's place among the requests of its class that are being worked on.
//! The place is taken once the client has sent its body, and is given back once the answer is made. So a client that
//! sends or reads slowly holds no place. Knows nothing of bodies.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::admission::Places;
use super::error::Problem;

/// The place of one request.
pub(super) struct Turn {
    places: Arc<Places>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Makes the turn of a request that has no place yet.
    pub(super) fn new(places: &Arc<Places>) -> Self {
        Self { places: Arc::clone(places), held: Mutex::default() }
    }

    /// Takes the place; 503 if none is free.
    pub(super) fn take(&self) -> Result<(), Problem> {
        let mut held = self.held.lock();
        if held.is_none() {
            *held = Some(self.begin()?);
        }
        Ok(())
    }

    /// Returns a place for the first piece of work; 503 if none is free.
    pub(super) fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.places.take()
    }

    /// Keeps the place of the last piece of work for the rest of the request.
    pub(super) fn keep(&self, piece: OwnedSemaphorePermit) {
        *self.held.lock() = Some(piece);
    }

    /// Waits for a place for another piece of work. This is for requests that wait for their client between two pieces.
    pub(super) async fn piece(&self) -> OwnedSemaphorePermit {
        self.places.piece().await
    }

    pub(super) fn end(&self) {
        self.held.lock().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HttpLimits;
    use crate::http::admission::{Admission, Class};
    use crate::http::error::Code;

    #[tokio::test]
    async fn a_place_is_held_once_and_until_its_end() {
        let defaults = crate::config::defaults().server.limits;
        let admission = Admission::new(&HttpLimits { requests_concurrent_max: 1, ..defaults }, 1);
        let places = admission.of(Class::Single);
        let (one, two) = (Turn::new(places), Turn::new(places));
        assert!(one.take().is_ok() && one.take().is_ok());
        assert_eq!(two.take().unwrap_err().code, Code::Overloaded);
        one.end();
        two.keep(two.piece().await);
        assert!(one.take().is_err());
        drop(two);
        assert_eq!(places.free(), 1);
    }
}
