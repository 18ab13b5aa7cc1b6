//! What an insertion is about.

use hapax_core::ContentHash;

use super::decision::WriteTerms;
use crate::engine::lookup::Room;
use crate::types::{DocId, Metadata};
use crate::verdicts::{InsertOptions, Made};

/// What an insertion is about.
pub(crate) struct Insertion {
    pub id: DocId,
    /// What is stored with it.
    pub metadata: Option<Metadata>,
    pub made: Made,
    /// Its share of what may wait for the disk, if anything is kept beside its signature.
    pub room: Option<Room>,
    /// Its shingles, if it was a text or a set.
    pub shingles: Option<u64>,
    pub options: InsertOptions,
    /// Bytes of the answer.
    pub bytes_max: usize,
}

impl Insertion {
    /// Most bytes of metadata to load, if any is asked for.
    pub(super) fn metadata_bytes(&self) -> Option<usize> {
        self.options.with_metadata.then_some(self.bytes_max)
    }

    /// What `decision` goes by.
    pub(super) fn terms(&self, touch: bool) -> WriteTerms {
        let InsertOptions { on_duplicate, on_existing, .. } = self.options;
        WriteTerms { on_duplicate, on_existing, touch }
    }

    pub(super) fn content(&self) -> Option<ContentHash> {
        self.made.content
    }
}
