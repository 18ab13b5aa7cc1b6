//! What a collection is made with, and how it describes itself.

use std::path::PathBuf;
use std::time::Duration;

use hapax_core::{Banding, Fingerprint, SecretKey, SignatureShape, Spec, tuning};

use super::{CollectionError, Result};
use crate::types::{CollectionName, TimestampMs};

/// All that the collections of one data directory need to know.
#[derive(Clone, Debug)]
pub struct CollectionsConfig {
    /// Where the files are.
    pub data_dir: PathBuf,
    /// How long to wait for another process to give up the data directory.
    pub lock_wait: Duration,
    /// Most collections, open or not.
    pub collections_max: usize,
    /// The secret of collections with keyed hashing.
    pub secret: Option<SecretKey>,
    /// How `default` is made. Its spec must agree where it exists; banding and threshold may have been changed since.
    pub default_settings: Settings,
    /// Bounds of each collection's work.
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
    /// Bits of an id's fingerprint that memory tells ids apart by: 64. Tests take fewer, so that ids often collide.
    pub id_fingerprint_bits: u32,
}

/// What a collection is made with. The spec is frozen; the rest can be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The pipeline.
    pub spec: Spec,
    /// Bands and rows.
    pub banding: Banding,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: f64,
}

impl Settings {
    /// Refuses a threshold outside 0 to 1.
    pub fn checked(self) -> Result<Self> {
        check_threshold(self.threshold)?;
        Ok(self)
    }
}

impl std::fmt::Display for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spec, banding, threshold } = self;
        write!(f, "spec `{spec}`, banding {}x{}, threshold {threshold}", banding.bands(), banding.rows())
    }
}

/// A collection at one moment.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name.
    pub name: CollectionName,
    /// Its settings.
    pub settings: Settings,
    /// Fingerprint of the spec.
    pub fingerprint: Fingerprint,
    /// When it was made.
    pub created: TimestampMs,
    /// Durable documents, links included.
    pub documents: u64,
    /// Links among them; absent where the collection is not open.
    pub linked: Option<u64>,
    /// Chance that a document exactly at the threshold is proposed.
    pub candidate_recall_at_threshold: f64,
    /// Chance that a document exactly at the threshold is also judged so; about one half, by the estimate's spread.
    pub verdict_recall_at_threshold: f64,
}

impl Description {
    /// From what a file or a collection in memory knows of itself.
    pub(super) fn new(
        name: CollectionName,
        settings: Settings,
        created: TimestampMs,
        documents: u64,
        linked: Option<u64>,
    ) -> Self {
        let Settings { ref spec, banding, threshold } = settings;
        let shape = spec.shape();
        Self {
            fingerprint: spec.fingerprint(),
            candidate_recall_at_threshold: tuning::candidate_probability(threshold, banding, shape),
            verdict_recall_at_threshold: tuning::verdict_probability(threshold, banding, shape, threshold),
            name,
            settings,
            created,
            documents,
            linked,
        }
    }
}

pub(super) fn check_threshold(threshold: f64) -> Result<()> {
    if threshold > 0.0 && threshold <= 1.0 {
        return Ok(());
    }
    Err(CollectionError::Invalid {
        field: "threshold",
        detail: format!("a threshold is above 0 and at most 1, this is {threshold}"),
    })
}

pub(super) fn check_banding(banding: Banding, shape: SignatureShape) -> Result<Banding> {
    Banding::new(banding.bands(), banding.rows(), shape)
        .map_err(|error| CollectionError::Invalid { field: "banding", detail: error.to_string() })
}
