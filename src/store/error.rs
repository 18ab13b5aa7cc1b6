//! What can go wrong with a collection's file, in words that callers branch on.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rusqlite::ErrorCode;
use rusqlite::ffi::{
    SQLITE_ERROR, SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_WRITE,
};

use super::descriptors;
use crate::types::Seq;

/// The cause beneath a [`StoreError`], for the chain in the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The disk gives out what it holds no more.
const UNREADABLE: [i32; 3] = [SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_CORRUPTFS];

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, the quota or the file size limit has no room. The change was rolled back whole, and the next one may
    /// succeed once there is room.
    #[error("no room on disk for collection {collection}")]
    Full { collection: String, source: Cause },
    /// Reading or writing failed. After a failed write the [`Writer`](super::Writer) is poisoned.
    #[error("collection {collection}: {doing} failed")]
    Io {
        collection: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: Cause,
    },
    /// An earlier write failed in a way that leaves unclear what is on disk (a failed fsync drops the pages it
    /// could not write, so a second one succeeds and proves nothing). Reads go on; writes need the file reopened.
    #[error("collection {collection} takes no writes until it is reopened, because an earlier one failed: {reason}")]
    Poisoned { collection: String, reason: String },
    /// The file does not hold what was written.
    #[error("collection {collection} is damaged{}: {detail}", at(.record))]
    Damaged {
        collection: String,
        /// The record, where it is known.
        record: Option<Seq>,
        detail: String,
    },
    /// Made by a later version.
    #[error(
        "{} has format {found}; this version reads formats up to {known}: use the version that wrote it, or a later one",
        path.display()
    )]
    NewerFormat {
        path: PathBuf,
        found: i32,
        /// The newest this version reads.
        known: i32,
    },
    /// The file is something else.
    #[error("{} is not a collection: {detail}", path.display())]
    NotAStore { path: PathBuf, detail: String },
    #[error("there is no collection at {}", path.display())]
    Missing { path: PathBuf },
    /// A collection is there already.
    #[error("there is a collection at {} already", path.display())]
    Exists { path: PathBuf },
    /// Somebody else writes to the file.
    #[error("the file of collection {collection} is in use by another writer: {detail}")]
    Busy { collection: String, detail: String },
    /// Nothing was begun, most likely because another program holds the file. The next write may succeed.
    #[error("collection {collection}: the write could not begin: {detail}")]
    NotBegun { collection: String, detail: String },
    /// A change that does not fit the order: its caller is at fault, the file is unharmed and the batch rolled back.
    #[error("collection {collection}: the change at {} does not fit: {detail}", seq.0)]
    OutOfOrder { collection: String, seq: Seq, detail: String },
    /// The collection was closed or dropped while this handle was kept.
    #[error("collection {collection} is closed")]
    Closed { collection: String },
}

impl StoreError {
    /// The system's errors in our words. `doing` ends the sentence "... failed".
    pub(super) fn from_io(collection: &str, doing: &'static str, error: io::Error) -> Self {
        let collection = collection.to_owned();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full { collection, source: error.into() },
            _ => Self::Io { collection, doing, source: error.into() },
        }
    }

    /// SQLite's errors in our words. `doing` ends the sentence "... failed".
    pub(super) fn from_sqlite(collection: &str, doing: &'static str, error: rusqlite::Error) -> Self {
        let collection = collection.to_owned();
        let damaged =
            |collection| Self::Damaged { collection, record: None, detail: format!("{doing} failed: {error}") };
        // A value of another kind than its column's.
        let Some(failure) = error.sqlite_error() else { return damaged(collection) };
        if let Some(source) = descriptors::behind(&error) {
            return Self::Io { collection, doing, source: source.into() };
        }
        match failure.code {
            ErrorCode::DiskFull => Self::Full { collection, source: error.into() },
            // SQLite names only ENOSPC; a spent quota and a file size limit come as a failed write to the page cache.
            // Nothing was synced yet, so this is as harmless as a full disk.
            ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_WRITE => {
                Self::Full { collection, source: error.into() }
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TooBig => damaged(collection),
            ErrorCode::SystemIoFailure if UNREADABLE.contains(&failure.extended_code) => damaged(collection),
            // What is asked never changes: where a table or a column is not there, the schema is not ours any more.
            ErrorCode::Unknown if failure.extended_code == SQLITE_ERROR => damaged(collection),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { collection, detail: error.to_string() },
            _ => Self::Io { collection, doing, source: error.into() },
        }
    }

    /// The file does not hold what was written; `record` where it is the damage of one.
    pub(super) fn damaged(collection: &str, record: impl Into<Option<Seq>>, detail: impl Into<String>) -> Self {
        Self::Damaged { collection: collection.to_owned(), record: record.into(), detail: detail.into() }
    }

    /// Names the record that was being read, where it was a record's damage.
    pub(super) fn at_record(mut self, seq: Seq) -> Self {
        if let Self::Damaged { record, .. } = &mut self {
            record.get_or_insert(seq);
        }
        self
    }

    /// Whether a failed write with this error leaves it uncertain what the disk holds.
    pub fn is_uncertain(&self) -> bool {
        !matches!(
            self,
            Self::Full { .. }
                | Self::NotBegun { .. }
                | Self::OutOfOrder { .. }
                | Self::Poisoned { .. }
                | Self::Closed { .. }
        )
    }

    /// The error with its causes in one line.
    pub fn chain(&self) -> String {
        in_one_line(self)
    }
}

/// An error with its causes.
pub(in crate::store) fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn at(record: &Option<Seq>) -> String {
    record.map(|seq| format!(" at record {}", seq.0)).unwrap_or_default()
}
