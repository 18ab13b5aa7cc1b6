//! A stored document with the verdict of its insertion, and the part of it that a match shows.

use std::sync::Arc;

use hapax_core::ContentHash;

use super::additions::Additions;
use crate::types::{Capture, DocId, Labels, Metadata, Overlap, PageMark, Payload, Seq, TimestampMs, VerdictKind};

/// A stored document.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The identity of the document and its position in the commit order.
    pub seq: Seq,
    /// The client's name for the document.
    pub id: DocId,
    /// A 64-bit hash of the id. Memory holds it instead of the id.
    pub id_fingerprint: u64,
    /// The packed slots.
    pub signature: Vec<u8>,
    /// The hash of the canonical text; meaningless if `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether the document is a link, which has no postings.
    pub linked: bool,
    /// The metadata that the client stored with the document.
    pub metadata: Option<Metadata>,
    /// The labels that the client gave to the document.
    pub labels: Option<Labels>,
    /// The capture that the content came from.
    pub capture: Capture,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// When the id was first stored, with any content.
    pub id_first_seen: TimestampMs,
    /// When the document was last seen, according to the disk. Memory may have a later time.
    pub seen: TimestampMs,
    /// The cluster of the document, named by the `seq` of its founder. `Seq(0)` if the document founded a cluster
    /// itself.
    pub cluster: Seq,
    /// The number of shingles, including repeats. `None` if the client gave the signature.
    pub shingles: Option<u64>,
    /// The page that the text was extracted from, if it came from one.
    pub page: Option<PageMark>,
    /// The verdict of the insertion.
    pub verdict: StoredVerdict,
    /// The shingles or the text, if the collection keeps them. Set in a record that will be written, and in a record
    /// from [`Store::whole_records`](super::Store::whole_records). Other reads do not set it.
    pub payload: Option<Arc<Payload>>,
}

/// The verdict of an insertion, stored so that a retry gets the same answer. Matches are stored by `seq`; their ids are
/// looked up when the verdict is read.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredVerdict {
    pub kind: VerdictKind,
    /// The id of the best match. It stays here even after that document is gone.
    pub duplicate_of: Option<DocId>,
    /// The threshold that was used; finite.
    pub threshold: f64,
    pub candidates: u32,
    /// The number of postings and candidates that were not looked at because of a limit.
    pub unread: u64,
    /// The matches, best first.
    pub matches: Vec<StoredMatch>,
}

/// A match of a [`StoredVerdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMatch {
    pub seq: Seq,
    /// The number of equal slots.
    pub matching: u32,
    /// Whether both contents are equal.
    pub exact: bool,
    /// How many shingles both documents share, if they were compared exactly.
    pub overlap: Option<Overlap>,
}

/// A record without signature and verdict: the part that an answer needs for a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub seq: Seq,
    /// The client's name for the document.
    pub id: DocId,
    /// The metadata that the client stored with the document, if it was requested.
    pub metadata: Option<Metadata>,
    /// Whether metadata was requested but not read, because other records used up the bytes allowed for it.
    pub metadata_left: bool,
    /// The capture that the content came from, if it was requested.
    pub capture: Capture,
    /// The hash of the canonical text; meaningless if `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether the document is a link.
    pub linked: bool,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// The number of shingles, including repeats.
    pub shingles: Option<u64>,
}

impl Record {
    /// Returns the parts that can change while the content stays the same.
    pub fn additions(&self) -> Additions {
        Additions {
            metadata: self.metadata.clone(),
            labels: self.labels.clone(),
            capture: self.capture.clone(),
            page: self.page,
        }
    }

    /// Returns the record with `additions` instead of its own.
    pub fn with_additions(self, additions: Additions) -> Self {
        let Additions { metadata, labels, capture, page } = additions;
        Self { metadata, labels, capture, page, ..self }
    }

    /// Returns the part of the record that a match shows.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            id: self.id.clone(),
            metadata: self.metadata.clone(),
            metadata_left: false,
            capture: self.capture.clone(),
            content: self.content,
            given: self.given,
            linked: self.linked,
            first_seen: self.first_seen,
            shingles: self.shingles,
        }
    }
}
