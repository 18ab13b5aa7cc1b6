//! A stored document.

use super::ids::{DocId, ID_JSON_BYTES_MAX, METADATA_BYTES_MAX, Metadata};
use super::places::{Seq, TimestampMs};
use super::verdict::VerdictKind;

/// A stored document without its ids and metadata, in bytes of JSON.
const DOCUMENT_BYTES: usize = 512;

/// A stored document as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub id: DocId,
    /// Its place in the order.
    pub seq: Seq,
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

impl Document {
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = DOCUMENT_BYTES + 3 * ID_JSON_BYTES_MAX + METADATA_BYTES_MAX;

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        let ids = [Some(&self.id), self.duplicate_of.as_ref(), self.representative.as_ref()];
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        DOCUMENT_BYTES + metadata + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>()
    }
}
