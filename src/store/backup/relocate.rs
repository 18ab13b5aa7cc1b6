//! Moves a finished backup to another place.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::error::{BackupError, Result};
use super::folder::{PARTIAL, WRITING, entries, make_dir};
use super::manifest::{self, Manifest};
use crate::store::data_dir::files::{sync_dir, sync_parent};

/// Moves a backup to a directory that is empty or missing. If that is on another file system, copies the files, the
/// manifest last, and then removes the original.
pub fn relocate(manifest: &Manifest, from: &Path, to: &Path) -> Result<()> {
    let failed = |source| BackupError::Io { path: to.to_owned(), doing: "moving the backup there", source };
    moved(manifest, from, to).map_err(failed)
}

fn moved(manifest: &Manifest, from: &Path, to: &Path) -> io::Result<()> {
    make_dir(to)?;
    if !entries(to)?.is_empty() {
        return Err(ErrorKind::DirectoryNotEmpty.into());
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {}
        renamed => return renamed.and_then(|()| sync_parent(to)),
    }
    let copy = |name: &str, to: &Path| {
        fs::copy(from.join(name), to)?;
        File::open(to)?.sync_all()
    };
    // The manifest has the name of the marker until all files are copied. If the move is interrupted, the result is
    // known as an unfinished backup.
    copy(manifest::FILE, &to.join(WRITING))?;
    fs::rename(to.join(WRITING), to.join(PARTIAL))?;
    sync_dir(to)?;
    manifest.collections.iter().try_for_each(|entry| copy(&entry.file, &to.join(&entry.file)))?;
    sync_dir(to)?;
    fs::rename(to.join(PARTIAL), to.join(manifest::FILE))?;
    sync_dir(to)?;
    fs::remove_dir_all(from)
}
