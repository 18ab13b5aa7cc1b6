//! A stored document.

use super::capture::Capture;
use super::ids::{DocId, ID_JSON_BYTES_MAX, METADATA_BYTES_MAX, Metadata};
use super::labels::Labels;
use super::places::{Seq, TimestampMs};
use super::verdict::VerdictKind;

/// The largest possible size of a stored document as JSON without its ids, metadata, labels and capture, in bytes.
const DOCUMENT_BYTES: usize = 512;

/// The fields that a document may have in JSON, in requests and in files.
pub const DOCUMENT_FIELDS: [&str; 12] = [
    "id",
    "text",
    "html",
    "signature",
    "set",
    "fingerprint",
    "content_hash",
    "shingles",
    "metadata",
    "labels",
    "date",
    "payload_digest",
];

/// A stored document as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub id: DocId,
    /// The position of the document in the commit order.
    pub seq: Seq,
    pub metadata: Option<Metadata>,
    pub labels: Option<Labels>,
    /// The capture that the content came from.
    pub capture: Capture,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// When the id was first stored, with any content.
    pub id_first_seen: TimestampMs,
    /// When the document was last seen; absent if documents never expire, and in pages of documents.
    pub last_seen: Option<TimestampMs>,
    /// When the document expires if it is not seen again; absent if `last_seen` is absent.
    pub expires: Option<TimestampMs>,
    /// The number of shingles, repeats counted; absent if the client sent a signature without `shingles`.
    pub shingles: Option<u64>,
    /// The verdict of the insertion.
    pub verdict: VerdictKind,
    /// The id of the original, if the document was found to be a duplicate.
    pub duplicate_of: Option<DocId>,
    /// The id of the first-seen document of its cluster; absent if that is this document itself.
    pub representative: Option<DocId>,
    /// Whether the document is a link, which has no postings.
    pub linked: bool,
}

impl Document {
    /// The largest possible size of any document as JSON, in bytes.
    pub const BYTES_MAX: usize =
        DOCUMENT_BYTES + 3 * ID_JSON_BYTES_MAX + METADATA_BYTES_MAX + Labels::JSON_BYTES_MAX + Capture::JSON_BYTES_MAX;

    /// Returns the largest possible size of this document as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        let ids = [Some(&self.id), self.duplicate_of.as_ref(), self.representative.as_ref()];
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        let labels = self.labels.as_ref().map_or(0, Labels::json_bytes);
        let capture = self.capture.json_bytes();
        DOCUMENT_BYTES + metadata + labels + capture + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>()
    }
}

/// The canonical text of a stored document, for an answer with a length limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredText {
    Whole(String),
    /// The text does not fit into the answer.
    TooLong {
        /// The least length that the answer would have, in bytes of JSON.
        bytes: usize,
    },
    /// The document is a set, which has no text.
    Absent,
}
