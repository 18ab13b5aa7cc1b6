//! Reads the format of a file, if it is one of ours.

use std::path::Path;

use rusqlite::Connection;

use super::tables::{APPLICATION_ID, FORMAT};
use crate::store::data_dir::files::name_of;
use crate::store::error::{Result, StoreError};

/// Refuses a file whose format is not the one of this version.
pub(in crate::store) fn check_format(connection: &Connection, path: &Path) -> Result<()> {
    match format_of(connection, path)? {
        FORMAT => Ok(()),
        found => {
            let detail = format!("its format {found} must be upgraded first");
            Err(StoreError::NotAStore { path: path.to_owned(), detail })
        }
    }
}

/// Reads the format of one of our files. It is the format of this version or an older format.
pub(in crate::store) fn format_of(connection: &Connection, path: &Path) -> Result<i32> {
    let pragma = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(|error| {
            match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => {
                    StoreError::NotAStore { path: path.to_owned(), detail: "it is not a SQLite database".to_owned() }
                }
                _ => StoreError::from_sqlite(&name_of(path), "reading its format", error),
            }
        })
    };
    let not_ours = |detail: String| StoreError::NotAStore { path: path.to_owned(), detail };
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION_ID, found @ 1..=FORMAT) => Ok(found),
        (APPLICATION_ID, found) if found > FORMAT => {
            Err(StoreError::NewerFormat { path: path.to_owned(), found, known: FORMAT })
        }
        (APPLICATION_ID, found) => Err(not_ours(format!("format {found} does not exist"))),
        (found, _) => Err(not_ours(format!("its application id is {found:#x}, not {APPLICATION_ID:#x}"))),
    }
}
