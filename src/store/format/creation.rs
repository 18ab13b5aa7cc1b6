//! Creates a collection's file from its settings, without records.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::meta::write_meta;
use super::tables::{APPLICATION_ID, FORMAT, TABLES, TABLES_SINCE_2, TABLES_SINCE_4, TABLES_SINCE_6};
use crate::store::data_dir::files;
use crate::store::error::{Result, StoreError};
use crate::store::settings::Meta;

/// Creates the file, complete and on disk. After an error, no file is left that could be mistaken for a collection.
pub(in crate::store) fn create(path: &Path, meta: &Meta) -> Result<()> {
    let io = |error| StoreError::from_io(meta.name.as_str(), "creating its file", error);
    if path.exists() {
        return Err(StoreError::Exists { path: path.to_owned() });
    }
    files::prepare_creation(path).map_err(io)?;
    refuse_orphan(path)?;
    let sqlite = |error| StoreError::from_sqlite(meta.name.as_str(), "creating its file", error);
    begin_new(&files::creating(path), meta).and_then(finish_new).map_err(sqlite)?;
    files::finish_creation(path).map_err(io)
}

/// Refuses a path with the log of an earlier collection. SQLite would replay such a log into the new collection.
pub(in crate::store) fn refuse_orphan(path: &Path) -> Result<()> {
    let Some(orphan) = files::orphan(path) else { return Ok(()) };
    let detail =
        "it is a write-ahead log whose database is missing; move it away to create a collection with this name";
    Err(StoreError::NotAStore { path: orphan, detail: detail.to_owned() })
}

/// Creates a file with its settings and no records. The file is written without a log, for two reasons. A log would
/// take the same space again. And if moving the log into the file failed when the file is closed, SQLite would ignore
/// the failure.
pub(in crate::store) fn begin_new(path: &Path, meta: &Meta) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(TABLES_SINCE_2)?;
    transaction.execute_batch(TABLES_SINCE_4)?;
    transaction.execute_batch(TABLES_SINCE_6)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    write_meta(&transaction, meta)?;
    transaction.commit()?;
    Ok(connection)
}

/// Closes a complete file that was written without a log. From now on, the file uses a write-ahead log.
pub(in crate::store) fn finish_new(connection: Connection) -> rusqlite::Result<()> {
    // The mode is stored in the header of the file. The log is still empty, so closing leaves one complete file.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)
}
