//! The directory of the collections' files. Each collection has one file: `collections/NAME.sqlite`. Input: a data
//! directory, which belongs to this process while this value exists. Output: names and paths. It knows nothing of the
//! contents of the files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::lock::DataDirLock;
use crate::store::{self, backup};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Medium, Result};

/// The directory of the collections, in the data directory.
const KEPT: &str = "collections";
/// The directory of the collections with [`Medium::Memory`].
const NOT_KEPT: &str = "collections.memory";

/// The directory. The lock on the data directory is released when this is dropped.
pub(super) struct Folder {
    dir: PathBuf,
    medium: Medium,
    _lock: DataDirLock,
}

impl Folder {
    /// Locks the data directory, removes leftovers of a crash, and logs files that do not belong there.
    pub(super) fn take(data_dir: &Path, lock_wait: Duration, medium: Medium) -> Result<Self> {
        let lock = DataDirLock::acquire(data_dir, lock_wait)?;
        let not_kept = data_dir.join(NOT_KEPT);
        remove_all(&not_kept)?;
        let dir = match medium {
            Medium::Disk => {
                backup::refuse_half_restored(data_dir).map_err(|error| CollectionError::Store(error.chain()))?;
                data_dir.join(KEPT)
            }
            Medium::Memory => {
                tracing::warn!("data.store is \"memory\": NOTHING IS KEPT when this process ends");
                not_kept
            }
        };
        clean(&dir).map_err(|error| CollectionError::Store(format!("{}: {error}", dir.display())))?;
        Ok(Self { dir, medium, _lock: lock })
    }

    /// Returns the path of a collection's file. The file may be missing.
    pub(super) fn path(&self, name: &CollectionName) -> PathBuf {
        store::path_of(&self.dir, name)
    }

    /// The collections that have a file.
    pub(super) fn names(&self) -> Result<Vec<CollectionName>> {
        store::list(&self.dir).map_err(|error| CollectionError::of_system(self.dir.display(), &error))
    }

    /// Returns the size of a collection's file and of its log, in bytes.
    pub(super) fn bytes_of(&self, name: &CollectionName) -> u64 {
        let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        let path = self.path(name);
        bytes(&path) + bytes(&store::log_of(&path))
    }

    /// Removes the directory of [`Medium::Memory`], after every file was closed.
    pub(super) fn leave(&self) {
        if self.medium == Medium::Memory
            && let Err(error) = remove_all(&self.dir)
        {
            tracing::warn!(%error, "cannot remove the data of data.store = \"memory\"; the next start removes it");
        }
    }
}

/// Creates the directory if it is missing, and removes or reports files that do not belong there.
fn clean(dir: &Path) -> io::Result<()> {
    store::make_dir(dir)?;
    for leftover in store::clean_leftovers(dir)? {
        tracing::warn!(path = %leftover.display(), "removed leftovers of an unfinished create or drop");
    }
    for stranger in store::strangers(dir)? {
        match store::log_without_database(&stranger) {
            Some(name) => tracing::warn!(
                path = %stranger.display(), collection = %name,
                "ignoring a path that is not a collection: a write-ahead log whose database file is missing; restore a \
                 backup"
            ),
            None => tracing::warn!(path = %stranger.display(), "ignoring a path that is not a collection"),
        }
    }
    Ok(())
}

/// Removes the directory of [`Medium::Memory`]. Nothing else is ever written there.
fn remove_all(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Ok(()) => tracing::info!(path = %dir.display(), "removed the data of data.store = \"memory\""),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(CollectionError::Store(format!("{}: {error}", dir.display()))),
    }
    Ok(())
}
