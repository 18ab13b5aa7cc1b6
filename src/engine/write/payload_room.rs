//! Room for what is kept beside signatures, on its way to the disk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::engine::lookup::Room;
use crate::verdicts::{CollectionError, Result};

/// Bytes that a permit stands for.
const ROOM_BYTES: usize = 4096;

/// All of the room.
pub(super) struct PayloadRoom {
    free: Arc<Semaphore>,
    units: usize,
    wait_max: Duration,
}

impl PayloadRoom {
    /// For so many bytes; a write waits at most so long.
    pub(super) fn new(bytes: usize, wait_max: Duration) -> Self {
        let units = (bytes / ROOM_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(units)), units, wait_max }
    }

    /// Waits until there is room for so many bytes.
    pub(super) async fn take(&self, bytes: usize) -> Result<Room> {
        let units = bytes.div_ceil(ROOM_BYTES).min(self.units) as u32;
        match tokio::time::timeout(self.wait_max, Arc::clone(&self.free).acquire_many_owned(units)).await {
            Ok(room) => Ok(Arc::new(room.expect("the room is never closed"))),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "what is to be kept of other documents waits for the disk; nothing was written".into(),
                retry_after: self.wait_max.max(Duration::from_secs(1)),
            }),
        }
    }

    pub(super) fn bytes_waiting(&self) -> usize {
        self.units.saturating_sub(self.free.available_permits()) * ROOM_BYTES
    }
}
