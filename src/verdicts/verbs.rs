//! What verbs are asked, and what they answer beside verdicts.

use crate::types::{Content, DocId, ID_JSON_BYTES_MAX, OnDuplicate, OnExisting, Similarity};

/// How to look a document up.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// In place of the collection's own.
    pub threshold: Option<f64>,
    /// Most matches in the answer.
    pub limit: usize,
    /// Whether matches bring their metadata.
    pub with_metadata: bool,
}

/// How to insert a document.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// What to do when it has a duplicate.
    pub on_duplicate: OnDuplicate,
    /// What to do when its id holds other content.
    pub on_existing: OnExisting,
    /// Most matches in the answer.
    pub limit: usize,
    /// Whether matches bring their metadata.
    pub with_metadata: bool,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub enum Comparand {
    /// Given with the request.
    Content(Content),
    Id(DocId),
}

/// How alike two documents are.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub estimate: Similarity,
    /// From their shingles, where those of both are at hand: given, or kept.
    pub exact: Option<ExactComparison>,
}

/// Two sets of shingles side by side.
#[derive(Clone, Copy, Debug)]
pub struct ExactComparison {
    /// Shared shingles in all shingles.
    pub jaccard: f64,
    /// Share of a's shingles that are in b.
    pub containment_a_in_b: f64,
    /// Share of b's shingles that are in a.
    pub containment_b_in_a: f64,
    /// Distinct shingles of a.
    pub shingles_a: u64,
    /// Distinct shingles of b.
    pub shingles_b: u64,
    /// Distinct shingles of both.
    pub intersection: u64,
}

/// Documents that share a band key.
#[derive(Clone, Debug)]
pub struct HotBucket {
    /// Which band, from 0.
    pub band: u32,
    pub key: u64,
    pub documents: u64,
    /// Some of them, old and new.
    pub sample: Vec<DocId>,
}

impl HotBucket {
    /// Most ids named of each.
    pub const SAMPLE_MAX: usize = 10;
    /// Most bytes of its JSON without the ids.
    pub const OWN_BYTES: usize = 128;
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = Self::OWN_BYTES + Self::SAMPLE_MAX * (3 + ID_JSON_BYTES_MAX);
}
