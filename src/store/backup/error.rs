//! Why there is no backup, or why one is not restored.

use std::path::PathBuf;

use crate::store::data_dir::lock::LockError;
use crate::store::error::{StoreError, in_one_line};

/// Results of backups and restores.
pub type Result<T, E = BackupError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is one already.
    #[error("there is a backup in {} already; take another name, or remove it first", dir.display())]
    Taken { dir: PathBuf },
    /// The folder holds what no backup left.
    #[error("{} is not empty, and `{entry}` in it is from no broken-off backup", dir.display())]
    InTheWay {
        dir: PathBuf,
        /// What is in it.
        entry: String,
    },
    /// Something else has the name.
    #[error("{} is there, and is no folder", dir.display())]
    NotAFolder { dir: PathBuf },
    /// Somebody else writes a backup there.
    #[error("another backup is being written to {}", dir.display())]
    UnderWay { dir: PathBuf },
    /// The copy kept the write-ahead log from being finished for too long.
    #[error(
        "the write-ahead log of collection {collection} grew by {grown} bytes while it was copied, and \
         `backup.log_bytes_max` is {max}; try again when less is written, or raise that"
    )]
    LogGrew {
        collection: String,
        /// By how many bytes.
        grown: u64,
        max: u64,
    },
    /// It was called off.
    #[error("it was called off")]
    Cancelled,
    /// A backup that never came to its end.
    #[error("the backup in {} was broken off before it was whole: it has no manifest", dir.display())]
    Unfinished { dir: PathBuf },
    #[error("{} is not a backup made by hapax: {detail}", dir.display())]
    Foreign { dir: PathBuf, detail: String },
    /// Made by a later version.
    #[error(
        "the backup in {} has format {found}; this version reads formats up to {known}: use the version that made it, \
         or a later one",
        dir.display()
    )]
    NewerFormat {
        dir: PathBuf,
        found: u64,
        /// The newest this version reads.
        known: u64,
    },
    /// Not what the manifest says, or not the manifest that was written.
    #[error("the backup is damaged: {}: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    /// Restoring is for empty data directories.
    #[error("the data directory {} is not empty (`{entry}`); restore into a new one", dir.display())]
    DataDirNotEmpty {
        dir: PathBuf,
        /// What is in it.
        entry: String,
    },
    /// A restore was broken off here.
    #[error(
        "a restore into the data directory {} was broken off; run `hapax restore` again, or remove {}",
        dir.display(),
        leftover.display()
    )]
    HalfRestored { dir: PathBuf, leftover: PathBuf },
    /// The data directory is in use.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A collection cannot be copied, or its copy is not what its ledger says.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {doing} failed", path.display())]
    Io {
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl BackupError {
    /// The error with its causes in one line.
    pub fn chain(&self) -> String {
        in_one_line(self)
    }
}
