//! `Insertion`: a document to insert, with its options.

use hapax_core::ContentHash;

use super::decision::WriteTerms;
use crate::engine::lookup::Room;
use crate::types::{DocId, Metadata};
use crate::verdicts::{InsertOptions, Made};

/// A document to insert, with its options.
pub(crate) struct Insertion {
    pub id: DocId,
    pub metadata: Option<Metadata>,
    pub made: Made,
    /// Its share of the bytes that may wait for the disk, if its shingles or its text are kept.
    pub room: Option<Room>,
    /// The number of its shingles, if it was given as a text or a set.
    pub shingles: Option<u64>,
    pub options: InsertOptions,
    /// The most bytes that the answer may have.
    pub bytes_max: usize,
}

impl Insertion {
    /// Returns the most bytes of metadata to load, if metadata is requested.
    pub(super) fn metadata_bytes(&self) -> Option<usize> {
        self.options.with_metadata.then_some(self.bytes_max)
    }

    /// Returns the options that `decision` needs.
    pub(super) fn terms(&self, touch: bool) -> WriteTerms {
        let InsertOptions { on_duplicate, on_existing, .. } = self.options;
        WriteTerms { on_duplicate, on_existing, touch }
    }

    pub(super) fn content(&self) -> Option<ContentHash> {
        self.made.content
    }
}
