//! Moves the write-ahead log into the database in the background. With inline checkpoints, one commit in a few hundred
//! takes ten times as long (measured: p99.9 of 17 to 34 ms instead of 2.2 ms). Therefore a thread with its own
//! connection runs passive checkpoints. Under a steady stream of commits, such checkpoints never reach the end of the
//! log. If the log becomes longer than `LOG_BYTES_MAX`, the writer itself finishes the checkpoint, and the log restarts
//! from its beginning. `log_bound.rs` decides when.

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

/// The background thread. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Held during a checkpoint, because SQLite returns an error if another checkpoint is running.
    turn: Arc<Mutex<()>>,
}

impl Checkpointer {
    /// Starts the thread. `synced` tells whether the moved pages are synced before the log restarts.
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

    /// Wakes the thread. Never waits, because one pending wake-up is enough.
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }

    /// Runs `work` while the thread runs no checkpoint.
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
            match StoreError::from_sqlite(collection, "moving its write-ahead log into the database", error) {
                // Another connection is reading or recovering. The next wake-up tries again.
                StoreError::Busy { .. } => {}
                error => poison.note(&error.with_unclear_outcome()),
            }
        }
    }
}
