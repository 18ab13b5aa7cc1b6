//! The settings of the audit log.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of the section `[audit]`, if that names a directory.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub dir: PathBuf,
    /// Whether checks are logged too.
    pub checks: bool,
    /// The most bytes of lines that may wait for the disk.
    pub queue_bytes_max: usize,
    /// The size at which a file is ended.
    pub file_bytes_max: u64,
    /// The most bytes of all files together.
    pub bytes_max: u64,
    /// How long lines are kept. `None`: until `bytes_max` is reached.
    pub retention: Option<Duration>,
}
