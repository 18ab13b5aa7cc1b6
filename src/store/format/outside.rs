//! A collection's file as it is seen from outside, before SQLite opens it.

use std::path::Path;

use crate::store::data_dir::files::{self, name_of};
use crate::store::error::{Result, StoreError};
use crate::store::log::look::{self, Condition};

/// How every SQLite database begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Looks at the files before SQLite does: it would take what is left of a log for all of it, and a database that was cut
/// to nothing for a new one, whose log it throws away. A last transaction that is torn is let go, with a word in the log.
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
        Condition::Sound => Ok(()),
        Condition::Torn(detail) => {
            tracing::warn!(collection = name_of(path), detail, "the log ends in a torn transaction");
            Ok(())
        }
        Condition::Damaged(detail) => Err(StoreError::Damaged { collection: name_of(path), record: None, detail }),
    }
}
