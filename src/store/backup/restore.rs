//! Restores a backup into an empty data directory, completely or not at all.
//! The files are written to a temporary directory and compared with the manifest. When all of them are on disk, the
//! directory gets the name from which collections are served. If a restore was interrupted, the temporary directory is
//! still there, and a server refuses to start.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::check;
use super::error::{BackupError, Result};
use super::folder::entries;
use super::manifest::{self, Manifest, ManifestEntry};
use super::progress::Progress;
use crate::store::data_dir::files::sync_dir;
use crate::store::data_dir::lock::{DataDirLock, LOCK_FILE};
use crate::store::error::StoreError;

/// The directory from which collections are served.
const COLLECTIONS: &str = "collections";
/// Its name until it is complete.
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
    // Sync this directory's name before the first file: it marks the restore as incomplete.
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
    let mut written = 0;
    let copy = || {
        let mut target = File::options().write(true).create_new(true).open(&to)?;
        let summed = manifest::read_summed(&mut File::open(&from)?, |piece| {
            target.write_all(piece)?;
            written += piece.len() as u64;
            stage.at(written as f64 / entry.bytes.max(1) as f64);
            Ok(())
        })?;
        target.sync_all()?;
        Ok(summed)
    };
    let failed = |source: io::Error| BackupError::Io { path: from.clone(), doing: "restoring it", source };
    let (bytes, sum) = { copy }().map_err(failed)?;
    if (bytes, &sum) != (entry.bytes, &entry.xxh3_128) {
        let detail = format!("its checksum is {sum}, but the manifest says {}", entry.xxh3_128);
        return Err(BackupError::Damaged { path: from, detail });
    }
    progress.copied(bytes);
    // An older format, which a server upgrades when it opens the file. The rows were checked when the backup was made.
    let Some(opened) = check::head(&to)? else { return Ok(()) };
    let told = (entry.name.as_str(), entry.documents, entry.last_seq);
    if (opened.meta.name.as_str(), opened.documents, opened.last_seq.0) != told {
        let detail =
            "its name, its number of documents or its last sequence number is not what the manifest says".to_owned();
        return Err(StoreError::Damaged { collection: entry.name.clone(), record: None, detail }.into());
    }
    Ok(())
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
