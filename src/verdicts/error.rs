//! The errors of a collection, in terms of collections, not of HTTP. `http/code.rs` has the status of each error.
//! The errors are the same wherever a collection is stored. If a kind of store does not have an operation, the
//! error is [`CollectionError::NotInThisStore`].

use std::time::Duration;

use hapax_core::NotUtf8;

use crate::cpu::Refused;
use crate::store::lock::LockError;
use crate::store::{self, StoreError};
use crate::types::{CollectionName, DocId, IndexKind, OnDuplicate, OnExisting, Seq, retry_after};

/// The result of an operation of a collection.
pub type Result<T> = std::result::Result<T, CollectionError>;

/// The reason why an operation failed. A failed write is never half done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CollectionError {
    /// There is no file with that name.
    #[error("there is no collection `{0}`; create it with PUT /v1/collections/{0}")]
    NoSuchCollection(CollectionName),
    /// The collection exists with other settings.
    #[error("collection `{name}` exists with other settings: it has {held}; the request has {asked}")]
    CollectionExists {
        name: CollectionName,
        held: String,
        /// The settings that were requested.
        asked: String,
    },
    /// A load makes only new collections.
    #[error("collection `{0}` exists, and a load makes a new one: choose another name")]
    LoadIntoExisting(CollectionName),
    /// Only one collection is loaded at a time.
    #[error("another collection is being loaded; try again later")]
    LoadRunning,
    /// The file of signatures cannot be read.
    #[error("{detail}")]
    LoadFile { detail: String },
    /// The memory budget has no room for the documents of a load. Nothing was stored.
    #[error(
        "the index of the new collection would take about {needed} bytes, and there is no room for them within the {max} \
         bytes that `limits.memory_max_bytes` allows; nothing was stored; delete documents, or raise the limit"
    )]
    NoRoomForLoad { needed: u64, max: u64 },
    /// The spec, the key or the signature does not fit the collection.
    #[error("collection `{name}` was made with {held}, but {asked}")]
    SpecMismatch {
        name: CollectionName,
        /// The spec or key that the collection was made with.
        held: String,
        /// The spec or key that was given, as a clause of the message.
        asked: String,
    },
    /// The collection finds documents in another way than the request needs.
    #[error("{detail}")]
    WrongIndex {
        /// How the collection finds documents, and what to do instead.
        detail: String,
    },
    /// The limit on collections is reached.
    #[error(
        "there are already {max} collections, the most that `collections.max` allows; drop one, or raise the limit"
    )]
    TooManyCollections { max: usize },
    /// `default` always exists.
    #[error("`default` always exists and cannot be dropped; delete its documents, or use another collection")]
    DefaultStays,
    /// Other content is stored under the id, and `on_existing` is `conflict`.
    #[error(
        "id `{id}` is stored with other content; replace that content with `on_existing=replace`, or keep it with \
         `on_existing=keep`"
    )]
    IdConflict { id: DocId },
    /// The two collections do not take the same contents.
    #[error(
        "`{from}` cannot be merged into `{into}`: its `{setting}` is `{other}`, and that of `{into}` is `{own}`; \
         create `{from}` with the same `spec`, `keep` and `extract`"
    )]
    NotMergeable { into: CollectionName, from: CollectionName, setting: &'static str, own: String, other: String },
    /// A merge of the same collection is running, with other options.
    #[error(
        "`{from}` is being merged, with `on_duplicate` = `{}` and `on_existing` = `{}`; wait until that merge has ended",
        on_duplicate.as_str(),
        on_existing.as_str()
    )]
    MergeRunning { from: CollectionName, on_duplicate: OnDuplicate, on_existing: OnExisting },
    /// There is no document with that id.
    #[error("there is no document with id `{id}`")]
    NoSuchDocument { id: DocId },
    /// The collection cannot take this value.
    #[error("{detail}")]
    Invalid {
        /// The field that has the value.
        field: &'static str,
        /// The fault of the value, and the values that are allowed.
        detail: String,
    },
    /// A text given as bytes is not UTF-8.
    #[error(transparent)]
    NotUtf8(#[from] NotUtf8),
    #[error("{detail}")]
    Overloaded {
        detail: String,
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
    /// The server is starting, and the collection is still being opened.
    #[error("collection `{name}` is still being opened: {:.0} % done", .progress * 100.0)]
    Opening {
        name: CollectionName,
        /// The part that is done, 0 to 1.
        progress: f64,
    },
    /// The write was not made durable.
    #[error("{detail}")]
    WriteFailed {
        /// The failure, and its effect on the write.
        detail: String,
        /// The kind of failure, which decides what to do next.
        why: WriteFailure,
    },
    /// A failed write makes it uncertain whether the document is stored.
    #[error(
        "the disk failed during a write that deletes or replaces `{id}`; restart the server to find out whether it is \
         still stored"
    )]
    Doubtful { id: DocId },
    /// The memory budget has no room for another document. Nothing was stored.
    #[error(
        "the index has no room for another document within the {max} bytes that `limits.memory_max_bytes` allows; delete \
         documents, let them expire with a `ttl`, or raise the limit"
    )]
    MemoryBudget {
        /// The message does not say how much memory is used, because a client with a key for one collection must not
        /// learn how other collections grow. The metrics contain this number.
        max: u64,
    },
    /// The memory budget has no room for another banding. Nothing has changed.
    #[error(
        "while the banding is changed, the old and the new postings are both in memory: the index would take about \
         {needed} bytes, more than the {max} bytes that `limits.memory_max_bytes` allows; raise the limit, or delete \
         documents"
    )]
    NoRoomForBanding { needed: u64, max: u64 },
    /// The collection already has the allowed number of different labels. Nothing was stored.
    #[error(
        "documents of this collection have {max} different labels, the most that `limits.labels_max` allows; use \
         these, delete documents with labels that are no longer needed, or raise the limit"
    )]
    LabelsFull { max: usize },
    /// The collection already has the allowed number of different sets of labels. Nothing was stored.
    #[error(
        "the documents of this collection have {max} different combinations of labels, and no more are possible; use \
         labels that more documents share, or raise `limits.labels_max`, which allows 16 combinations for each label"
    )]
    LabelSetsFull { max: usize },
    /// The source of the document already has the allowed number of documents. Nothing was stored.
    #[error(
        "the source `{source_label}` has {max} documents in this collection, the most that `limits.source_documents_max` \
         allows; delete some of them, let them expire with a `ttl`, or raise the limit"
    )]
    SourceFull { source_label: String, max: u64 },
    /// The process uses all the memory that it is allowed. Nothing was stored.
    #[error(
        "the process has no memory left within the {max} bytes that `memory.max_bytes` allows; nothing was stored; \
         send the request again later, delete documents, or raise the limit"
    )]
    MemoryShort { max: u64 },
    /// No directory for backups is configured.
    #[error("this server has no directory for backups; set `backup.dir`")]
    BackupsOff,
    /// Only one backup can be made at a time.
    #[error("the backup `{name}` is running; wait until it ends, or cancel it with DELETE /v1/backups")]
    BackupRunning { name: String },
    /// The directory with this name contains another backup or other files, or is not a directory.
    #[error("{detail}")]
    BackupExists {
        /// The backup or file that already exists.
        detail: String,
    },
    /// The collection's file no longer contains the data that was written to it. If the file can be opened, requests
    /// that the damage does not affect are still answered.
    #[error("collection `{collection}` is damaged{}: {detail}", at(.record))]
    Damaged {
        collection: String,
        /// The record, by its place in the order, if it is known.
        record: Option<Seq>,
        detail: String,
    },
    /// The kind of store that the server uses has no such operation.
    #[error("collections in a Redis cluster have no {what} yet; docs/redis.md says what they have")]
    NotInThisStore {
        /// The operation or the option.
        what: &'static str,
    },
    /// A node of the cluster did not answer, or too few replicas have the write.
    #[error("{detail}")]
    StoreUnavailable {
        detail: String,
        /// Whether the write may have happened.
        uncertain: bool,
    },
    /// A node of the cluster has no memory for the write. Nothing was stored.
    #[error("{detail}")]
    StoreFull { detail: String },
    /// Another process uses the data directory.
    #[error("{detail}")]
    DataDirInUse {
        /// The directory and the process.
        detail: String,
    },
    /// The data directory or a file in it cannot be used.
    #[error("{0}")]
    Store(String),
}

/// The effect of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFailure {
    /// Nothing of the write was kept. The write can succeed only after there is room on the disk.
    DiskFull,
    /// Nothing of the write was kept. The next write may succeed.
    NothingKept,
    /// It is unknown whether the write was kept, until the file is opened again. Until then the collection takes no
    /// writes.
    Uncertain,
}

impl CollectionError {
    /// The collection `name` has the index `has`, and the request needs another one.
    pub(crate) fn wrong_index(name: &CollectionName, has: IndexKind) -> Self {
        let detail = match has {
            IndexKind::Containment => format!(
                "collection `{name}` has `\"index\": \"containment\"`: it finds stored items that a text contains, with \
                 POST /v1/collections/{name}/overlaps, and compares nothing by similarity"
            ),
            IndexKind::Similarity => format!(
                "collection `{name}` has `\"index\": \"similarity\"`: it finds similar documents, with POST \
                 /v1/collections/{name}/check; create another collection with `\"index\": \"containment\"` to find stored \
                 items that a text contains"
            ),
        };
        Self::WrongIndex { detail }
    }

    /// The collection is closing and takes no more writes.
    pub(crate) fn closed() -> Self {
        Self::Overloaded {
            detail: "the collection is closing; nothing was written".into(),
            retry_after: retry_after::CLOSING,
        }
    }

    pub(crate) fn write_failed(why: WriteFailure, error: &StoreError) -> Self {
        let why = if matches!(error, StoreError::Full { .. }) { WriteFailure::DiskFull } else { why };
        Self::WriteFailed { detail: format!("the disk refused the write: {}", error.chain()), why }
    }

    /// Turns an error of a create or drop into a collection's error. If the disk failed, `why` says what is known about
    /// the write.
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
    /// Turns a system error into a collection's error, for files other than a collection's own.
    pub(crate) fn of_system(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        if store::out_of_descriptors(error) { Self::no_descriptor() } else { Self::Store(format!("{what}: {error}")) }
    }

    pub(crate) fn no_descriptor() -> Self {
        let detail = "the server has no free file descriptor; raise its limit (ulimit -n)".into();
        // A retry may soon succeed, because connections end all the time.
        Self::Overloaded { detail, retry_after: retry_after::SOON }
    }
}

impl From<Refused> for CollectionError {
    fn from(refused: Refused) -> Self {
        // Each waiting task takes milliseconds, so most of them are done within a second.
        Self::Overloaded { detail: refused.to_string(), retry_after: retry_after::SOON }
    }
}

impl From<LockError> for CollectionError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::DataDirInUse { detail: error.to_string() },
            LockError::Io { .. } => Self::Store(error.to_string()),
        }
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
