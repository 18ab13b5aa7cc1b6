//! Index and store as one thing.

use crate::types::*;
use hapax_core::{Banding, Fingerprint, SecretKey, Spec};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct CollectionsConfig {
    pub data_dir: std::path::PathBuf,
    pub lock_wait: Duration,
    pub collections_max: usize,
    pub secret: Option<SecretKey>,
    /// How `default` is made when it does not exist; must agree when it does.
    pub default_settings: Settings,
    pub limits: Limits,
}

/// Bounds of one collection's work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Postings read per band key in one probe.
    pub bucket_read_max: usize,
    /// Distinct documents verified in one lookup.
    pub candidates_max: usize,
    /// Decisions waiting for the disk.
    pub commit_queue_max: usize,
    /// Decisions in one transaction.
    pub commit_batch_max: usize,
    /// How long a write may wait for a place in the queue before it is refused as overloaded.
    pub commit_queue_wait: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub spec: Spec,
    pub banding: Banding,
    pub threshold: f64,
}

#[derive(Clone, Debug)]
pub struct Description {
    pub name: CollectionName,
    pub settings: Settings,
    pub fingerprint: Fingerprint,
    pub created: TimestampMs,
    pub documents: u64,
    pub linked: u64,
    /// P(verdict) at the threshold + ... computed from the curve
    pub candidate_recall_at_threshold: f64,
    pub verdict_recall_at_threshold: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    #[error("there is no collection {0}")]
    NoSuchCollection(CollectionName),
    #[error("collection {name} exists with other settings: it has {held}, asked for {asked}")]
    CollectionExists { name: CollectionName, held: String, asked: String },
    #[error("collection {name} was made with {held}, but {asked} was given")]
    SpecMismatch { name: CollectionName, held: String, asked: String },
    #[error("at most {max} collections")]
    TooManyCollections { max: usize },
    #[error("`default` cannot be dropped")]
    DefaultStays,
    #[error("id {id} holds other content")]
    IdConflict { id: DocId },
    #[error("{detail}")]
    Invalid { field: &'static str, detail: String },
    /// queue full, or collection still loading, or shutting down
    #[error("{detail}")]
    Overloaded { detail: String, retry_after: Duration },
    /// the disk refused the write: nothing of it was kept
    #[error("the write could not be made durable: {detail}")]
    WriteFailed { detail: String, disk_full: bool },
    #[error("internal: {0}")]
    Internal(String),
}
pub type Result<T> = std::result::Result<T, CollectionError>;

/// Every collection of one data directory.
pub struct Collections {}
impl Collections {
    /// Takes the lock on the data directory, makes or opens `default`; blocking.
    pub fn open(_config: CollectionsConfig, _progress: &(dyn Fn(f64) + Sync)) -> Result<Arc<Self>> {
        unimplemented!()
    }
    /// Opens the collection lazily.
    pub async fn get(self: &Arc<Self>, _name: &CollectionName) -> Result<Arc<Collection>> {
        unimplemented!()
    }
    /// true: made now; false: was there with equal settings.
    pub async fn create(
        self: &Arc<Self>,
        _name: CollectionName,
        _settings: Settings,
    ) -> Result<(Arc<Collection>, bool)> {
        unimplemented!()
    }
    pub async fn list(self: &Arc<Self>) -> Result<Vec<Description>> {
        unimplemented!()
    }
    pub async fn remove(self: &Arc<Self>, _name: &CollectionName) -> Result<()> {
        unimplemented!()
    }
    /// Waits for the queues to be written; blocking.
    pub fn close(&self) {
        unimplemented!()
    }
}

/// What a document was made into, ready to be judged. Cheap to move.
pub struct Prepared {}
impl Prepared {
    /// Packed slots; `None` for an empty document.
    pub fn signature(&self) -> Option<&[u8]> {
        unimplemented!()
    }
    pub fn shingles(&self) -> Option<u64> {
        unimplemented!()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    pub threshold: Option<f64>,
    pub limit: usize,
    pub with_metadata: bool,
}
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
    pub limit: usize,
    pub with_metadata: bool,
}

/// A decision that is not yet on disk.
pub struct Ticket<T> {
    _t: std::marker::PhantomData<T>,
}
impl<T> Ticket<T> {
    /// Returns once everything the answer rests on is on disk.
    pub async fn wait(self) -> Result<T> {
        unimplemented!()
    }
}

pub struct Comparison {
    pub estimate: Similarity,
    pub exact: Option<ExactComparison>,
}
pub struct ExactComparison {
    pub jaccard: f64,
    /* share of a's shingles that are in b */ pub containment_a_in_b: f64,
    pub containment_b_in_a: f64,
    pub shingles_a: u64,
    pub shingles_b: u64,
    pub intersection: u64,
}
pub enum Comparand {
    Content(Content),
    Id(DocId),
}

pub struct Collection {}
impl Collection {
    pub fn name(&self) -> &CollectionName {
        unimplemented!()
    }
    pub fn settings(&self) -> Settings {
        unimplemented!()
    }
    pub fn describe(&self) -> Description {
        unimplemented!()
    }
    /// Rebuilds the index where the banding changes.
    pub async fn update(self: &Arc<Self>, _threshold: Option<f64>, _banding: Option<Banding>) -> Result<Description> {
        unimplemented!()
    }
    pub async fn prepare(self: &Arc<Self>, _content: Content) -> Result<Prepared> {
        unimplemented!()
    }
    /// Never writes.
    pub async fn check(
        self: &Arc<Self>,
        _id: Option<DocId>,
        _content: Content,
        _options: CheckOptions,
    ) -> Result<Verdict> {
        unimplemented!()
    }
    /// Check-and-insert: decided when this returns, durable when the ticket does.
    pub async fn insert(
        self: &Arc<Self>,
        _id: DocId,
        _metadata: Option<Metadata>,
        _prepared: Prepared,
        _options: InsertOptions,
    ) -> Result<Ticket<Verdict>> {
        unimplemented!()
    }
    /// Whether the id was there.
    pub async fn delete(self: &Arc<Self>, _id: DocId) -> Result<Ticket<bool>> {
        unimplemented!()
    }
    pub async fn document(self: &Arc<Self>, _id: &DocId) -> Result<Option<Document>> {
        unimplemented!()
    }
    /// In order of `seq`, after the given one.
    pub async fn documents(self: &Arc<Self>, _after: Seq, _limit: usize) -> Result<Vec<Document>> {
        unimplemented!()
    }
    pub async fn compare(self: &Arc<Self>, _a: Comparand, _b: Comparand) -> Result<Comparison> {
        unimplemented!()
    }
}
