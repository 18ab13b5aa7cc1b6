//! Backups of a data directory that the server uses. Only one backup runs at a time. It copies one collection after
//! another, in a task that continues after its request was answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::latest_backup::{EndOnDrop, LatestBackup};
use super::registry::{Registry, SettledFile};
use crate::collections::manifest::contents;
use crate::engine::long_work::blocking;
use crate::store::backup::{self, Backup, BackupError, CopyLimits, Manifest, Progress};
use crate::store::out_of_descriptors;
use crate::telemetry::names;
use crate::types::{CollectionName, Job, Merge, MergeSource, TimestampMs};
use crate::verdicts::{BackupContents, BackupName, BackupSettings, BackupState, BackupStatus, CollectionError, Result};

/// The backups of one data directory.
pub(in crate::collections) struct Backups {
    registry: Arc<Registry>,
    settings: BackupSettings,
    latest: Arc<LatestBackup>,
}

/// A series of backups, and how many of them to keep. 0 keeps all.
struct Series {
    name: String,
    keep: usize,
}

/// A running backup.
struct BackupRun {
    registry: Arc<Registry>,
    progress: Arc<Progress>,
    folder: PathBuf,
    series: Option<Series>,
}

/// A collection in a backup, as it was at one moment.
struct Copied {
    name: CollectionName,
    created: TimestampMs,
    /// When the copy of the collection began.
    began: TimestampMs,
}

impl Backups {
    pub(super) fn new(registry: Arc<Registry>, settings: BackupSettings, latest: LatestBackup) -> Self {
        Self { registry, settings, latest: Arc::new(latest) }
    }

    /// Begins a backup. [`status`](Self::status) returns its state. An error means that no backup was begun.
    ///
    /// With `keep`, the time is added to the name of the backup, and the oldest backups of the series are removed when
    /// the new one is finished.
    pub(in crate::collections) async fn start(&self, name: BackupName, keep: Option<u32>) -> Result<BackupStatus> {
        let Some(dir) = &self.settings.dir else { return Err(CollectionError::BackupsOff) };
        // The client may have another working directory, so the path that the client receives must be absolute.
        let dir = std::path::absolute(dir).unwrap_or(dir.clone());
        let series = keep.map(|keep| Series { name: name.as_str().to_owned(), keep: keep as usize });
        let name = match &series {
            Some(series) => BackupName::new(&backup::dated(&dir, &series.name, TimestampMs::now()))?,
            None => name,
        };
        let folder = dir.join(name.as_str());
        let progress = Arc::<Progress>::default();
        let (status, end) = self.latest.begin(name.as_str(), &folder, &progress)?;
        let run = BackupRun { registry: Arc::clone(&self.registry), progress, folder, series };
        match run.begin(self.copy_limits()).await? {
            Ok(backup) => {
                tracing::info!(name = status.name, path = %status.path.display(), "started a backup");
                tokio::spawn(run.run(backup, end));
                Ok(status)
            }
            Err(error) => {
                let error = refused(error);
                end.end(BackupState::Failed(error.to_string()));
                Err(error)
            }
        }
    }

    fn copy_limits(&self) -> CopyLimits {
        let BackupSettings { bytes_per_second_max, log_bytes_max, .. } = self.settings;
        CopyLimits { bytes_per_second_max, log_bytes_max }
    }

    /// Returns the state of the latest backup of this process.
    pub(in crate::collections) fn status(&self) -> Option<BackupStatus> {
        self.latest.status()
    }

    /// Cancels the running backup. False: no backup is running.
    pub(in crate::collections) fn cancel(&self) -> bool {
        self.latest.cancel()
    }

    pub(super) fn observe(&self) {
        self.latest.observe();
    }

    /// Cancels the running backup and waits for its end. Blocks the thread. No backup begins afterwards.
    pub(super) fn close(&self) {
        self.latest.close();
    }
}

impl BackupRun {
    async fn begin(&self, limits: CopyLimits) -> Result<std::result::Result<Backup, BackupError>> {
        let (folder, progress) = (self.folder.clone(), Arc::clone(&self.progress));
        let series = self.series.as_ref().map(|series| series.name.clone());
        blocking(move || {
            let begun = Backup::begin(&folder, limits, progress);
            Ok(begun.and_then(|backup| match series {
                Some(series) => backup.of_series(&series),
                None => Ok(backup),
            }))
        })
        .await
    }

    async fn run(self, backup: Backup, end: EndOnDrop) {
        let state = match self.copy_all(backup).await {
            Ok(manifest) => self.done(contents(manifest)).await,
            Err(_) if self.progress.is_cancelled() => {
                tracing::info!("cancelled the backup");
                BackupState::Cancelled
            }
            Err(error) => {
                tracing::error!(%error, "the backup failed");
                BackupState::Failed(error.to_string())
            }
        };
        end.end(state);
    }

    async fn done(self, contents: BackupContents) -> BackupState {
        let (collections, documents) = (contents.collections.len(), contents.documents());
        tracing::info!(collections, documents, bytes = self.progress.copied_bytes(), "finished a backup");
        let removed = match self.series {
            Some(series) => prune(&self.folder, series).await,
            None => Vec::new(),
        };
        BackupState::Done { contents: Arc::new(contents), removed }
    }

    async fn copy_all(&self, mut backup: Backup) -> Result<Manifest> {
        let Self { registry, progress, .. } = self;
        refuse_if_missing(&registry.missing())?;
        let listed = TimestampMs::now();
        let sources: Vec<_> = registry.names()?.into_iter().map(|name| (registry.path(&name), name)).collect();
        progress.expect(sources.iter().map(|(path, _)| backup::units(path)).sum());
        let (mut copied, mut merged) = (Vec::new(), Vec::new());
        for (path, name) in sources {
            self.note_merges(&copied, &mut merged);
            // Without this wait, the copy would hold the lock on the list of collections until the collection is open.
            registry.opened_or_over(&name, || progress.is_cancelled()).await;
            let settle = |path: PathBuf| backup::settle(&path).map_err(failed);
            let Some(source) = registry.settled(&name, settle).await? else { continue };
            let (began, before) = (TimestampMs::now(), progress.copied_bytes());
            let created;
            (backup, created) = blocking(move || {
                let created = backup.add(&path, move || is_gone(&source)).map_err(failed)?;
                Ok((backup, created))
            })
            .await?;
            metrics::counter!(names::BACKUP_COPIED_BYTES).increment(progress.copied_bytes() - before);
            copied.extend(created.map(|created| Copied { name, created, began }));
        }
        self.note_merges(&copied, &mut merged);
        merged.retain(|(source, _)| source.created < listed);
        refuse_if_missed(&copied, &merged)?;
        if progress.is_cancelled() {
            return Err(failed(BackupError::Cancelled));
        }
        blocking(move || backup.finish(TimestampMs::now()).map_err(failed)).await
    }

    /// Adds the sources of merges that had not ended when their target collection was copied, with the name of the
    /// target. A collection does not remember all of its jobs, and may be dropped later. So this function is called
    /// before each copy, and after the last one.
    fn note_merges(&self, copied: &[Copied], merged: &mut Vec<(MergeSource, CollectionName)>) {
        for collection in self.registry.open_ones() {
            let Some(into) = copied.iter().find(|copied| copied.name == *collection.name()) else { continue };
            for listed in collection.jobs() {
                if let Job::Merge(Merge { source, ended, .. }) = listed.job
                    && ended.is_none_or(|ended| ended >= into.began)
                    && !merged.iter().any(|(known, _)| *known == source)
                {
                    merged.push((source, into.name.clone()));
                }
            }
        }
    }
}

/// Returns an error if the file of a collection vanished. A backup without this collection might replace the last
/// backup that contains it.
fn refuse_if_missing(missing: &[CollectionName]) -> Result<()> {
    match missing.first() {
        None => Ok(()),
        Some(name) => Err(failed(BackupError::CollectionMissing { collection: name.to_string() })),
    }
}

/// Returns an error if one of these sources was not copied because it was dropped after its merge. Its documents may be
/// missing from the backup, although they were stored all the time.
fn refuse_if_missed(copied: &[Copied], merged: &[(MergeSource, CollectionName)]) -> Result<()> {
    let is_copied = |source: &MergeSource| {
        copied.iter().any(|copied| (&copied.name, copied.created) == (&source.name, source.created))
    };
    match merged.iter().find(|(source, _)| !is_copied(source)) {
        None => Ok(()),
        Some((MergeSource { name: dropped, .. }, into)) => Err(CollectionError::Store(format!(
            "collection `{dropped}` was merged into `{into}` and dropped while the backup was made, so the backup may \
             lack documents of both collections; make the backup again"
        ))),
    }
}

/// Whether the collection was dropped during the copy, or the server is shutting down.
fn is_gone(source: &SettledFile) -> bool {
    match source {
        SettledFile::Open(collection) => collection.is_closed(),
        SettledFile::Settled => false,
    }
}

/// Removes the older backups of the series. The backup in `folder` is the newest.
async fn prune(folder: &Path, series: Series) -> Vec<String> {
    let Some((dir, newest)) = backup::split(folder) else { return Vec::new() };
    let prune = move || Ok(backup::prune(&dir, &series.name, series.keep, &newest));
    let removed = blocking(prune).await.unwrap_or_default();
    if !removed.is_empty() {
        tracing::info!(removed = removed.join(" "), "removed older backups of the series");
    }
    removed
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
