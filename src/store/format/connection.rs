//! Sets up a connection to a collection's file for its purpose.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};

/// At this size of the log, the writer waits until the whole log is in the database. A larger log file is cut back to
/// this size.
pub(in crate::store) const LOG_BYTES_MAX: u64 = 64 << 20;
/// How long a connection retries while another connection holds a lock of SQLite. Locks are held for microseconds, but
/// the recovery of a log after a crash may take a while.
pub(in crate::store) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const WRITER_CACHE_KIB: u32 = 8 * 1024;
/// The size of a reader's own page cache. It is small, because readers fetch single records at random places. For such
/// reads, the page cache of the system works better than a cache for each connection.
const READER_CACHE_KIB: u32 = 1024;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Role {
    Writer,
    Checkpointer,
    Reader,
}

/// Opens a connection to an existing file.
pub(in crate::store) fn connect(path: &Path, role: Role) -> Result<Connection> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let access = match role {
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(|connection| set_up(&connection, role).map(|()| connection))
        .map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                StoreError::NotAStore { path: path.to_owned(), detail: "it is not a SQLite database".to_owned() }
            }
            _ => StoreError::from_sqlite(&name_of(path), "opening its file", error),
        })
}

fn set_up(connection: &Connection, role: Role) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Only `Writer::close` checkpoints on close, because nothing may be synced again after a failed fsync.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Without this setting, each new value of a parameter makes SQLite prepare the statement again, because the value
    // might decide whether a partial index can be used. Without it, reading a record took twice as long.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    let cache_kib = if role == Role::Writer { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    if role != Role::Reader {
        // On Linux, SQLite syncs with fdatasync if it was built with the flags in `.cargo/config.toml`, otherwise with
        // fsync.
        connection.pragma_update(None, "synchronous", "full")?;
        // On macOS, fsync alone leaves the data in the cache of the drive. This setting has no effect on other systems.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // If a reader delayed the checkpoints and the log grew beyond its bound, this setting returns the space to the
        // system.
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX as i64)?;
    }
    Ok(())
}

/// Stops syncing on this connection: a crash of the system may lose later writes.
pub(in crate::store) fn never_sync(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "off")
}
