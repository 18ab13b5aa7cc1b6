//! Runs one checkpoint, which moves the write-ahead log into the database.

use rusqlite::Connection;

/// The state of the log after a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Checkpointed {
    /// Whether the checkpoint is incomplete because another connection was in the way.
    pub(in crate::store) busy: bool,
    pub(in crate::store) frames: u64,
    pub(in crate::store) checkpointed_frames: u64,
}

/// How much a checkpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Mode {
    Noop,
    /// As much as possible without waiting.
    Passive,
    /// All of it; the next commit then restarts the log from its beginning.
    Restart,
    /// All of it; the log is empty afterwards.
    Truncate,
}

/// Runs a checkpoint on a connection that has no open transaction.
pub(in crate::store) fn run(connection: &Connection, mode: Mode) -> rusqlite::Result<Checkpointed> {
    let mut statement = connection.prepare_cached(match mode {
        Mode::Noop => "PRAGMA main.wal_checkpoint(noop)",
        Mode::Passive => "PRAGMA main.wal_checkpoint(passive)",
        Mode::Restart => "PRAGMA main.wal_checkpoint(restart)",
        Mode::Truncate => "PRAGMA main.wal_checkpoint(truncate)",
    })?;
    statement.query_row([], |row| {
        let (frames, checkpointed): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Checkpointed {
            busy: row.get::<_, i64>(0)? != 0,
            frames: frames.max(0) as u64,
            checkpointed_frames: checkpointed.max(0) as u64,
        })
    })
}
