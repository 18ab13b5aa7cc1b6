//! The folder with the collections' files, one file a collection: `collections/NAME.sqlite`.
//! In: a data directory, which belongs to this process while the value lives. Out: names and paths. Knows nothing of what
//! is in the files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::lock::DataDirLock;
use crate::store::{self, backup};
use crate::types::CollectionName;
use crate::verdicts::{CollectionError, Medium, Result};

/// Where collections are, in the data directory.
const KEPT: &str = "collections";
/// Where they are with [`Medium::Memory`].
const NOT_KEPT: &str = "collections.memory";

/// The folder. Its process lets go of the data directory when this is dropped.
pub(super) struct Folder {
    dir: PathBuf,
    medium: Medium,
    _lock: DataDirLock,
}

impl Folder {
    /// Locks the data directory, removes what a crash left there, and names in the log what is foreign.
    pub(super) fn take(data_dir: &Path, lock_wait: Duration, medium: Medium) -> Result<Self> {
        let lock =
            DataDirLock::acquire(data_dir, lock_wait).map_err(|error| CollectionError::Store(error.to_string()))?;
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

    /// A collection's file, there or not.
    pub(super) fn path(&self, name: &CollectionName) -> PathBuf {
        store::path_of(&self.dir, name)
    }

    /// The collections that have a file.
    pub(super) fn names(&self) -> Result<Vec<CollectionName>> {
        store::list(&self.dir).map_err(|error| CollectionError::of_system(self.dir.display(), &error))
    }

    /// The bytes of a collection's file and of its log.
    pub(super) fn bytes_of(&self, name: &CollectionName) -> u64 {
        let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        let path = self.path(name);
        bytes(&path) + bytes(&store::log_of(&path))
    }

    /// Removes what was not to be kept, once every file is closed.
    pub(super) fn leave(&self) {
        if self.medium == Medium::Memory
            && let Err(error) = remove_all(&self.dir)
        {
            tracing::warn!(%error, "what was not to be kept is removed at the next start");
        }
    }
}

/// Makes the folder where it is missing, and looks through it.
fn clean(dir: &Path) -> io::Result<()> {
    store::make_dir(dir)?;
    for leftover in store::clean_leftovers(dir)? {
        tracing::warn!(path = %leftover.display(), "removed what a crash left of a creation or a drop");
    }
    for stranger in store::strangers(dir)? {
        match store::log_without_database(&stranger) {
            Some(name) => tracing::warn!(
                path = %stranger.display(), collection = %name,
                "ignoring it: not a collection, but a log without its database, whose file is gone; restore a backup"
            ),
            None => tracing::warn!(path = %stranger.display(), "ignoring it: not a collection"),
        }
    }
    Ok(())
}

/// Removes the folder of collections that are not kept; nothing else is ever written there.
fn remove_all(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Ok(()) => tracing::info!(path = %dir.display(), "removed what was not to be kept"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(CollectionError::Store(format!("{}: {error}", dir.display()))),
    }
    Ok(())
}
