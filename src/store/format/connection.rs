//! How a connection to a collection's file is set up, by what it is for.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};

/// Log at which the writer waits until all of it is in the database; no more of its file is kept.
pub(in crate::store) const LOG_BYTES_MAX: u64 = 64 << 20;
/// How long a connection asks again for a lock of SQLite's. Locks are held for microseconds, but recovery of a log after
/// a crash may take a while.
pub(in crate::store) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const WRITER_CACHE_KIB: u32 = 8 * 1024;
/// Readers fetch single records at random places: the system's page cache serves that better than their own.
const READER_CACHE_KIB: u32 = 1024;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Role {
    Writer,
    Checkpointer,
    Reader,
}

/// A connection to an existing file.
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
    // Only `Writer::close` checkpoints at the end: after a failed fsync nobody may try again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    let cache_kib = if role == Role::Writer { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    if role != Role::Reader {
        connection.pragma_update(None, "synchronous", "full")?;
        // On macOS fsync alone leaves the data in the drive's cache. No effect elsewhere.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        // What a log took beyond its bound while somebody was in the way goes back to the system.
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX as i64)?;
    }
    Ok(())
}

/// What a connection writes from here on is only as lasting as the system's memory.
pub(in crate::store) fn never_sync(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "off")
}
