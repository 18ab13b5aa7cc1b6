//! Backups made, moved, thinned out and restored by a process of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OfflineError;
use crate::collections::manifest::contents;
use crate::store::backup::{self, Manifest, Progress};
use crate::types::TimestampMs;
use crate::verdicts::BackupContents;

/// How far a backup or a restore is. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct BackupProgress(Arc<Progress>);

impl BackupProgress {
    /// The share that is done, 0 to 1; 1 only when all is.
    pub fn share(&self) -> f64 {
        self.0.share()
    }
}

/// The folder of the next backup of a series.
#[derive(Clone, Debug)]
pub struct SeriesFolder {
    /// The folder, which is not there yet.
    pub path: PathBuf,
    pub series: String,
}

impl SeriesFolder {
    /// Of the series whose folders are named after `dir`, with the time added; `None`: `dir` names no folder.
    pub fn next(dir: &Path) -> Option<Self> {
        let (parent, series) = backup::split(dir)?;
        Some(Self { path: parent.join(backup::dated(&parent, &series, TimestampMs::now())), series })
    }
}

/// Makes a backup of a data directory in `folder`; of a series, if one is named.
pub fn back_up(
    data_dir: &Path,
    folder: &Path,
    series: Option<&str>,
    progress: BackupProgress,
) -> Result<BackupContents, OfflineError> {
    Ok(contents(backup::offline(data_dir, folder, series, TimestampMs::now(), progress.0)?))
}

/// Brings a backup back, into a data directory that is empty or missing. After an error there is nothing to serve in it,
/// as before.
pub fn restore(folder: &Path, data_dir: &Path, progress: &BackupProgress) -> Result<BackupContents, OfflineError> {
    Ok(contents(backup::restore(folder, data_dir, &progress.0)?))
}

/// Removes the oldest backups of a series beyond `keep`, beside the newest one; 0 keeps all. Names those that were whole.
pub fn prune(newest: &Path, series: &str, keep: u32) -> Vec<String> {
    let Some((dir, newest)) = backup::split(newest) else { return Vec::new() };
    backup::prune(&dir, series, keep as usize, &newest)
}

/// A whole backup in its folder.
#[derive(Debug)]
pub struct BackupFolder {
    path: PathBuf,
    manifest: Manifest,
}

impl BackupFolder {
    /// Reads its manifest; its other files are not looked at.
    pub fn read(path: &Path) -> Result<Self, OfflineError> {
        Ok(Self { path: path.to_owned(), manifest: Manifest::read(path)? })
    }

    pub fn contents(&self) -> BackupContents {
        contents(self.manifest.clone())
    }

    /// Moves it to a folder that is empty or missing.
    pub fn relocate(self, to: &Path) -> Result<(), OfflineError> {
        Ok(backup::relocate(&self.manifest, &self.path, to)?)
    }
}
