//! The right to write an id: its latch, and a place in the commit queue. A write holds this right from before the id is
//! looked up until the write is durable or undone.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::latch::{Latch, Latches};
use crate::types::{DocId, retry_after};
use crate::verdicts::{CollectionError, Result};

/// The right to write an id, until dropped.
pub(super) struct WriteTurn {
    _latch: Latch,
    _place: OwnedSemaphorePermit,
}

pub(super) struct WriteTurns {
    latches: Arc<Latches>,
    places: Arc<Semaphore>,
    places_max: usize,
    wait_max: Duration,
}

impl WriteTurns {
    /// Allows `places_max` writes at a time. A write waits for its place for `wait_max` at most.
    pub(super) fn new(places_max: usize, wait_max: Duration) -> Self {
        Self { latches: Arc::default(), places: Arc::new(Semaphore::new(places_max)), places_max, wait_max }
    }

    /// Returns how many places are taken.
    pub(super) fn taken(&self) -> usize {
        self.places_max - self.places.available_permits()
    }

    /// Waits for the right to write an id.
    pub(super) async fn take(&self, id: &DocId) -> Result<WriteTurn> {
        let taken = async {
            let latch = self.latches.acquire(id).await;
            let place = Arc::clone(&self.places).acquire_owned().await.expect("the places are never closed");
            WriteTurn { _latch: latch, _place: place }
        };
        tokio::time::timeout(self.wait_max, taken).await.map_err(|_| CollectionError::Overloaded {
            detail: format!(
                "the write waited too long for {} other writes, or for an earlier write of the same id; nothing was \
                 written; try again",
                self.taken()
            ),
            retry_after: retry_after::after_waiting(self.wait_max),
        })
    }

    /// Returns whether so few places are free that work in the background must leave them to clients.
    pub(super) fn are_scarce(&self) -> bool {
        self.places.available_permits() * 2 < self.places_max
    }

    /// Returns the right to write an id, if it is free at once.
    pub(super) fn try_take(&self, id: &DocId) -> Option<WriteTurn> {
        let latch = self.latches.try_acquire(id)?;
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(WriteTurn { _latch: latch, _place: place })
    }
}
