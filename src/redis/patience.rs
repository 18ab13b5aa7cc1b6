//! How long a command of the operator tries again while a node does not answer, or too few replicas have a write.

use std::time::Duration;

use crate::verdicts::{CollectionError, Result};

/// How often a write is tried, and the pause between two tries.
pub(super) const TRIES: u32 = 10;
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Tries an operation until it succeeds, or fails for another reason.
pub(super) async fn patiently<T>(mut operation: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match operation().await {
            Err(CollectionError::StoreUnavailable { .. }) => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
    operation().await
}
