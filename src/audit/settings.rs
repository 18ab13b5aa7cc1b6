//! The settings of the audit log.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of the section `[audit]`, if this section names a directory.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub dir: PathBuf,
    /// Whether checks are logged too.
    pub checks: bool,
    /// The maximum number of bytes of the lines that wait for the disk.
    pub queue_bytes_max: usize,
    /// When a file has this size, in bytes, the log continues in a new file.
    pub file_bytes_max: u64,
    /// The maximum number of bytes of all files together.
    pub bytes_max: u64,
    /// How long lines are kept. `None`: until `bytes_max` is reached.
    pub retention: Option<Duration>,
}
