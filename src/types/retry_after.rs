//! The seconds that a client waits before it repeats a request that was refused for now (`Retry-After`). A wait that is
//! computed, such as that of a client over its rate, is not here.

use std::time::Duration;

/// If what is in the way passes by itself within moments: places, memory, a queue, a file descriptor.
pub const SOON: Duration = Duration::from_secs(1);
/// If a collection is being closed.
pub const CLOSING: Duration = Duration::from_secs(5);
/// If jobs of a collection must end.
pub const JOBS: Duration = Duration::from_secs(10);
/// If an operator has to act first: to make room, to look at the disk, or to restart the server.
pub const OPERATOR: Duration = Duration::from_secs(60);
