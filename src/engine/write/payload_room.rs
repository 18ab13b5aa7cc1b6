//! Limits the bytes of shingles, texts and metadata that wait for the disk, in one collection and in all collections
//! together.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::lookup::Room;
use crate::types::retry_after;
use crate::verdicts::{CollectionError, Result};

/// The bytes that one permit of the semaphore represents.
const ROOM_BYTES: usize = 4096;

/// The bytes that may wait in all collections.
#[derive(Clone)]
pub(crate) struct PayloadBudget {
    free: Arc<Semaphore>,
    units: usize,
}

impl PayloadBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / ROOM_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(units)), units }
    }
}

/// The bytes that may wait in one collection, and how many of them are free.
pub(super) struct PayloadRoom {
    /// A semaphore with the same number of permits as `all`. The permits that are taken show how many bytes of this
    /// collection wait.
    own: Arc<Semaphore>,
    all: PayloadBudget,
    wait_max: Duration,
}

impl PayloadRoom {
    /// A write waits for its share of `all` for `wait_max` at most.
    pub(super) fn new(all: PayloadBudget, wait_max: Duration) -> Self {
        Self { own: Arc::new(Semaphore::new(all.units)), all, wait_max }
    }

    /// Waits until `bytes` are free, and takes them.
    pub(super) async fn take(&self, bytes: usize) -> Result<Room> {
        let units = bytes.div_ceil(ROOM_BYTES).min(self.all.units) as u32;
        let both = async { [acquire(&self.own, units).await, acquire(&self.all.free, units).await] };
        match tokio::time::timeout(self.wait_max, both).await {
            Ok(room) => Ok(Arc::new(room)),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "the queue for the disk is full (`commit.payload_bytes_max`); nothing was written; try again"
                    .into(),
                retry_after: retry_after::after_waiting(self.wait_max),
            }),
        }
    }

    pub(super) fn bytes_waiting(&self) -> usize {
        self.all.units.saturating_sub(self.own.available_permits()) * ROOM_BYTES
    }
}

async fn acquire(free: &Arc<Semaphore>, units: u32) -> OwnedSemaphorePermit {
    Arc::clone(free).acquire_many_owned(units).await.expect("the room is never closed")
}
