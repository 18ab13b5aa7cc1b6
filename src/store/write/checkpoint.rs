//! Write-ahead log -> database, beside the writer.
//! Inline checkpoints make every few hundredth commit ten times as slow (p99.9 17 to 34 ms against 2.2 ms, measured), so
//! a thread with its own connection does them passively. Under a steady stream of commits that never gets to the log's
//! end, hence the bound: past [`LOG_BYTES_MAX`] the writer itself finishes the job and the log starts again.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect, never_sync};

/// Log not yet in the database at which the thread is woken.
pub(in crate::store) const WAKE_BYTES: u64 = 4 << 20;
/// How long it waits for whoever reads what is old, as a backup does.
pub(in crate::store) const FINISH_PATIENCE: Duration = Duration::from_millis(20);

/// What a checkpoint left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Log {
    /// Not completed, because somebody was in the way.
    pub(in crate::store) busy: bool,
    pub(in crate::store) frames: u64,
    pub(in crate::store) checkpointed_frames: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Mode {
    /// Only looks.
    Noop,
    /// As much as is possible without waiting.
    Passive,
    /// All of it, and the next commit starts the log anew.
    Restart,
    /// All of it, and the log is empty.
    Truncate,
}

/// Runs a checkpoint on a connection without an open transaction.
pub(in crate::store) fn run(connection: &Connection, mode: Mode) -> rusqlite::Result<Log> {
    let mut statement = connection.prepare_cached(match mode {
        Mode::Noop => "PRAGMA main.wal_checkpoint(noop)",
        Mode::Passive => "PRAGMA main.wal_checkpoint(passive)",
        Mode::Restart => "PRAGMA main.wal_checkpoint(restart)",
        Mode::Truncate => "PRAGMA main.wal_checkpoint(truncate)",
    })?;
    statement.query_row([], |row| {
        let (frames, checkpointed): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Log {
            busy: row.get::<_, i64>(0)? != 0,
            frames: frames.max(0) as u64,
            checkpointed_frames: checkpointed.max(0) as u64,
        })
    })
}

/// The first failure after which nobody may write, shared by writer and checkpointer.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Poison(Arc<OnceLock<String>>);

impl Poison {
    pub(in crate::store) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Notes the failure if it leaves the disk's content uncertain. The first one stays.
    pub(in crate::store) fn note(&self, error: &StoreError) {
        if error.is_uncertain() {
            self.0.get_or_init(|| error.chain());
        }
    }
}

/// The background thread. Ends when this is dropped.
#[derive(Debug)]
pub(in crate::store) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Held during a checkpoint: SQLite does not wait for one that is under way, it refuses.
    turn: Arc<Mutex<()>>,
}

impl Checkpointer {
    /// `synced`: whether what it moves is on disk before the log starts again.
    pub(in crate::store) fn start(path: &Path, collection: &str, poison: Poison, synced: bool) -> Result<Self> {
        let connection = connect(path, Role::Checkpointer)?;
        if !synced {
            never_sync(&connection).map_err(|error| StoreError::from_sqlite(collection, "opening its file", error))?;
        }
        let (wake, woken) = sync_channel(1);
        let turn = Arc::new(Mutex::new(()));
        let (name, its_turn) = (collection.to_owned(), turn.clone());
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || serve(&connection, &woken, &name, &its_turn, &poison))
            .map_err(|source| StoreError::Io {
                collection: collection.to_owned(),
                doing: "starting its checkpoint thread",
                source: source.into(),
            })?;
        Ok(Self { wake: Some(wake), thread: Some(thread), turn })
    }

    /// Never waits; a wake-up that is already pending will do.
    pub(in crate::store) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }

    /// The thread's own checkpoint is not under way as long as `work` runs.
    pub(in crate::store) fn exclusively<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock();
        work()
    }

    /// Ends the thread.
    pub(in crate::store) fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the checkpoint thread does not panic");
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, woken: &Receiver<()>, collection: &str, turn: &Mutex<()>, poison: &Poison) {
    while woken.recv().is_ok() {
        let _turn = turn.lock();
        if poison.reason().is_some() {
            return;
        }
        if let Err(error) = run(connection, Mode::Passive) {
            match StoreError::from_sqlite(collection, "moving its log into the database", error) {
                // Somebody reads or recovers; the next wake-up finds the same work.
                StoreError::Busy { .. } => {}
                error => poison.note(&error),
            }
        }
    }
}
