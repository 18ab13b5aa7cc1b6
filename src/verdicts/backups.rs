//! Backups as clients ask for them and see them.

use std::path::PathBuf;
use std::sync::Arc;

use super::{CollectionError, Result};
use crate::store::backup::SUFFIX_BYTES_MAX;
use crate::types::TimestampMs;

/// Longest name of a backup.
const NAME_BYTES_MAX: usize = 64;

/// Where backups go, and how they are made.
#[derive(Clone, Debug, Default)]
pub struct BackupSettings {
    /// The folder under which each has its own; absent: none are made.
    pub dir: Option<PathBuf>,
    /// Bytes of a copy per second; absent: as fast as the disk.
    pub bytes_per_second_max: Option<u64>,
    /// By how much a write-ahead log may grow while its collection is copied; absent: by any length.
    pub log_bytes_max: Option<u64>,
}

/// The name of a backup, and of its folder: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, so that it leads nowhere else.
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
        let detail = "a backup's name matches [A-Za-z0-9][A-Za-z0-9._-]{0,63}; its folder of that name is under the \
                      server's `backup.dir`";
        Err(CollectionError::Invalid { field: "name", detail: detail.into() })
    }

    /// Of a series: there must be room for the time behind it.
    pub fn of_series(text: &str) -> Result<Self> {
        let name = Self::new(text)?;
        let max = NAME_BYTES_MAX - SUFFIX_BYTES_MAX;
        if text.len() > max {
            let detail = format!("with `keep` the time is added to the name, which may have {max} bytes");
            return Err(CollectionError::Invalid { field: "name", detail });
        }
        Ok(name)
    }

    /// The time, as a name.
    pub fn of_now() -> Self {
        Self(jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is known of the latest backup.
#[derive(Clone, Debug)]
pub struct BackupStatus {
    pub name: String,
    pub path: PathBuf,
    pub started: TimestampMs,
    /// How much of it is done, 0 to 1.
    pub progress: f64,
    /// What became of it.
    pub state: BackupState,
}

/// What became of a backup.
#[derive(Clone, Debug)]
pub enum BackupState {
    /// It is being made.
    Running,
    Done {
        contents: Arc<BackupContents>,
        /// Older ones of its series that were removed.
        removed: Vec<String>,
    },
    /// It was called off.
    Cancelled,
    /// It came to nothing.
    Failed(String),
}

/// What a whole backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// When it was made, RFC 3339, UTC.
    pub made: String,
    /// By name.
    pub collections: Vec<BackupEntry>,
}

/// One collection of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupEntry {
    pub name: String,
    /// Its documents, links included.
    pub documents: u64,
    /// The last `seq` given out.
    pub last_seq: u64,
    /// The length of its file.
    pub bytes: u64,
}

impl BackupContents {
    /// Documents of all collections, links included.
    pub fn documents(&self) -> u64 {
        self.collections.iter().map(|entry| entry.documents).sum()
    }

    /// The length of all files.
    pub fn bytes(&self) -> u64 {
        self.collections.iter().map(|entry| entry.bytes).sum()
    }
}
