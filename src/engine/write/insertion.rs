//! `Insertion`: a document to insert, with its options.

use std::sync::Arc;

use hapax_core::ContentHash;

use super::merge_place::MergePlace;
use super::rules::WriteTerms;
use crate::engine::lookup::Room;
use crate::store::Additions;
use crate::types::{DocId, Merged, PayloadDigest, Verdict};
use crate::verdicts::{Attached, InsertOptions, Kept, Made};

/// Metadata up to this length, in bytes, is not counted: even if the queue is full of writes with such metadata, their
/// metadata takes only some megabytes in total.
const METADATA_BYTES_FREE: usize = 1024;

/// A document to insert, with its options.
pub(crate) struct Insertion {
    pub id: DocId,
    pub attached: Attached,
    pub made: Made,
    /// The document's share of the bytes that may wait for the disk, if it needs more than a few bytes.
    pub room: Option<Room>,
    /// The number of shingles of the document, if it was given as a text or a set.
    pub shingles: Option<u64>,
    pub options: InsertOptions,
    /// The maximum size of the answer, in bytes.
    pub bytes_max: usize,
    /// The place of the document in a merge, if the document belongs to a merge.
    pub merge: Option<MergePlace>,
}

impl Insertion {
    /// Returns the maximum number of bytes of metadata to load, if metadata is requested.
    pub(super) fn metadata_bytes(&self) -> Option<usize> {
        self.options.with_metadata.then_some(self.bytes_max)
    }

    /// Returns the digest of the payload that the content comes from.
    pub(super) fn payload_digest(&self) -> Option<&PayloadDigest> {
        self.attached.capture.digest.as_ref()
    }

    /// Returns whether the answer needs neither the metadata nor the capture of a match.
    pub(super) fn needs_ids_alone(&self) -> bool {
        !self.options.with_metadata && self.payload_digest().is_none()
    }

    /// Returns the size of the document's payload and metadata, which are in memory until the document is on disk; 0 if
    /// they are small.
    pub(super) fn waiting_bytes(&self) -> usize {
        let kept = self.made.kept.as_ref().filter(|kept| kept.payload.is_some()).map_or(0, Kept::bytes);
        let metadata = self.attached.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        if kept == 0 && metadata <= METADATA_BYTES_FREE { 0 } else { kept + metadata }
    }

    /// Returns the options that `rules` needs.
    pub(super) fn terms(&self, touch: bool) -> WriteTerms {
        let InsertOptions { on_duplicate, on_existing, .. } = self.options;
        WriteTerms { on_duplicate, on_existing, touch }
    }

    /// Returns the data to store with the content: the data that was sent, and the rest from `held`. Empty metadata and
    /// labels are stored as none.
    pub(super) fn additions(&self, held: Option<Additions>) -> Additions {
        let Attached { metadata, labels, capture } = self.attached.clone();
        let held = held.unwrap_or_default();
        Additions {
            metadata: metadata.map_or(held.metadata, |sent| Some(sent).filter(|sent| !sent.is_empty())),
            labels: labels.map_or(held.labels, |sent| Some(sent).filter(|sent| !sent.is_empty())),
            capture: held.capture.and_again(&capture),
            page: self.made.page.or(held.page),
        }
    }

    /// Returns the report of the decision, if it belongs to a merge.
    pub(super) fn merged(&self, verdict: &Verdict) -> Option<Arc<Merged>> {
        self.merge.map(|place| place.decided(&self.id, verdict))
    }

    pub(super) fn content(&self) -> Option<ContentHash> {
        self.made.content
    }
}
