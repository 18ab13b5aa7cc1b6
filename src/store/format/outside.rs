//! Checks the files of a collection before SQLite opens them.

use std::path::Path;

use super::connection::{Role, connect};
use crate::store::data_dir::files::{self, name_of};
use crate::store::error::{Result, StoreError};
use crate::store::log::look::{self, Condition};

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Checks the files before SQLite opens them. SQLite would use the intact beginning of a damaged log as if it were the
/// whole log. If a database was truncated to zero bytes, SQLite would treat it as a new database and throw away its
/// log. An incomplete last transaction is no error. Without a rollback journal, this transaction is dropped with a
/// warning. With a rollback journal, it is rolled back.
pub(in crate::store) fn check_files(path: &Path) -> Result<()> {
    let io = |doing, source: std::io::Error| StoreError::Io { collection: name_of(path), doing, source: source.into() };
    match files::begins_with(path, SQLITE_MAGIC) {
        Ok(true) => {}
        Ok(false) => {
            let detail = "it is not a SQLite database".to_owned();
            return Err(StoreError::NotAStore { path: path.to_owned(), detail });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        Err(error) => return Err(io("reading its file", error)),
    }
    match look::look(&files::log(path), &files::shared(path)).map_err(|error| io("reading its log", error))? {
        Condition::Sound => {}
        Condition::Torn(detail) => tracing::warn!(
            collection = name_of(path),
            detail,
            "dropping the last transaction of the write-ahead log: it is incomplete"
        ),
        Condition::Damaged(detail) => return Err(StoreError::damaged(&name_of(path), None, detail)),
    }
    if files::journal(path).exists() { roll_back(path) } else { Ok(()) }
}

/// Rolls back a transaction that a crash interrupted. The file does not use a write-ahead log yet: a backup made it, or
/// an early version wrote it. SQLite rolls back when the file is first read, but not on a read-only connection.
fn roll_back(path: &Path) -> Result<()> {
    let connection = connect(path, Role::Writer)?;
    let read = connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
    read.map(drop).map_err(|error| StoreError::from_sqlite(&name_of(path), "rolling back a transaction", error))
}
