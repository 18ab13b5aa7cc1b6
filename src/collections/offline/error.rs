//! Why work on a data directory came to nothing.

use std::io;
use std::path::PathBuf;

use crate::store::StoreError;
use crate::store::backup::BackupError;
use crate::store::lock::LockError;

/// Why it came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// Another process uses the data directory, or it cannot be locked.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The folder with the files cannot be read.
    #[error("cannot read {}", dir.display())]
    Unreadable {
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A collection's file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
    /// No backup was made, or none restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
}
