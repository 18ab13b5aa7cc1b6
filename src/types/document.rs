//! A stored document.

use super::ids::{DocId, Metadata};
use super::places::{Seq, TimestampMs};
use super::verdict::VerdictKind;

/// A stored document as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its id.
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// When the id was first stored, with whatever content.
    pub id_first_seen: TimestampMs,
    /// When it was last seen; absent where documents stay for ever, and in pages.
    pub last_seen: Option<TimestampMs>,
    /// When it goes, if it is not seen again; absent likewise.
    pub expires: Option<TimestampMs>,
    /// Shingles, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The verdict at its insertion.
    pub verdict: VerdictKind,
    /// The original it was found to duplicate.
    pub duplicate_of: Option<DocId>,
    /// The first-seen document of its cluster; absent where it is that itself.
    pub representative: Option<DocId>,
    /// Whether it is a link without postings.
    pub linked: bool,
}
