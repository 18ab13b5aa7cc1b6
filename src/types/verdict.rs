//! The answer to a lookup or an insertion.

use super::ids::{DocId, Metadata};
use super::places::TimestampMs;
use super::similarity::{Overlap, Similarity};

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// No document at or above the threshold.
    Unique,
    /// At least one document at or above the threshold.
    NearDuplicate,
    /// A document with equal canonical text (or equal set).
    ExactDuplicate,
    /// Nothing to compare: no token, no shingle.
    Empty,
}

impl VerdictKind {
    /// All kinds, for labels.
    pub const ALL: [Self; 4] = [Self::Unique, Self::NearDuplicate, Self::ExactDuplicate, Self::Empty];

    /// The name on the wire and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::NearDuplicate => "near_duplicate",
            Self::ExactDuplicate => "exact_duplicate",
            Self::Empty => "empty",
        }
    }

    /// Whether another document was found.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::NearDuplicate | Self::ExactDuplicate)
    }
}

/// What was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Looked up only.
    Checked,
    /// Stored under a new id.
    Inserted,
    /// Stored in place of the id's earlier content.
    Replaced,
    /// The id already holds this content; the verdict is the one of its first insertion.
    Unchanged,
    /// The id already holds this content and has other metadata now; the verdict is the one of its first insertion.
    Updated,
    /// The id was stored as a link to the original, without postings.
    Linked,
    /// Nothing was stored.
    Skipped,
    /// The id held other content, which is deleted; the new content is not stored.
    Removed,
}

impl Outcome {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Inserted => "inserted",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Updated => "updated",
            Self::Linked => "linked",
            Self::Skipped => "skipped",
            Self::Removed => "removed",
        }
    }
}

/// A stored document at or above the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Its id.
    pub id: DocId,
    /// Whether its content is equal.
    pub same_content: bool,
    /// How alike.
    pub similarity: Similarity,
    /// How many shingles they share, where they were compared exactly.
    pub overlap: Option<Overlap>,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Its metadata, where asked for.
    pub metadata: Option<Metadata>,
    /// It has metadata that was asked for and is not here.
    pub metadata_omitted: bool,
}

/// What was left out of an answer that would have been too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Matches, the last ones.
    pub matches: u64,
    /// The metadata of so many of the matches that are there.
    pub metadata: u64,
}

/// The earlier content of a replaced or conflicting id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous {
    /// How alike the old and the new content are.
    pub similarity: Similarity,
    /// When that content was first stored under the id.
    pub first_seen: TimestampMs,
}

/// The answer to "have we seen this, or nearly this?".
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What was found.
    pub kind: VerdictKind,
    /// What was done.
    pub outcome: Outcome,
    /// Whether this content is durably held under this id now.
    pub stored: bool,
    /// The id asked about, where one was given.
    pub id: Option<DocId>,
    /// The best match's id.
    pub duplicate_of: Option<DocId>,
    /// The best match's similarity.
    pub similarity: Option<f64>,
    /// The first-seen document of the cluster it was stored in; absent if it is that itself. If it was not stored, that of
    /// the cluster of its best match, if this is a link.
    pub representative: Option<DocId>,
    /// The threshold judged by.
    pub threshold: f64,
    /// Best first; at most the limit asked for.
    pub matches: Vec<Match>,
    /// How many more there would be if the answer had no bound.
    pub omitted_matches: u64,
    /// Distinct documents compared; those with equal signatures are compared as one.
    pub candidates: u32,
    /// Postings and candidates that a cap kept from being looked at: where there are any, one may be a match. A
    /// document may be counted once for each band.
    pub unread: u64,
    /// Shingles in the document, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The id's earlier content, where there is one and it differs.
    pub previous: Option<Previous>,
    /// Chance that a document exactly at a lowered threshold is proposed at all.
    pub expected_recall: Option<f64>,
}
