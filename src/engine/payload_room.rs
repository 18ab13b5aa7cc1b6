//! Room for what is kept beside signatures, on its way to the disk.
//! In: bytes. Out: a permit, to be held until they are there.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{CollectionError, Result};

/// Bytes that a permit stands for.
const PERMIT_BYTES: usize = 4096;

/// So many bytes may wait for the disk.
pub(crate) struct PayloadRoom {
    free: Arc<Semaphore>,
    permits: usize,
    bytes_max: usize,
    /// How long to wait for room.
    wait: Duration,
}

impl PayloadRoom {
    pub(crate) fn new(bytes_max: usize, wait: Duration) -> Self {
        let permits = (bytes_max / PERMIT_BYTES).clamp(1, u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(permits)), permits, bytes_max, wait }
    }

    /// Waits until there is room for so many bytes. What is longer than all the room takes all of it.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Arc<OwnedSemaphorePermit>> {
        let permits = bytes.div_ceil(PERMIT_BYTES).min(self.permits) as u32;
        match tokio::time::timeout(self.wait, Arc::clone(&self.free).acquire_many_owned(permits)).await {
            Ok(room) => Ok(Arc::new(room.expect("the room is never closed"))),
            Err(_) => Err(CollectionError::Overloaded {
                detail: "what is to be kept of other documents waits for the disk; nothing was written".into(),
                retry_after: self.wait.max(Duration::from_secs(1)),
            }),
        }
    }

    /// Bytes that wait for the disk.
    pub(crate) fn bytes_waiting(&self) -> usize {
        self.permits.saturating_sub(self.free.available_permits()) * PERMIT_BYTES
    }

    /// Bytes that may.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}
