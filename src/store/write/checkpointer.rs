//! Write-ahead log -> database, beside the writer.
//! Inline checkpoints make every few hundredth commit ten times as slow (p99.9 17 to 34 ms against 2.2 ms, measured), so
//! a thread with its own connection does them passively. Under a steady stream of commits that never gets to the log's
//! end, hence the bound: past `LOG_BYTES_MAX` the writer itself finishes the job and the log starts again.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::checkpoint::{Mode, run};
use super::poison::Poison;
use crate::store::error::{Result, StoreError};
use crate::store::format::connection::{Role, connect, never_sync};

/// The background thread. Ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Held during a checkpoint: SQLite does not wait for one that is under way, it refuses.
    turn: Arc<Mutex<()>>,
}

impl Checkpointer {
    /// `synced`: whether what it moves is on disk before the log starts again.
    pub(super) fn start(path: &Path, collection: &str, poison: Poison, synced: bool) -> Result<Self> {
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
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }

    /// The thread's own checkpoint is not under way as long as `work` runs.
    pub(super) fn exclusively<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock();
        work()
    }

    pub(super) fn stop(&mut self) {
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
