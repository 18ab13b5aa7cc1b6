//! A request's place among those that are being worked on.
//! Taken once the client has done its part, so that slow sending holds none; given back when the answer is made, so
//! that slow reading holds none. Knows nothing of bodies.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Code, Problem};

/// The place of one request. Clones are the same place.
#[derive(Clone)]
pub(super) struct Turn {
    places: Arc<Semaphore>,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Turn {
    /// Of a request that has no place yet.
    pub(super) fn new(places: &Arc<Semaphore>) -> Self {
        Self { places: Arc::clone(places), held: Arc::default() }
    }

    /// Takes the place, or 503 if there is none.
    pub(super) fn take(&self) -> Result<(), Problem> {
        let mut held = self.held.lock();
        if held.is_none() {
            *held = Some(self.begin()?);
        }
        Ok(())
    }

    /// A place for the first piece of work, or 503 if there is none.
    pub(super) fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map_err(|_| Problem::new(Code::Overloaded, "too many requests at once"))
    }

    /// Keeps the place of the last piece of work for the rest of the request.
    pub(super) fn keep(&self, piece: OwnedSemaphorePermit) {
        *self.held.lock() = Some(piece);
    }

    /// A place for another piece of work, of a request whose client has to be waited for in between.
    pub(super) async fn piece(&self) -> OwnedSemaphorePermit {
        piece(&self.places).await
    }

    /// Gives the place back.
    pub(super) fn end(&self) {
        self.held.lock().take();
    }
}

/// A place for one piece of work.
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
