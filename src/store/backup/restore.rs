//! A backup -> an empty data directory, whole or not at all.
//! The files are written to a folder beside the one that is served from, compared with the manifest on the way, and the
//! folder takes its name when all of it is on disk. A server refuses a directory where that folder was left.

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

/// Where collections are served from.
const COLLECTIONS: &str = "collections";
/// Its name until it is whole.
const RESTORING: &str = "collections.restoring";
/// File systems put it at their root, and a data directory may be one.
const LOST_AND_FOUND: &str = "lost+found";

/// Brings the backup in `dir` back, into a data directory that is empty or missing. After an error there is nothing to
/// serve in it, as before.
pub fn restore(dir: &Path, data_dir: &Path, progress: &Arc<Progress>) -> Result<Manifest> {
    let manifest = Manifest::read(dir)?;
    manifest.check_files(dir)?;
    progress.expect(manifest.collections.iter().map(|entry| entry.bytes).sum());
    let failed = |doing| move |source| BackupError::Io { path: data_dir.to_owned(), doing, source };
    // Looked at before the lock too: a directory full of something else gets no lock file.
    check_empty(data_dir)?;
    let _lock = DataDirLock::acquire(data_dir, Duration::ZERO)?;
    check_empty(data_dir)?;
    let restoring = data_dir.join(RESTORING);
    remove(&restoring).map_err(failed("removing what a broken-off restore left"))?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&restoring).map_err(failed("making a folder"))?;
    // The mark that there is no whole collection here, before the first of them.
    sync_dir(data_dir).map_err(failed("making a folder"))?;
    let restored = manifest.collections.iter().try_for_each(|entry| restore_one(dir, &restoring, entry, progress));
    if let Err(error) = restored {
        if let Err(error) = remove(&restoring) {
            tracing::warn!(path = %restoring.display(), %error, "what was restored so far could not be removed");
        }
        return Err(error);
    }
    sync_dir(&restoring)
        .and_then(|()| fs::rename(&restoring, data_dir.join(COLLECTIONS)))
        .and_then(|()| sync_dir(data_dir))
        .map_err(failed("giving what was restored its name"))?;
    progress.finish();
    Ok(manifest)
}

/// An error where a restore was broken off: what is to be served from there is not there.
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
        let detail = format!("its sum is {sum}, the manifest says {}", entry.xxh3_128);
        return Err(BackupError::Damaged { path: from, detail });
    }
    progress.copied(bytes);
    // Newer than this version, perhaps; its rows were checked when it was made.
    let Some(opened) = check::head(&to)? else { return Ok(()) };
    let told = (entry.name.as_str(), entry.documents, entry.last_seq);
    if (opened.meta.name.as_str(), opened.documents, opened.last_seq.0) != told {
        let detail = "it is another collection, or of another moment, than the manifest says".to_owned();
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
