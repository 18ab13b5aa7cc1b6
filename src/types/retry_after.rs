//! How long a client waits before it repeats a request that was refused for now (`Retry-After`). A client over its rate
//! waits until the rate allows another request, which `http/quota` computes.

use std::time::Duration;

/// If what is in the way passes by itself within moments: places, memory, a queue, a file descriptor.
pub const SOON: Duration = Duration::from_secs(1);
/// If a collection is being closed.
pub const CLOSING: Duration = Duration::from_secs(5);
/// If jobs of a collection must end.
pub const JOBS: Duration = Duration::from_secs(10);
/// If an operator has to act first: to make room, to look at the disk, or to restart the server.
pub const OPERATOR: Duration = Duration::from_secs(60);

/// If a queue was full for as long as a request may wait in it.
pub fn after_waiting(wait_max: Duration) -> Duration {
    wait_max.max(SOON)
}

/// Returns whole seconds, for a header: rounded up, so that no client comes back too early, and at least one.
pub fn seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1000).max(1) as u64
}
