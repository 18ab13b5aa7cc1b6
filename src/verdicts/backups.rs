//! Backups in the form in which clients request and see them.

use std::path::PathBuf;
use std::sync::Arc;

use super::{CollectionError, Result};
use crate::store::backup::SUFFIX_BYTES_MAX;
use crate::types::TimestampMs;

/// The longest name of a backup, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Settings of backups.
#[derive(Clone, Debug, Default)]
pub struct BackupSettings {
    /// The directory in which each backup gets a directory of its own. If it is absent, no backups are made.
    pub dir: Option<PathBuf>,
    /// The limit on the bytes copied per second. If it is absent, there is no limit.
    pub bytes_per_second_max: Option<u64>,
    /// The limit on the growth of a write-ahead log while its collection is copied, in bytes. If it is absent, there is
    /// no limit.
    pub log_bytes_max: Option<u64>,
}

/// The name of a backup and of its directory: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, so that it cannot lead to another
/// place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupName(String);

impl BackupName {
    pub fn new(text: &str) -> Result<Self> {
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.as_bytes()[0].is_ascii_alphanumeric()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let detail =
            "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}; it is the name of a directory in the server's `backup.dir`";
        Err(CollectionError::Invalid { field: "name", detail: detail.into() })
    }

    /// Checks the name of a series. There must be room to append the time to it.
    pub fn of_series(text: &str) -> Result<Self> {
        let name = Self::new(text)?;
        let max = NAME_BYTES_MAX - SUFFIX_BYTES_MAX;
        if text.len() > max {
            let detail = format!("may have at most {max} bytes with `keep`, because the time is added to it");
            return Err(CollectionError::Invalid { field: "name", detail });
        }
        Ok(name)
    }

    /// Returns the current time as a name.
    pub fn of_now() -> Self {
        Self(jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The state of the latest backup.
#[derive(Clone, Debug)]
pub struct BackupStatus {
    pub name: String,
    pub path: PathBuf,
    pub started: TimestampMs,
    /// The part that is done, 0 to 1.
    pub progress: f64,
    pub state: BackupState,
}

/// The state of a backup.
#[derive(Clone, Debug)]
pub enum BackupState {
    Running,
    Done {
        contents: Arc<BackupContents>,
        /// Names of older backups of the series that were removed.
        removed: Vec<String>,
    },
    Cancelled,
    /// The backup failed, for this reason.
    Failed(String),
}

/// The contents of a finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// The time when it was made, RFC 3339, UTC.
    pub made: String,
    /// The collections, in the order of their names.
    pub collections: Vec<BackupEntry>,
}

/// One collection of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupEntry {
    pub name: String,
    /// Its documents, including links.
    pub documents: u64,
    /// The last `seq` that was assigned.
    pub last_seq: u64,
    /// The size of its file.
    pub bytes: u64,
}

impl BackupContents {
    /// Returns the number of documents of all collections, including links.
    pub fn documents(&self) -> u64 {
        self.collections.iter().map(|entry| entry.documents).sum()
    }

    /// Returns the total size of all files.
    pub fn bytes(&self) -> u64 {
        self.collections.iter().map(|entry| entry.bytes).sum()
    }
}
