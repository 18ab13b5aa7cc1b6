//! Makes a collection from files of precomputed signatures, in a data directory that no server uses.

use std::path::Path;
use std::time::Duration;

use super::OfflineError;
use crate::load::{self, LoadError, LoadFile, LoadProgress, Loaded};
use crate::store::lock::DataDirLock;
use crate::store::{self, StoreError};
use crate::types::CollectionName;
use crate::verdicts::Settings;

/// Makes the collection `name`, whole or not at all. If `stop` returns true while rows are read, the load is cancelled.
pub fn load(
    data_dir: &Path,
    lock_wait: Duration,
    (name, files): (&CollectionName, Vec<LoadFile>),
    default: &Settings,
    progress: &dyn Fn(LoadProgress),
    stop: &dyn Fn() -> bool,
) -> Result<Loaded, OfflineError> {
    let _lock = DataDirLock::acquire(data_dir, lock_wait)?;
    store::backup::refuse_half_restored(data_dir)?;
    let dir = data_dir.join("collections");
    let unusable = |source| OfflineError::Unreadable { dir: dir.clone(), source };
    store::make_dir(&dir).map_err(unusable)?;
    store::clean_leftovers(&dir).map_err(unusable)?;
    let path = store::path_of(&dir, name);
    if path.exists() {
        return Err(StoreError::Exists { path }.into());
    }
    let made = load::build(files, (name, &path), default, progress, stop)?;
    made.file.publish().map_err(LoadError::Store)?;
    Ok(made.loaded)
}
