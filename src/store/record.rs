//! A document as it is stored, with the verdict of its insertion; and the part of it that a match shows.

use std::sync::Arc;

use hapax_core::ContentHash;

use crate::types::{DocId, Metadata, Overlap, Payload, Seq, TimestampMs, VerdictKind};

/// A document as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its identity and its place in the order.
    pub seq: Seq,
    /// The client's name for it.
    pub id: DocId,
    /// 64 bits of the id, which RAM keeps in its place.
    pub id_fingerprint: u64,
    /// Packed slots.
    pub signature: Vec<u8>,
    /// Hash of the canonical text; means nothing where `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether it is a link, without postings.
    pub linked: bool,
    /// What the client keeps beside it.
    pub metadata: Option<Metadata>,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// When its id was first stored, with whatever content.
    pub id_first_seen: TimestampMs,
    /// When it was last seen, as far as that is on disk.
    pub seen: TimestampMs,
    /// The cluster it belongs to, named by the `seq` of its founder; `Seq(0)` where it founded its own.
    pub cluster: Seq,
    /// Shingles, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The verdict at its insertion.
    pub verdict: StoredVerdict,
    /// What is kept beside the signature, where the collection keeps something; on its way to the disk only: a record
    /// that was read has none, and [`Store::payloads`](super::Store::payloads) reads it.
    pub payload: Option<Arc<Payload>>,
}

/// The verdict of an insertion, kept so that a retry repeats it. Matches are kept by `seq`; ids are resolved on reading.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredVerdict {
    pub kind: VerdictKind,
    /// The best match's id, which outlives the match.
    pub duplicate_of: Option<DocId>,
    /// The threshold judged by; finite.
    pub threshold: f64,
    pub candidates: u32,
    /// Postings and candidates that a cap kept from being looked at.
    pub unread: u64,
    /// Best first.
    pub matches: Vec<StoredMatch>,
}

/// One match of a [`StoredVerdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMatch {
    pub seq: Seq,
    /// Equal slots.
    pub matching: u32,
    /// Whether the contents are equal.
    pub exact: bool,
    /// How many shingles they share, where they were compared exactly.
    pub overlap: Option<Overlap>,
}

/// A record without signature and verdict: what the resolution of a match needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub seq: Seq,
    /// The client's name for it.
    pub id: DocId,
    /// What the client keeps beside it, where asked for.
    pub metadata: Option<Metadata>,
    /// It has some that was asked for and left in the file, because others took the bytes granted for it.
    pub metadata_left: bool,
    /// Hash of the canonical text; means nothing where `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether it is a link.
    pub linked: bool,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Shingles, repeats counted.
    pub shingles: Option<u64>,
}

impl Record {
    /// The part of it that a match shows.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            id: self.id.clone(),
            metadata: self.metadata.clone(),
            metadata_left: false,
            content: self.content,
            given: self.given,
            linked: self.linked,
            first_seen: self.first_seen,
            shingles: self.shingles,
        }
    }
}
