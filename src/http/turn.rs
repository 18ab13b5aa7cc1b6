//! A request's place among the requests that are being worked on.
//! It is taken once the client has sent its body, and given back once the answer is made. So neither slow sending nor
//! slow reading holds a place. Knows nothing of bodies.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Code, Problem};

/// The place of one request. Clones share it.
#[derive(Clone)]
pub(super) struct Turn {
    places: Arc<Semaphore>,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Turn {
    /// A request that has no place yet.
    pub(super) fn new(places: &Arc<Semaphore>) -> Self {
        Self { places: Arc::clone(places), held: Arc::default() }
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
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map_err(|_| {
            Problem::new(
                Code::Overloaded,
                "too many requests at once (`server.requests_concurrent_max`); try again later",
            )
        })
    }

    /// Keeps the place of the last piece of work for the rest of the request.
    pub(super) fn keep(&self, piece: OwnedSemaphorePermit) {
        *self.held.lock() = Some(piece);
    }

    /// Waits for a place for another piece of work. For requests that wait for their client in between.
    pub(super) async fn piece(&self) -> OwnedSemaphorePermit {
        piece(&self.places).await
    }

    pub(super) fn end(&self) {
        self.held.lock().take();
    }
}

/// Waits for a place for one piece of work.
pub(super) async fn piece(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(places).acquire_owned().await.expect("the places are never closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_held_once_and_until_its_end() {
        let places = Arc::new(Semaphore::new(1));
        let (one, two) = (Turn::new(&places), Turn::new(&places));
        assert!(one.take().is_ok() && one.clone().take().is_ok());
        assert_eq!(two.take().unwrap_err().code, Code::Overloaded);
        one.end();
        two.keep(two.piece().await);
        assert!(one.take().is_err());
        drop(two);
        assert_eq!(places.available_permits(), 1);
    }
}
