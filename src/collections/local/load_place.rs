//! A load that has begun: the name of its collection, the lock that keeps other loads out, and a file for the bytes
//! that the client sends.

use std::fs::File;

use tokio::sync::OwnedMutexGuard;

use crate::types::CollectionName;

/// A load that has begun. No other can begin until it ends.
pub struct LoadPlace {
    pub(super) name: CollectionName,
    /// Has no name, so nothing of it is left after a crash.
    file: File,
    _only: OwnedMutexGuard<()>,
}

impl LoadPlace {
    pub(super) fn new(name: CollectionName, file: File, only: OwnedMutexGuard<()>) -> Self {
        Self { name, file, _only: only }
    }

    /// Returns the file for the bytes of the load. It is on the disk of the collections.
    pub fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}
