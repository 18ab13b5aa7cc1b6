//! Backups of a data directory in use: one at a time, collection by collection, in a task of its own that outlives the
//! request which began it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::registry::Registry;
use crate::engine::Collection;
use crate::engine::long_work::blocking;
use crate::store::backup::{self, Backup, BackupError, Entry, Manifest, Pace, Progress};
use crate::store::out_of_descriptors;
use crate::telemetry::names::{self, label, value};
use crate::types::{CollectionName, TimestampMs};
use crate::verdicts::{
    BackupContents, BackupEntry, BackupName, BackupSettings, BackupState, BackupStatus, CollectionError, Result,
};

/// How long a stop waits for a backup that was called off. It ends within a fraction of a second.
const END_WAIT: Duration = Duration::from_secs(10);

/// The latest backup of a data directory.
#[derive(Debug)]
pub(crate) struct Backups {
    settings: BackupSettings,
    latest: Mutex<Latest>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Latest {
    run: Option<Run>,
    closed: bool,
}

#[derive(Debug)]
struct Run {
    name: String,
    path: PathBuf,
    started: TimestampMs,
    progress: Arc<Progress>,
    state: BackupState,
}

impl Run {
    fn status(&self) -> BackupStatus {
        BackupStatus {
            name: self.name.clone(),
            path: self.path.clone(),
            started: self.started,
            progress: self.progress.share(),
            state: self.state.clone(),
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.state, BackupState::Running)
    }
}

impl Backups {
    pub(crate) fn new(settings: BackupSettings) -> Self {
        for result in [value::RESULT_DONE, value::RESULT_CANCELLED, value::RESULT_FAILED] {
            metrics::counter!(names::BACKUPS, label::RESULT => result).increment(0);
        }
        metrics::counter!(names::BACKUP_COPIED_BYTES).increment(0);
        metrics::gauge!(names::BACKUP_PROGRESS).set(0.0);
        let latest = settings.dir.as_deref().and_then(backup::latest);
        metrics::gauge!(names::BACKUP_LAST_SUCCESS).set(latest.map_or(0.0, seconds));
        Self { settings, latest: Mutex::default(), ended: Condvar::new() }
    }

    fn pace(&self) -> Pace {
        let BackupSettings { bytes_per_second_max, log_bytes_max, .. } = self.settings;
        Pace { bytes_per_second_max, log_bytes_max }
    }

    fn begin(&self, name: &str, path: &Path, progress: &Arc<Progress>) -> Result<BackupStatus> {
        let mut latest = self.latest.lock();
        if latest.closed {
            return Err(CollectionError::closed());
        }
        if let Some(run) = latest.run.as_ref().filter(|run| run.is_running()) {
            return Err(CollectionError::BackupRunning { name: run.name.clone() });
        }
        let (name, path, progress) = (name.to_owned(), path.to_owned(), Arc::clone(progress));
        let run = Run { name, path, progress, started: TimestampMs::now(), state: BackupState::Running };
        let status = run.status();
        latest.run = Some(run);
        Ok(status)
    }

    fn end(&self, state: BackupState) {
        let result = match &state {
            BackupState::Done { .. } => value::RESULT_DONE,
            BackupState::Cancelled => value::RESULT_CANCELLED,
            BackupState::Failed(_) | BackupState::Running => value::RESULT_FAILED,
        };
        metrics::counter!(names::BACKUPS, label::RESULT => result).increment(1);
        if matches!(state, BackupState::Done { .. }) {
            metrics::gauge!(names::BACKUP_LAST_SUCCESS).set(seconds(TimestampMs::now()));
        }
        if let Some(run) = &mut self.latest.lock().run {
            run.state = state;
        }
        self.ended.notify_all();
    }

    /// Calls off what is under way, and waits for its end; blocking. None begins after.
    pub(crate) fn close(&self) {
        let mut latest = self.latest.lock();
        latest.closed = true;
        while let Some(run) = latest.run.as_ref().filter(|run| run.is_running()) {
            run.progress.cancel();
            if self.ended.wait_for(&mut latest, END_WAIT).timed_out() {
                tracing::warn!("a backup that was called off did not end in time");
                return;
            }
        }
    }

    pub(crate) fn observe(&self) {
        let share = self.latest.lock().run.as_ref().map_or(0.0, |run| match run.state {
            BackupState::Running | BackupState::Done { .. } => run.progress.share(),
            BackupState::Cancelled | BackupState::Failed(_) => 0.0,
        });
        metrics::gauge!(names::BACKUP_PROGRESS).set(share);
    }
}

/// Ends a run that nobody ended: its task was dropped, or panicked.
struct EndOnDrop(Arc<Registry>, Option<Arc<Progress>>);

impl EndOnDrop {
    fn end(mut self, state: BackupState) {
        self.1 = None;
        self.0.backups.end(state);
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(progress) = self.1.take() {
            progress.cancel();
            self.0.backups.end(BackupState::Failed("it broke off".into()));
        }
    }
}

impl Registry {
    /// Begins a backup; what becomes of it is asked for with [`backup_status`](Self::backup_status). An error means that
    /// nothing was begun.
    ///
    /// With a series its folder has a name of its own, and when it is whole the oldest of the series go.
    pub async fn start_backup(self: &Arc<Self>, name: BackupName, keep: Option<u32>) -> Result<BackupStatus> {
        let Some(dir) = &self.backups.settings.dir else { return Err(CollectionError::BackupsOff) };
        // Who is told may stand in another directory.
        let dir = std::path::absolute(dir).unwrap_or(dir.clone());
        let series = keep.map(|keep| Series { name: name.as_str().to_owned(), keep: keep as usize });
        let name = match &series {
            Some(series) => BackupName::new(&backup::dated(&dir, &series.name, TimestampMs::now()))?,
            None => name,
        };
        let path = dir.join(name.as_str());
        let progress = Arc::<Progress>::default();
        let status = self.backups.begin(name.as_str(), &path, &progress)?;
        let end = EndOnDrop(Arc::clone(self), Some(Arc::clone(&progress)));
        let (pace, its_progress) = (self.backups.pace(), Arc::clone(&progress));
        let its_series = series.as_ref().map(|series| series.name.clone());
        let begun = blocking(move || {
            let begun = Backup::begin(&path, pace, its_progress);
            Ok(begun.and_then(|backup| match its_series {
                Some(series) => backup.of_series(&series),
                None => Ok(backup),
            }))
        });
        match begun.await? {
            Ok(backup) => {
                tracing::info!(name = status.name, path = %status.path.display(), "backup begun");
                tokio::spawn(run(Arc::clone(self), end, backup, progress, (status.path.clone(), series)));
                Ok(status)
            }
            Err(error) => {
                let error = refused(error);
                end.end(BackupState::Failed(error.to_string()));
                Err(error)
            }
        }
    }

    /// The latest backup of this process.
    pub fn backup_status(&self) -> Option<BackupStatus> {
        self.backups.latest.lock().run.as_ref().map(Run::status)
    }

    /// Calls off the backup under way; false: there is none.
    pub fn cancel_backup(&self) -> bool {
        let latest = self.backups.latest.lock();
        let running = latest.run.as_ref().filter(|run| run.is_running());
        running.map(|run| run.progress.cancel()).is_some()
    }
}

/// Backups that follow each other, and how many of them stay; 0: all.
struct Series {
    name: String,
    keep: usize,
}

/// Removes older ones of the series that the backup in `folder` is the newest of.
async fn prune(folder: &Path, series: Series) -> Vec<String> {
    let Some((dir, newest)) = backup::split(folder) else { return Vec::new() };
    let prune = move || Ok(backup::prune(&dir, &series.name, series.keep, &newest));
    let removed = blocking(prune).await.unwrap_or_default();
    if !removed.is_empty() {
        tracing::info!(removed = removed.join(" "), "older backups of the series were removed");
    }
    removed
}

async fn run(
    collections: Arc<Registry>,
    end: EndOnDrop,
    backup: Backup,
    progress: Arc<Progress>,
    (folder, series): (PathBuf, Option<Series>),
) {
    let state = match make(&collections, backup, &progress).await {
        Ok(manifest) => {
            let contents = contents(manifest);
            let bytes = progress.copied_bytes();
            tracing::info!(
                collections = contents.collections.len(),
                documents = contents.documents(),
                bytes,
                "backup made"
            );
            let removed = match series {
                Some(series) => prune(&folder, series).await,
                None => Vec::new(),
            };
            BackupState::Done { contents: Arc::new(contents), removed }
        }
        Err(_) if progress.is_cancelled() => {
            tracing::info!("backup called off");
            BackupState::Cancelled
        }
        Err(error) => {
            tracing::error!(%error, "backup failed");
            BackupState::Failed(error.to_string())
        }
    };
    end.end(state);
}

async fn make(collections: &Arc<Registry>, mut backup: Backup, progress: &Arc<Progress>) -> Result<Manifest> {
    let sources: Vec<_> = collections.names()?.into_iter().map(|name| (collections.path(&name), name)).collect();
    progress.expect(sources.iter().map(|(path, _)| backup::units(path)).sum());
    for (path, name) in sources {
        // Else the copy would hold up all that changes the list of collections for as long as that takes.
        collections.opened_or_over(&name, || progress.is_cancelled()).await;
        let Some(opened) = collections.settled(&name).await? else { continue };
        let before = progress.copied_bytes();
        backup = blocking(move || {
            let gone = move || opened.as_ref().is_some_and(|collection| collection.is_closed());
            backup.add(&path, gone).map_err(failed)?;
            Ok(backup)
        })
        .await?;
        metrics::counter!(names::BACKUP_COPIED_BYTES).increment(progress.copied_bytes() - before);
    }
    if progress.is_cancelled() {
        return Err(failed(BackupError::Cancelled));
    }
    blocking(move || backup.finish(TimestampMs::now()).map_err(failed)).await
}

impl Registry {
    /// A collection's file, such that a copy can be taken from it, and the collection where it is open; `None`: it was
    /// dropped.
    async fn settled(self: &Arc<Self>, name: &CollectionName) -> Result<Option<Option<Arc<Collection>>>> {
        let _nothing_dropped_meanwhile = self.changing.lock().await;
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        // Through its cell, so that nobody opens the file meanwhile. That stays empty: for a copy it needs no index.
        let settle = || async { Err(blocking(move || backup::settle(&path).map_err(failed)).await) };
        match self.cell(name).get_or_try_init(settle).await {
            Ok(opened) => Ok(opened.clone().map(Some)),
            Err(settled) => settled.map(|()| Some(None)),
        }
    }
}

fn contents(manifest: Manifest) -> BackupContents {
    let entry = |Entry { name, documents, last_seq, bytes, .. }| BackupEntry { name, documents, last_seq, bytes };
    BackupContents { made: manifest.made, collections: manifest.collections.into_iter().map(entry).collect() }
}

fn seconds(at: TimestampMs) -> f64 {
    at.0 as f64 / 1000.0
}

fn failed(error: BackupError) -> CollectionError {
    if out_of_descriptors(&error) { CollectionError::no_descriptor() } else { CollectionError::Store(error.chain()) }
}

fn refused(error: BackupError) -> CollectionError {
    match error {
        BackupError::Taken { .. }
        | BackupError::InTheWay { .. }
        | BackupError::NotAFolder { .. }
        | BackupError::UnderWay { .. } => CollectionError::BackupExists { detail: error.to_string() },
        error => failed(error),
    }
}
