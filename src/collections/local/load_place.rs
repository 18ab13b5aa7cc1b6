//! A load that has begun: the name of its collection, the lock that keeps other loads out, and a file for the bytes
//! that the client sends.

use std::fs::File;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::engine::disk::DataDisk;
use crate::types::CollectionName;
use crate::verdicts::Result;

/// A load that has begun. No other load can begin until this one ends.
pub struct LoadPlace {
    name: CollectionName,
    /// The file has no name, so nothing of it is left after a crash.
    file: File,
    disk: Arc<DataDisk>,
    _only: OwnedMutexGuard<()>,
}

impl LoadPlace {
    pub(super) fn new(name: CollectionName, file: File, disk: Arc<DataDisk>, only: OwnedMutexGuard<()>) -> Self {
        Self { name, file, disk, _only: only }
    }

    /// Returns the name of the new collection.
    pub(super) fn name(&self) -> &CollectionName {
        &self.name
    }

    /// Returns the file for the bytes of the load. It is on the disk of the collections.
    pub fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Returns an error if the disk is so full that the remaining room is reserved for deletes.
    pub fn admit(&self) -> Result<()> {
        self.disk.admit()
    }
}
