//! Makes a backup of a data directory that no server uses.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::copy::CopyLimits;
use super::error::{BackupError, Result};
use super::making::{Backup, units};
use super::manifest::Manifest;
use super::progress::Progress;
use super::restore::refuse_half_restored;
use crate::store::data_dir::lock::DataDirLock;
use crate::store::data_dir::{Inventory, files};
use crate::store::handle::Store;
use crate::types::{CollectionName, TimestampMs};

/// Prepares a file for copying: upgrades it to this version's format, checks its log, and moves the log into it.
/// Nothing else may have the file open.
pub fn settle(path: &Path) -> Result<()> {
    let (_, writer, _) = Store::open(path)?;
    Ok(writer.close()?)
}

/// Makes a backup of a data directory that no server uses, as a member of `series` if one is given.
pub fn offline(
    data_dir: &Path,
    dir: &Path,
    series: Option<&str>,
    made: TimestampMs,
    progress: Arc<Progress>,
) -> Result<Manifest> {
    let _lock = DataDirLock::acquire(data_dir, Duration::ZERO)?;
    refuse_half_restored(data_dir)?;
    let collections = data_dir.join("collections");
    let listing = |source| BackupError::Io { path: collections.clone(), doing: "listing it", source };
    files::finish_repairs(&collections).map_err(listing)?;
    let present = files::list(&collections).map_err(listing)?;
    let reading = |source| BackupError::Io { path: Inventory::path_in(data_dir), doing: "reading it", source };
    let missing = Inventory::missing_of(data_dir, &present).map_err(reading)?;
    // Check this before the leftovers are removed, because the removal also deletes the traces of interrupted drops.
    let is_lost = |name: &&CollectionName| !files::is_being_dropped(&files::path_of(&collections, name));
    if let Some(name) = missing.iter().find(is_lost) {
        return Err(BackupError::CollectionMissing { collection: name.to_string() });
    }
    files::clean_leftovers(&collections).map_err(listing)?;
    let names = files::list(&collections).map_err(listing)?;
    let paths: Vec<_> = names.iter().map(|name| files::path_of(&collections, name)).collect();
    let mut backup = Backup::begin(dir, CopyLimits::default(), Arc::clone(&progress))?;
    if let Some(series) = series {
        backup = backup.of_series(series)?;
    }
    progress.expect(paths.iter().map(|path| units(path)).sum());
    for path in paths {
        settle(&path)?;
        backup.add(&path, || false)?;
    }
    backup.finish(made)
}
