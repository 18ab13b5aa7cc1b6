//! Tells whether an error means that the process or the system had no file descriptor left. Such a shortage can end as
//! soon as any file is closed, and it says nothing about the data on disk.

use std::error::Error;
use std::fs::File;
use std::io;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMOPEN;

/// `ENFILE` and `EMFILE`, the same on every Unix.
const NO_DESCRIPTOR: [i32; 2] = [23, 24];

/// Twice the number of files that SQLite opens for a moment when it opens a database (the database, its log, the index
/// of the log, the directory).
const SPARE: usize = 8;

/// Returns whether this error or one of its causes is a lack of file descriptors.
pub fn out_of_descriptors(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(is_no_descriptor)
}

/// Returns the system's error behind an error of SQLite, if the cause is that no descriptor was left. SQLite reports
/// that it could not open a file, but not why, so this function tries to open files itself. Call it immediately after
/// the error. It opens `SPARE` files, because SQLite has already closed the files that it opened.
pub(super) fn behind(error: &rusqlite::Error) -> Option<io::Error> {
    let failure = error.sqlite_error()?;
    if failure.code != ErrorCode::CannotOpen && failure.extended_code != SQLITE_IOERR_SHMOPEN {
        return None;
    }
    let spare: Result<Vec<_>, _> = (0..SPARE).map(|_| File::open("/dev/null")).collect();
    spare.err().filter(is_no_descriptor)
}

fn is_no_descriptor(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| NO_DESCRIPTOR.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    // `tests/it/descriptors.rs` tests a process that has no descriptor left.

    #[test]
    fn it_is_found_among_the_causes() {
        let error = |number| StoreError::from_io("news", "creating its file", io::Error::from_raw_os_error(number));
        for (number, expected) in [(24, true), (23, true), (2, false), (28, false)] {
            assert_eq!(out_of_descriptors(&error(number)), expected, "{number}");
        }
        // This process has descriptors left, so the error has another cause.
        let missing = rusqlite::Connection::open("/no/such/folder/file").unwrap_err();
        assert!(!out_of_descriptors(&StoreError::from_sqlite("news", "opening its file", missing)));
    }
}
