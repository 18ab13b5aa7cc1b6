//! Moves a finished backup to another place.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::error::{BackupError, Result};
use super::folder::{PARTIAL, WRITING, entries, is_ours};
use super::manifest::{self, Manifest, copy_summed};
use crate::store::data_dir::files::{make_dir, sync_dir, sync_parent};

/// Moves a backup to a directory that [is free](is_free). If the directory is on another file system, copies the files
/// (the manifest last), compares each file with the manifest, and keeps the original. If copying fails, the copy is
/// removed.
pub fn relocate(manifest: &Manifest, from: &Path, to: &Path) -> Result<()> {
    let failed = |source| moving(to, source);
    make_dir(to).map_err(failed)?;
    if !is_free(to) {
        return Err(failed(ErrorKind::DirectoryNotEmpty.into()));
    }
    clear(to).map_err(failed)?;
    match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {}
        renamed => return renamed.and_then(|()| sync_parent(to)).map_err(failed),
    }
    copy(manifest, from, to).inspect_err(|_| {
        if let Err(error) = clear(to).and_then(|()| fs::remove_dir(to)) {
            tracing::warn!(path = %to.display(), %error, "could not remove the files of a backup that was not moved");
        }
    })
}

/// Returns whether a directory is missing, empty, or holds only the leftovers of an interrupted backup or move.
pub fn is_free(dir: &Path) -> bool {
    let there = match entries(dir) {
        Ok(there) => there,
        Err(error) => return error.kind() == ErrorKind::NotFound,
    };
    let marked = there.iter().any(|name| name == PARTIAL || name == WRITING);
    let in_use = || File::open(dir.join(PARTIAL)).is_ok_and(|marker| marker.try_lock().is_err());
    there.is_empty() || marked && there.iter().all(|name| is_ours(name)) && !in_use()
}

fn moving(to: &Path, source: io::Error) -> BackupError {
    BackupError::Io { path: to.to_owned(), doing: "moving the backup there", source }
}

fn copy(manifest: &Manifest, from: &Path, to: &Path) -> Result<()> {
    let failed = |source| moving(to, source);
    // The manifest has the name of the marker until all files are copied. If the move is interrupted, the directory is
    // therefore recognised as an unfinished backup.
    let mark = || {
        let mut marker = File::create_new(to.join(WRITING))?;
        // The marker stays locked until the end, so that no other process takes these files for leftovers.
        marker.try_lock()?;
        marker.write_all(&manifest.to_bytes())?;
        marker.sync_all()?;
        fs::rename(to.join(WRITING), to.join(PARTIAL))?;
        sync_dir(to)?;
        Ok(marker)
    };
    let _marker = mark().map_err(failed)?;
    for entry in &manifest.collections {
        let copied = copy_summed(&from.join(&entry.file), &to.join(&entry.file), |_| {}).map_err(failed)?;
        entry.compare(&from.join(&entry.file), &copied)?;
    }
    let finish = || {
        sync_dir(to)?;
        fs::rename(to.join(PARTIAL), to.join(manifest::FILE))?;
        sync_dir(to)
    };
    finish().map_err(failed)
}

/// Removes the files of an unfinished backup, the marker last.
fn clear(dir: &Path) -> io::Result<()> {
    let (marker, files): (Vec<_>, Vec<_>) = entries(dir)?.into_iter().partition(|name| name == PARTIAL);
    files.iter().chain(&marker).try_for_each(|name| fs::remove_file(dir.join(name)))
}
