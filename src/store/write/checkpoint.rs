//! Runs one checkpoint, which moves the write-ahead log into the database, and returns how long the log is.

use std::ffi::c_int;

use rusqlite::{Connection, ffi};

/// The state of the log after a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Checkpointed {
    /// Whether the checkpoint is incomplete because of another connection.
    pub(in crate::store) busy: bool,
    pub(in crate::store) frames: u64,
    pub(in crate::store) checkpointed_frames: u64,
}

impl Checkpointed {
    /// SQLite reports -1 frames if there is no log.
    fn new(busy: bool, frames: c_int, checkpointed: c_int) -> Self {
        Self { busy, frames: frames.max(0) as u64, checkpointed_frames: checkpointed.max(0) as u64 }
    }
}

/// How much a checkpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Mode {
    /// Moves as many frames as possible without waiting.
    Passive,
    /// Moves all frames. The next commit then restarts the log from its beginning.
    Restart,
    /// Moves all frames, and empties the log.
    Truncate,
}

/// Runs a checkpoint on a connection that has no open transaction.
pub(in crate::store) fn run(connection: &Connection, mode: Mode) -> rusqlite::Result<Checkpointed> {
    let mut statement = connection.prepare_cached(match mode {
        Mode::Passive => "PRAGMA main.wal_checkpoint(passive)",
        Mode::Restart => "PRAGMA main.wal_checkpoint(restart)",
        Mode::Truncate => "PRAGMA main.wal_checkpoint(truncate)",
    })?;
    statement.query_row([], |row| {
        let busy: c_int = row.get(0)?;
        Ok(Checkpointed::new(busy != 0, row.get(1)?, row.get(2)?))
    })
}

/// Returns the state of the log of a connection that has just committed, without a checkpoint. A `PRAGMA` would be too
/// slow for each commit, because SQLite compiles it for each use.
pub(in crate::store) fn state(connection: &Connection) -> rusqlite::Result<Checkpointed> {
    let (mut frames, mut checkpointed): (c_int, c_int) = (0, 0);
    // SAFETY: the handle and the pointers are valid during the call, and no other thread uses the connection.
    let code = unsafe {
        let (handle, mode) = (connection.handle(), ffi::SQLITE_CHECKPOINT_NOOP);
        ffi::sqlite3_wal_checkpoint_v2(handle, c"main".as_ptr(), mode, &raw mut frames, &raw mut checkpointed)
    };
    if code != ffi::SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    }
    Ok(Checkpointed::new(false, frames, checkpointed))
}
