//! The errors of making and restoring a backup.

use std::path::PathBuf;

use crate::store::data_dir::lock::LockError;
use crate::store::error::{StoreError, in_one_line};
use crate::types::CollectionName;

pub type Result<T, E = BackupError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The directory already holds a backup.
    #[error("{} already contains a backup; choose another name, or remove it first", dir.display())]
    Taken { dir: PathBuf },
    /// The directory holds a file that no backup wrote.
    #[error(
        "{} is not empty, and `{entry}` in it does not belong to an interrupted backup; choose an empty directory",
        dir.display()
    )]
    InTheWay {
        dir: PathBuf,
        /// The name of the file that no backup wrote.
        entry: String,
    },
    /// The path exists, but is not a directory.
    #[error("{} exists and is not a directory", dir.display())]
    NotAFolder { dir: PathBuf },
    /// Another process or thread is writing a backup there.
    #[error("another backup is being written to {}", dir.display())]
    UnderWay { dir: PathBuf },
    /// The copy kept the write-ahead log from restarting for too long.
    #[error(
        "the write-ahead log of collection `{collection}` grew by {grown} bytes while it was copied, but \
         `backup.log_bytes_max` is {max}; try again when less is written, or raise that limit"
    )]
    LogGrew {
        collection: String,
        /// By how many bytes the log grew.
        grown: u64,
        max: u64,
    },
    /// A collection is listed but has no file. A backup without this collection might replace the last backup that
    /// contains it.
    #[error(
        "the file of collection `{collection}` is missing, so the backup would lack this collection; restore the \
         collection from an earlier backup{}",
        accepting(collection)
    )]
    CollectionMissing { collection: String },
    /// The backup was cancelled.
    #[error("the backup was cancelled")]
    Cancelled,
    /// The backup was interrupted.
    #[error("the backup in {} is incomplete because it was interrupted: it has no manifest.json", dir.display())]
    Unfinished { dir: PathBuf },
    #[error("{} is not a backup made by hapax: {detail}", dir.display())]
    Foreign { dir: PathBuf, detail: String },
    /// The backup was made by a later version.
    #[error(
        "the backup in {} has format {found}, but this version reads formats up to {known}; use the version that \
         made it or a later one",
        dir.display()
    )]
    NewerFormat {
        dir: PathBuf,
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The backup differs from its manifest, or the manifest itself is damaged.
    #[error("the backup is damaged: {}: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    /// A backup can only be restored into an empty data directory.
    #[error(
        "the data directory {} is not empty: it contains `{entry}`; restore into a new or empty directory",
        dir.display()
    )]
    DataDirNotEmpty {
        dir: PathBuf,
        /// The name of a file in the data directory.
        entry: String,
    },
    /// A restore into this directory was interrupted.
    #[error(
        "a restore into the data directory {} was interrupted; run `hapax restore` again, or remove {}",
        dir.display(),
        leftover.display()
    )]
    HalfRestored { dir: PathBuf, leftover: PathBuf },
    /// Another process uses the data directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A collection cannot be copied, or its copy does not match its ledger.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {doing} failed", path.display())]
    Io {
        path: PathBuf,
        /// The operation, such as "listing it".
        doing: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Tells the user how to accept the loss of a collection.
fn accepting(collection: &str) -> String {
    match collection == CollectionName::default_collection().as_str() {
        true => "; a server that is started before that makes an empty collection".to_owned(),
        false => {
            format!(", or accept the loss with DELETE /v1/collections/{collection}?confirm={collection} on a server")
        }
    }
}

impl BackupError {
    /// Returns the error and its causes in one line.
    pub fn chain(&self) -> String {
        in_one_line(self)
    }
}
