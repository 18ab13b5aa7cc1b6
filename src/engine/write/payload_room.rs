//! Limits the bytes of shingles and texts that wait for the disk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::engine::lookup::Room;
use crate::verdicts::{CollectionError, Result};

/// The bytes that one permit of the semaphore represents.
const ROOM_BYTES: usize = 4096;

/// The bytes that may wait, and how many of them are free.
pub(super) struct PayloadRoom {
    free: Arc<Semaphore>,
    units: usize,
    wait_max: Duration,
}

impl PayloadRoom {
    /// Makes room for `bytes`. A write waits for its share for `wait_max` at most.
    pub(super) fn new(bytes: usize, wait_max: Duration) -> Self {
        let units = (bytes / ROOM_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(units)), units, wait_max }
    }

    /// Waits until `bytes` are free, and takes them.
    pub(super) async fn take(&self, bytes: usize) -> Result<Room> {
        let units = bytes.div_ceil(ROOM_BYTES).min(self.units) as u32;
        match tokio::time::timeout(self.wait_max, Arc::clone(&self.free).acquire_many_owned(units)).await {
            Ok(room) => Ok(Arc::new(room.expect("the room is never closed"))),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "the queue for the disk is full (`commit.payload_bytes_max`); nothing was written; try again"
                    .into(),
                retry_after: self.wait_max.max(Duration::from_secs(1)),
            }),
        }
    }

    pub(super) fn bytes_waiting(&self) -> usize {
        self.units.saturating_sub(self.free.available_permits()) * ROOM_BYTES
    }
}
