//! The errors of a collection's file. Callers branch on the variants, not on the text.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi::{
    SQLITE_ERROR, SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_WRITE,
};

use super::descriptors;
use crate::plain_file::is_full;
use crate::types::Seq;

/// The cause of a [`StoreError`], for the error chain in the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The error codes of SQLite for a disk that can no longer return its data.
const UNREADABLE: [i32; 3] = [SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_CORRUPTFS];

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, the quota or the file size limit has no room left. The whole change was rolled back. The next change
    /// may succeed after space is freed.
    #[error("no space left on disk for collection `{collection}`")]
    Full { collection: String, source: Cause },
    /// Reading or writing failed. After a failed write the [`Writer`](super::Writer) is poisoned.
    #[error("collection `{collection}`: {doing} failed")]
    Io {
        collection: String,
        /// The operation, such as "reading its ledger".
        doing: &'static str,
        /// The error of the system or of SQLite.
        source: Cause,
    },
    /// An earlier write failed, and it is unclear what is on disk. A failed fsync drops the pages that it could not
    /// write, so a second fsync succeeds and proves nothing. Reads still work. Writes are refused until the file is
    /// opened again.
    #[error(
        "collection `{collection}` accepts no writes until it is reopened, because an earlier write failed: {reason}"
    )]
    Poisoned { collection: String, reason: String },
    /// The file does not contain the data that was written.
    #[error("collection `{collection}` is damaged{}: {detail}", at(.record))]
    Damaged {
        collection: String,
        /// The damaged record, if it is known.
        record: Option<Seq>,
        detail: String,
    },
    /// The file was written by a later version.
    #[error(
        "{} has format {found}, but this version reads formats up to {known}; use the version that wrote it \
         or a later one",
        path.display()
    )]
    NewerFormat {
        path: PathBuf,
        found: i32,
        /// The newest format that this version reads.
        known: i32,
    },
    /// The file is not a collection.
    #[error("{} is not a collection: {detail}", path.display())]
    NotAStore { path: PathBuf, detail: String },
    #[error("there is no collection at {}", path.display())]
    Missing { path: PathBuf },
    /// There is already a collection at this path.
    #[error("a collection already exists at {}", path.display())]
    Exists { path: PathBuf },
    /// Another connection writes to the file.
    #[error("another program writes to the file of collection `{collection}`: {detail}")]
    Busy { collection: String, detail: String },
    /// The transaction could not start, most likely because another program holds a lock on the file. The next write
    /// may succeed.
    #[error("collection `{collection}`: the write could not start: {detail}")]
    NotBegun { collection: String, detail: String },
    /// The change does not fit the commit order. The caller is at fault. The file is unharmed, and the batch is rolled
    /// back.
    #[error("collection `{collection}`: the change with sequence number {} was refused: {detail}", seq.0)]
    OutOfOrder { collection: String, seq: Seq, detail: String },
    /// The collection was closed or dropped while this handle still existed.
    #[error("collection `{collection}` is closed")]
    Closed { collection: String },
}

impl StoreError {
    /// Turns an error of the system into a `StoreError`. `doing` completes the sentence "... failed".
    pub(super) fn from_io(collection: &str, doing: &'static str, error: io::Error) -> Self {
        let collection = collection.to_owned();
        if is_full(&error) {
            Self::Full { collection, source: error.into() }
        } else {
            Self::Io { collection, doing, source: error.into() }
        }
    }

    /// Turns an error of SQLite into a `StoreError`. `doing` completes the sentence "... failed".
    pub(super) fn from_sqlite(collection: &str, doing: &'static str, error: rusqlite::Error) -> Self {
        let collection = collection.to_owned();
        let damaged =
            |collection| Self::Damaged { collection, record: None, detail: format!("{doing} failed: {error}") };
        // This is not an error of SQLite itself: a value has another type than its column.
        let Some(failure) = error.sqlite_error() else { return damaged(collection) };
        if let Some(source) = descriptors::behind(&error) {
            return Self::Io { collection, doing, source: source.into() };
        }
        match failure.code {
            ErrorCode::DiskFull => Self::Full { collection, source: error.into() },
            // SQLite recognises only ENOSPC. An exhausted quota and a file size limit show up as a failed write, and only
            // the system's last error of this thread tells them from a failed device. Nothing was synced yet, so they are
            // as harmless as a full disk.
            ErrorCode::SystemIoFailure
                if failure.extended_code == SQLITE_IOERR_WRITE && is_full(&io::Error::last_os_error()) =>
            {
                Self::Full { collection, source: error.into() }
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TooBig => damaged(collection),
            ErrorCode::SystemIoFailure if UNREADABLE.contains(&failure.extended_code) => damaged(collection),
            // The statements never change, so this error means that a table or a column is missing.
            ErrorCode::Unknown if failure.extended_code == SQLITE_ERROR => damaged(collection),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { collection, detail: error.to_string() },
            _ => Self::Io { collection, doing, source: error.into() },
        }
    }

    /// Makes the error that the file does not contain the data that was written. `record` is the damaged record, if the
    /// damage is in a record.
    pub(super) fn damaged(collection: &str, record: impl Into<Option<Seq>>, detail: impl Into<String>) -> Self {
        Self::Damaged { collection: collection.to_owned(), record: record.into(), detail: detail.into() }
    }

    /// If the error is damage and names no record, adds the record that was being read.
    pub(super) fn at_record(mut self, seq: Seq) -> Self {
        if let Self::Damaged { record, .. } = &mut self {
            record.get_or_insert(seq);
        }
        self
    }

    /// Turns damage that was found by a commit or a checkpoint into an error after which it is unclear what is on disk.
    /// If a transaction finds damage before its commit, the state is clear: the transaction is rolled back.
    pub(super) fn with_unclear_outcome(self) -> Self {
        match self {
            Self::Damaged { collection, detail, .. } => {
                Self::Io { collection, doing: "writing to its file", source: detail.into() }
            }
            error => error,
        }
    }

    /// Returns whether it is unclear what is on disk after a write has failed with this error.
    pub fn is_uncertain(&self) -> bool {
        !matches!(
            self,
            Self::Full { .. }
                | Self::Damaged { .. }
                | Self::NotBegun { .. }
                | Self::OutOfOrder { .. }
                | Self::Poisoned { .. }
                | Self::Closed { .. }
        )
    }

    /// Returns the error with its causes in one line.
    pub fn chain(&self) -> String {
        in_one_line(self)
    }
}

/// Joins an error and its causes into one line.
pub(in crate::store) fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn at(record: &Option<Seq>) -> String {
    record.map(|seq| format!(" at record {}", seq.0)).unwrap_or_default()
}
