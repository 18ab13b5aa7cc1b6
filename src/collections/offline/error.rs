//! The reasons why work on a data directory failed.

use std::io;
use std::path::PathBuf;

use crate::load::LoadError;
use crate::store::StoreError;
use crate::store::backup::BackupError;
use crate::store::lock::LockError;

#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// Another process uses the data directory, or the directory cannot be locked.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The directory with the files cannot be read.
    #[error("cannot read {}", dir.display())]
    Unreadable {
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A collection's file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
    /// No collection was made from files of signatures.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No backup was made or restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
}

impl OfflineError {
    /// Whether another process uses the data directory.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Locked(LockError::Held { .. }) | Self::Backup(BackupError::Lock(LockError::Held { .. })))
    }
}
