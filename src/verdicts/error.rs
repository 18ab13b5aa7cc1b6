//! What can go wrong with a collection, in its own words. `http/error.rs` gives each a status.
//! It is the same for every kind of collection. A kind that cannot serve a verb will answer by a variant here,
//! `not_in_this_store`; there is no such kind yet.

use std::time::Duration;

use hapax_core::NotUtf8;

use crate::cpu::Full;
use crate::store::{self, StoreError};
use crate::types::{CollectionName, DocId, Seq};

/// Result of a collection's verbs.
pub type Result<T> = std::result::Result<T, CollectionError>;

/// Why a verb did nothing. No variant leaves a write half done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CollectionError {
    /// No file of that name.
    #[error("there is no collection `{0}`; PUT /v1/collections/{0} makes it")]
    NoSuchCollection(CollectionName),
    /// It exists with other settings.
    #[error("collection `{name}` exists with {held}; asked for was {asked}")]
    CollectionExists {
        name: CollectionName,
        held: String,
        /// The settings asked for.
        asked: String,
    },
    /// A spec, a key or a signature of another make.
    #[error("collection `{name}` was made with {held}, but {asked}")]
    SpecMismatch {
        name: CollectionName,
        /// What it was made with.
        held: String,
        /// What was given, as a clause.
        asked: String,
    },
    /// The limit on collections is reached.
    #[error("there are {max} collections, the most that `collections.max` allows; drop one or raise it")]
    TooManyCollections { max: usize },
    /// `default` always exists.
    #[error("`default` always exists and can't be dropped; delete its documents, or use another collection")]
    DefaultStays,
    /// The id holds other content and `on_existing` is `conflict`.
    #[error("id `{id}` holds other content; `on_existing=replace` or `keep` says what to do with it")]
    IdConflict { id: DocId },
    /// No document of that id.
    #[error("there is no document with id `{id}`")]
    NoSuchDocument { id: DocId },
    /// A value that this collection cannot take.
    #[error("{detail}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// What is wrong and what is allowed.
        detail: String,
    },
    /// A text given as bytes is not UTF-8.
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8),
    #[error("{detail}")]
    Overloaded {
        detail: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// It is still being opened at start.
    #[error("collection `{name}` is still being opened: {:.0} % done", .progress * 100.0)]
    Opening {
        name: CollectionName,
        /// How much of it is done, 0 to 1.
        progress: f64,
    },
    /// The write did not become durable.
    #[error("{detail}")]
    WriteFailed {
        /// What failed, and what became of the write.
        detail: String,
        /// What to do about it.
        why: WriteFailure,
    },
    /// It is unclear whether the document is there.
    #[error(
        "the disk failed under a write that was to delete or replace `{id}`; whether it is still stored shows after a \
         restart of the server"
    )]
    Doubtful { id: DocId },
    /// The memory budget has no room for a document more. Nothing was stored.
    #[error(
        "the index takes {used} of the {max} bytes that `limits.memory_max_bytes` allows, and one document more does not \
         fit; delete documents, let them expire with a `ttl`, or raise the limit"
    )]
    MemoryBudget { used: u64, max: u64 },
    /// No folder for backups is configured.
    #[error("this server is given no folder for backups; set `backup.dir`")]
    BackupsOff,
    /// One backup at a time.
    #[error("the backup `{name}` is being made; wait for its end, or call it off with DELETE /v1/backups")]
    BackupRunning { name: String },
    /// The backup's name is taken, by another backup or by something else.
    #[error("{detail}")]
    BackupExists {
        /// What is in the way.
        detail: String,
    },
    /// The collection's file does not hold what was written. What is not touched by it is answered; where it does not
    /// open at all, nothing is.
    #[error("collection `{collection}` is damaged{}: {detail}", at(.record))]
    Damaged {
        collection: String,
        /// The record, by its place in the order, where it is known.
        record: Option<Seq>,
        detail: String,
    },
    /// The data directory or a file in it can't be used.
    #[error("{0}")]
    Store(String),
}

/// What a failed write leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFailure {
    /// Nothing of it was kept; there must be room on the disk first.
    DiskFull,
    /// Nothing of it was kept; the next one may succeed.
    NothingKept,
    /// Whether it was kept shows when the file is opened again. Until then the collection takes no writes.
    Uncertain,
}

impl CollectionError {
    /// The collection takes no more writes.
    pub(crate) fn closed() -> Self {
        Self::Overloaded {
            detail: "the collection is closing; nothing was written".into(),
            retry_after: Duration::from_secs(5),
        }
    }

    pub(crate) fn write_failed(why: WriteFailure, error: &StoreError) -> Self {
        let why = if matches!(error, StoreError::Full { .. }) { WriteFailure::DiskFull } else { why };
        Self::WriteFailed { detail: format!("the disk refused the write: {}", error.chain()), why }
    }

    /// Of a collection that was to be made or dropped; a disk that fails then leaves the given.
    pub(crate) fn of_file(error: StoreError, why: WriteFailure) -> Self {
        match error {
            error if store::out_of_descriptors(&error) => Self::no_descriptor(),
            StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Busy { .. } | StoreError::Poisoned { .. } => {
                Self::write_failed(why, &error)
            }
            other => other.into(),
        }
    }
}

impl CollectionError {
    /// An error of the system about something beside a collection's file.
    pub(crate) fn of_system(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        if store::out_of_descriptors(error) { Self::no_descriptor() } else { Self::Store(format!("{what}: {error}")) }
    }

    pub(crate) fn no_descriptor() -> Self {
        let detail = "the server has no file descriptor left for this; its limit (ulimit -n) is too low".into();
        // Connections come to their end all the time.
        Self::Overloaded { detail, retry_after: Duration::from_secs(1) }
    }
}

impl From<Full> for CollectionError {
    fn from(full: Full) -> Self {
        // What waits is done in milliseconds each; a second sees most of it gone.
        Self::Overloaded { detail: full.to_string(), retry_after: Duration::from_secs(1) }
    }
}

impl From<StoreError> for CollectionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Closed { .. } => Self::closed(),
            StoreError::Full { .. } => Self::write_failed(WriteFailure::DiskFull, &error),
            StoreError::Damaged { collection, record, detail } => Self::Damaged { collection, record, detail },
            StoreError::NotAStore { path, detail } => {
                Self::Damaged { collection: store::name_of(&path), record: None, detail }
            }
            other if store::out_of_descriptors(&other) => Self::no_descriptor(),
            other => Self::Store(other.chain()),
        }
    }
}

fn at(record: &Option<Seq>) -> String {
    record.map(|seq| format!(" at record {}", seq.0)).unwrap_or_default()
}
