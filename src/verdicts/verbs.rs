//! The options of the operations of a collection (check, insert, compare), and their results other than verdicts.

use std::sync::Arc;

use crate::types::{
    Capture, Content, DocId, ID_JSON_BYTES_MAX, Labels, Metadata, OnDuplicate, OnExisting, PayloadDigest, Scope,
    Similarity,
};

/// The data that a client stores with a content. If the content is stored already, absent data stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    pub metadata: Option<Metadata>,
    pub labels: Option<Labels>,
    pub capture: Capture,
}

impl From<Option<Metadata>> for Attached {
    fn from(metadata: Option<Metadata>) -> Self {
        Self { metadata, ..Self::default() }
    }
}

/// Options of a lookup.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// A threshold that replaces the collection's own.
    pub threshold: Option<f64>,
    /// The largest number of matches in the answer.
    pub limit: usize,
    /// Whether matches are returned with their metadata.
    pub with_metadata: bool,
    /// Whether the verdict is returned with an explanation.
    pub explain: bool,
    /// The digest of the payload that the content comes from. With it, the verdict says whether a match has the same
    /// payload.
    pub payload_digest: Option<PayloadDigest>,
    /// The documents that can be found; all if absent.
    pub scope: Option<Arc<Scope>>,
}

impl CheckOptions {
    /// Returns whether an answer needs only the ids of its matches, without metadata and captures.
    pub(crate) fn needs_ids_alone(&self) -> bool {
        !self.with_metadata && self.payload_digest.is_none()
    }
}

/// Options of an insertion.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// The action if the document has a duplicate.
    pub on_duplicate: OnDuplicate,
    /// The action if other content is stored under its id.
    pub on_existing: OnExisting,
    /// The largest number of matches in the answer.
    pub limit: usize,
    /// Whether matches are returned with their metadata.
    pub with_metadata: bool,
    /// Whether the verdict is returned with an explanation.
    pub explain: bool,
    /// Whether the write may wait longer for other writes to share its transaction. This is set for inserts of streams.
    pub patient: bool,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub enum Comparand {
    /// A content in the request.
    Content(Content),
    Id(DocId),
}

/// The similarity of two documents.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub estimate: Similarity,
    /// The exact similarity, if the shingles of both are given or stored.
    pub exact: Option<ExactComparison>,
}

/// The comparison of two sets of shingles.
#[derive(Clone, Copy, Debug)]
pub struct ExactComparison {
    /// The number of shared shingles divided by the number of all shingles.
    pub jaccard: f64,
    /// The share of a's shingles that are in b.
    pub containment_a_in_b: f64,
    /// The share of b's shingles that are in a.
    pub containment_b_in_a: f64,
    /// The number of distinct shingles of a.
    pub shingles_a: u64,
    /// The number of distinct shingles of b.
    pub shingles_b: u64,
    /// The number of distinct shingles that both have.
    pub intersection: u64,
}

/// Documents that share a band key.
#[derive(Clone, Debug)]
pub struct HotBucket {
    /// The number of the band, from 0.
    pub band: u32,
    pub key: u64,
    pub documents: u64,
    /// The ids of some of the documents, old and new ones.
    pub sample: Vec<DocId>,
}

impl HotBucket {
    /// The largest number of ids in the sample.
    pub const SAMPLE_MAX: usize = 10;
    /// The largest possible size of a bucket as JSON without the ids, in bytes.
    pub const OWN_BYTES: usize = 128;
    /// The largest possible size of any bucket as JSON, in bytes.
    pub const BYTES_MAX: usize = Self::OWN_BYTES + Self::SAMPLE_MAX * (3 + ID_JSON_BYTES_MAX);
}
