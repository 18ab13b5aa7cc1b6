//! How long a client should wait before it repeats a request that was refused only for the moment (`Retry-After`). A
//! client over its rate waits until the rate allows another request, which `http/quota/bucket.rs` computes.

use std::time::Duration;

/// For a shortage that ends by itself within moments, such as of places, memory, room in a queue, or file descriptors.
pub const SOON: Duration = Duration::from_secs(1);
/// For a collection that is being closed.
pub const CLOSING: Duration = Duration::from_secs(5);
/// For jobs of a collection that must end first.
pub const JOBS: Duration = Duration::from_secs(10);
/// For a state that an operator has to end: by making room, by repairing the disk, or by restarting the server.
pub const OPERATOR: Duration = Duration::from_secs(60);

/// Returns the wait if a queue stayed full for as long as a request may wait in it.
pub fn after_waiting(wait_max: Duration) -> Duration {
    wait_max.max(SOON)
}

/// Returns whole seconds, for a header: rounded up, so that no client comes back too early, and at least one.
pub fn seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1000).max(1) as u64
}
