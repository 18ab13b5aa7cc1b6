//! The state of the latest backup of this process. Only one backup runs at a time. This file knows nothing of how a
//! backup is made.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::store::backup::Progress;
use crate::telemetry::names::{self, label, value};
use crate::types::TimestampMs;
use crate::verdicts::{BackupState, BackupStatus, CollectionError, Result};

/// How long `close` waits for the end of a cancelled backup. Normally it ends within a fraction of a second after it
/// was cancelled.
const END_WAIT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct LatestBackup {
    latest: Mutex<Latest>,
    ended: Condvar,
}

#[derive(Default)]
struct Latest {
    run: Option<LatestRun>,
    closed: bool,
}

struct LatestRun {
    status: BackupStatus,
    progress: Arc<Progress>,
}

impl LatestRun {
    fn is_running(&self) -> bool {
        matches!(self.status.state, BackupState::Running)
    }
}

impl LatestBackup {
    /// Makes the state of a process that has begun no backup. `made` is the time of the latest backup of an earlier
    /// process.
    pub(super) fn new(made: Option<TimestampMs>) -> Self {
        for result in [value::RESULT_DONE, value::RESULT_CANCELLED, value::RESULT_FAILED] {
            metrics::counter!(names::BACKUPS, label::RESULT => result).increment(0);
        }
        metrics::counter!(names::BACKUP_COPIED_BYTES).increment(0);
        metrics::gauge!(names::BACKUP_PROGRESS).set(0.0);
        metrics::gauge!(names::BACKUP_LAST_SUCCESS).set(made.map_or(0.0, seconds));
        Self::default()
    }

    /// Begins a backup, unless another is running.
    pub(super) fn begin(
        self: &Arc<Self>,
        name: &str,
        path: &Path,
        progress: &Arc<Progress>,
    ) -> Result<(BackupStatus, EndOnDrop)> {
        let mut latest = self.latest.lock();
        if latest.closed {
            return Err(CollectionError::closed());
        }
        if let Some(run) = latest.run.as_ref().filter(|run| run.is_running()) {
            return Err(CollectionError::BackupRunning { name: run.status.name.clone() });
        }
        let (name, path) = (name.to_owned(), path.to_owned());
        let status = BackupStatus {
            name,
            path,
            started: TimestampMs::now(),
            progress: progress.share(),
            state: BackupState::Running,
        };
        latest.run = Some(LatestRun { status: status.clone(), progress: Arc::clone(progress) });
        Ok((status, EndOnDrop { of: Arc::clone(self), progress: Some(Arc::clone(progress)) }))
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
            run.status.state = state;
        }
        self.ended.notify_all();
    }

    /// Returns the state of the latest backup.
    pub(super) fn status(&self) -> Option<BackupStatus> {
        let latest = self.latest.lock();
        let run = latest.run.as_ref()?;
        Some(BackupStatus { progress: run.progress.share(), ..run.status.clone() })
    }

    /// Cancels the running backup. False: no backup is running.
    pub(super) fn cancel(&self) -> bool {
        let latest = self.latest.lock();
        let running = latest.run.as_ref().filter(|run| run.is_running());
        running.map(|run| run.progress.cancel()).is_some()
    }

    /// Cancels the running backup and waits for its end. Blocks the thread. No backup begins afterwards.
    pub(super) fn close(&self) {
        let mut latest = self.latest.lock();
        latest.closed = true;
        while let Some(run) = latest.run.as_ref().filter(|run| run.is_running()) {
            run.progress.cancel();
            if self.ended.wait_for(&mut latest, END_WAIT).timed_out() {
                tracing::warn!("a cancelled backup did not end in time");
                return;
            }
        }
    }

    /// Sets the gauge of a backup's progress.
    pub(super) fn observe(&self) {
        let share = self.latest.lock().run.as_ref().map_or(0.0, |run| match run.status.state {
            BackupState::Running | BackupState::Done { .. } => run.progress.share(),
            BackupState::Cancelled | BackupState::Failed(_) => 0.0,
        });
        metrics::gauge!(names::BACKUP_PROGRESS).set(share);
    }
}

/// Ends the run of a backup if its task is dropped or panics.
pub(super) struct EndOnDrop {
    of: Arc<LatestBackup>,
    progress: Option<Arc<Progress>>,
}

impl EndOnDrop {
    /// Ends the run with this state.
    pub(super) fn end(mut self, state: BackupState) {
        self.progress = None;
        self.of.end(state);
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.cancel();
            self.of.end(BackupState::Failed("it was interrupted".into()));
        }
    }
}

fn seconds(at: TimestampMs) -> f64 {
    at.0 as f64 / 1000.0
}
