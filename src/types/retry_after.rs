//! How long a client should wait before it repeats a request that was refused only for the moment (`Retry-After`). For
//! a client over its rate, `http/quota/bucket.rs` computes the wait.

use std::time::Duration;

/// For a shortage of places, memory, queue room or file descriptors. Such a shortage ends by itself within moments.
pub const SOON: Duration = Duration::from_secs(1);
/// For a collection that is being closed.
pub const CLOSING: Duration = Duration::from_secs(5);
/// For jobs of a collection that must end first.
pub const JOBS: Duration = Duration::from_secs(10);
/// For a state that an operator has to end: by making room, by repairing the disk, or by restarting the server.
pub const OPERATOR: Duration = Duration::from_secs(60);

/// Returns the wait for a request that was refused because a queue stayed full for `wait_max`, the longest wait in it.
pub fn after_waiting(wait_max: Duration) -> Duration {
    wait_max.max(SOON)
}

/// Returns the whole seconds for the header. They are rounded up, so that no client returns too early, and at least 1.
pub fn seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1000).max(1) as u64
}
