//! Restores a backup into an empty data directory, completely or not at all.
//! The files are written to a temporary directory and compared with the manifest. When all of them are on disk, the
//! directory gets the name from which collections are served. If a restore was interrupted, the temporary directory is
//! still there, and a server refuses to start.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::check_copy;
use super::error::{BackupError, Result};
use super::folder::entries;
use super::manifest::{self, Manifest, ManifestEntry};
use super::progress::Progress;
use crate::store::data_dir::Inventory;
use crate::store::data_dir::files::sync_dir;
use crate::store::data_dir::lock::{DataDirLock, LOCK_FILE};
use crate::store::error::StoreError;
use crate::store::format::creation::finish_new;
use crate::types::CollectionName;

/// The directory from which collections are served.
const COLLECTIONS: &str = "collections";
/// The name of that directory until it is complete.
const RESTORING: &str = "collections.restoring";
/// Many file systems have this directory at their root, and a data directory may be such a root.
const LOST_AND_FOUND: &str = "lost+found";

/// Restores the backup in `dir` into a data directory that is empty or missing. After an error, the data directory
/// holds no collections, as before.
pub fn restore(dir: &Path, data_dir: &Path, progress: &Arc<Progress>) -> Result<Manifest> {
    let manifest = Manifest::read(dir)?;
    manifest.check_files(dir)?;
    progress.expect(manifest.collections.iter().map(|entry| entry.bytes).sum());
    let failed = |doing| move |source| BackupError::Io { path: data_dir.to_owned(), doing, source };
    // Check before locking, too: a directory full of other files must not get a lock file.
    check_empty(data_dir)?;
    let _lock = DataDirLock::acquire(data_dir, Duration::ZERO)?;
    check_empty(data_dir)?;
    let restoring = data_dir.join(RESTORING);
    remove(&restoring).map_err(failed("removing the leftovers of an interrupted restore"))?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&restoring).map_err(failed("creating a directory"))?;
    // Sync the name of this directory before the first file is written: the name marks the restore as incomplete.
    sync_dir(data_dir).map_err(failed("creating a directory"))?;
    let restored = manifest.collections.iter().try_for_each(|entry| restore_one(dir, &restoring, entry, progress));
    if let Err(error) = restored {
        if let Err(error) = remove(&restoring) {
            tracing::warn!(path = %restoring.display(), %error, "could not remove the files of a failed restore");
        }
        return Err(error);
    }
    sync_dir(&restoring)
        .and_then(|()| fs::rename(&restoring, data_dir.join(COLLECTIONS)))
        .and_then(|()| sync_dir(data_dir))
        .map_err(failed("renaming the restored directory"))?;
    // A file that disappears before the first start must be missed, too.
    let names: Vec<_> = manifest.collections.iter().filter_map(|entry| CollectionName::new(&entry.name).ok()).collect();
    Inventory::open(data_dir, &names).map_err(failed("writing the list of collections"))?;
    progress.finish();
    Ok(manifest)
}

/// Returns an error if a restore was interrupted here.
pub fn refuse_half_restored(data_dir: &Path) -> Result<()> {
    let leftover = data_dir.join(RESTORING);
    if leftover.exists() {
        return Err(BackupError::HalfRestored { dir: data_dir.to_owned(), leftover });
    }
    Ok(())
}

fn restore_one(dir: &Path, restoring: &Path, entry: &ManifestEntry, progress: &Arc<Progress>) -> Result<()> {
    let (from, to) = (dir.join(&entry.file), restoring.join(&entry.file));
    let stage = progress.stage(entry.bytes);
    let copied = manifest::copy_summed(&from, &to, |written| stage.at(written as f64 / entry.bytes.max(1) as f64));
    let copied = copied.map_err(|source| BackupError::Io { path: from.clone(), doing: "restoring it", source })?;
    entry.compare(&from, &copied)?;
    progress.copied(entry.bytes);
    // A file of an older format is upgraded when a server opens it. The rows were checked when the backup was made.
    let held = check_copy::head(&to)?;
    let held = held.as_ref().map(|opened| (opened.meta.name.as_str(), opened.documents, opened.last_seq.0));
    if held.is_some_and(|held| held != (entry.name.as_str(), entry.documents, entry.last_seq)) {
        let detail =
            "its name, its number of documents or its last sequence number is not what the manifest says".to_owned();
        return Err(StoreError::Damaged { collection: entry.name.clone(), record: None, detail }.into());
    }
    give_log(&to).map_err(|error| StoreError::from_sqlite(&entry.name, "restoring it", error).into())
}

/// Switches a file to a write-ahead log. The copy in a backup does not use a write-ahead log. Without this step, a
/// server would make the switch later, with a rollback journal next to a file that it serves.
fn give_log(path: &Path) -> rusqlite::Result<()> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    finish_new(Connection::open_with_flags(path, access)?)
}

fn check_empty(data_dir: &Path) -> Result<()> {
    let there = match entries(data_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there.map_err(|source| BackupError::Io { path: data_dir.to_owned(), doing: "listing it", source })?,
    };
    let harmless = [LOCK_FILE, LOST_AND_FOUND, RESTORING];
    match there.into_iter().find(|name| !harmless.contains(&name.as_str())) {
        Some(entry) => Err(BackupError::DataDirNotEmpty { dir: data_dir.to_owned(), entry }),
        None => Ok(()),
    }
}

fn remove(dir: &PathBuf) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
