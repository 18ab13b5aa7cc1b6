//! Makes, moves, prunes and restores backups without a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OfflineError;
use crate::collections::manifest::contents;
use crate::store::backup::{self, Manifest, Progress};
use crate::types::TimestampMs;
use crate::verdicts::BackupContents;

/// The progress of a backup or a restore. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct BackupProgress(Arc<Progress>);

impl BackupProgress {
    /// Returns the completed part, 0 to 1. It is 1 only at the end.
    pub fn share(&self) -> f64 {
        self.0.share()
    }
}

/// The directory of the next backup of a series.
#[derive(Clone, Debug)]
pub struct SeriesFolder {
    /// The directory, which does not exist yet.
    pub path: PathBuf,
    pub series: String,
}

impl SeriesFolder {
    /// Returns the next directory of the series that `dir` names: the name of the series followed by the time. `None`:
    /// `dir` does not end in a name.
    pub fn next(dir: &Path) -> Option<Self> {
        let (parent, series) = backup::split(dir)?;
        Some(Self { path: parent.join(backup::dated(&parent, &series, TimestampMs::now())), series })
    }
}

/// Backs a data directory up into `folder`, as part of a series if one is named.
pub fn back_up(
    data_dir: &Path,
    folder: &Path,
    series: Option<&str>,
    progress: BackupProgress,
) -> Result<BackupContents, OfflineError> {
    Ok(contents(backup::offline(data_dir, folder, series, TimestampMs::now(), progress.0)?))
}

/// Restores a backup into a data directory that is empty or missing. After an error, the directory still has no data
/// that can be served.
pub fn restore(folder: &Path, data_dir: &Path, progress: &BackupProgress) -> Result<BackupContents, OfflineError> {
    Ok(contents(backup::restore(folder, data_dir, &progress.0)?))
}

/// Removes the oldest backups of a series, so that `keep` remain, including the newest. 0 keeps all. Returns the names
/// of the removed backups that were finished.
pub fn prune(newest: &Path, series: &str, keep: u32) -> Vec<String> {
    let Some((dir, newest)) = backup::split(newest) else { return Vec::new() };
    backup::prune(&dir, series, keep as usize, &newest)
}

/// A finished backup in its directory.
#[derive(Debug)]
pub struct BackupFolder {
    path: PathBuf,
    manifest: Manifest,
}

impl BackupFolder {
    /// Reads the manifest of a backup, but not the other files.
    pub fn read(path: &Path) -> Result<Self, OfflineError> {
        Ok(Self { path: path.to_owned(), manifest: Manifest::read(path)? })
    }

    pub fn contents(&self) -> BackupContents {
        contents(self.manifest.clone())
    }

    /// Moves the backup to a directory that [is free](Self::is_free). On another file system the backup is copied, and
    /// the original remains.
    pub fn relocate(&self, to: &Path) -> Result<(), OfflineError> {
        Ok(backup::relocate(&self.manifest, &self.path, to)?)
    }

    /// Removes the backup. If it was moved, there is nothing to remove. False: the backup stays, because its directory
    /// contains a file that is not part of the backup.
    pub fn remove(&self) -> Result<bool, OfflineError> {
        if !self.path.exists() {
            return Ok(true);
        }
        let unreadable = |source| OfflineError::Unreadable { dir: self.path.clone(), source };
        backup::remove(&self.path, &self.manifest).map_err(unreadable)
    }

    /// Returns whether a backup can be moved to this directory: the directory is missing or empty, or contains only the
    /// leftovers of an interrupted backup or move.
    pub fn is_free(dir: &Path) -> bool {
        backup::is_free(dir)
    }
}
