//! A document made ready to be judged, and the options it was prepared with.

use hapax_core::ContentHash;

use super::kept::Kept;
use crate::cpu::WhenFull;
use crate::types::content_prefix;

/// How a content is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrepareOptions {
    /// What to do with a long content where too many others wait for a processor.
    pub when_full: WhenFull,
    /// Whether to keep the ranks, which merge as signatures do not.
    pub ranks: bool,
    /// What it is prepared for.
    pub purpose: Purpose,
}

/// What a content is prepared for: what is made of it beside its signature takes time and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    Sign,
    /// To be compared with another document: its shingles are needed, whatever the collection keeps.
    Compare,
    /// To be looked up, and not stored: a collection that keeps something beside signatures refuses to insert it.
    Check,
    /// To be looked up, and stored.
    #[default]
    Insert,
}

/// A document, ready to be judged. `made` is absent for an empty one.
#[derive(Debug)]
pub struct Prepared {
    made: Option<Made>,
    shingles: Option<u64>,
    ranks: Option<Vec<u64>>,
    empty_slots: Option<u32>,
}

/// What a document that is not empty was made into.
#[derive(Debug)]
pub(crate) struct Made {
    pub signature: Vec<u8>,
    /// Absent for a given signature.
    pub content: Option<ContentHash>,
    /// Its shingles, where they are kept or compared.
    pub kept: Option<Kept>,
}

impl Made {
    /// The part of the content hash that memory keeps; 0 says there is none.
    pub(crate) fn content_prefix(&self) -> u64 {
        self.content.map_or(0, |content| content_prefix(content).max(1))
    }
}

impl Prepared {
    pub(super) fn new(made: Option<Made>, shingles: Option<u64>) -> Self {
        Self { made, shingles, ranks: None, empty_slots: None }
    }

    pub(super) fn with_ranks(self, ranks: Option<Vec<u64>>) -> Self {
        Self { ranks, ..self }
    }

    pub(super) fn with_empty_slots(self, empty_slots: Option<u32>) -> Self {
        Self { empty_slots, ..self }
    }

    /// What it was made into, `None` for an empty document; and how many shingles it has.
    pub(crate) fn into_parts(self) -> (Option<Made>, Option<u64>) {
        (self.made, self.shingles)
    }

    /// Packed slots; `None` for an empty document.
    pub fn signature(&self) -> Option<&[u8]> {
        self.made.as_ref().map(|made| &made.signature[..])
    }

    /// Shingles, repeats counted; `None` for a given signature.
    pub fn shingles(&self) -> Option<u64> {
        self.shingles
    }

    /// The least rank in each slot, 2^64 - 1 where there is none; `None` where they were not asked for.
    pub fn ranks(&self) -> Option<&[u64]> {
        self.ranks.as_deref()
    }

    /// Slots that no shingle reached; `None` except for texts and sets in a collection with an `oph` sketch.
    pub fn empty_slots(&self) -> Option<u32> {
        self.empty_slots
    }
}
