//! A prepared document, and the options of preparing it.

use hapax_core::ContentHash;

use super::kept::Kept;
use crate::cpu::WhenFull;
use crate::types::{PageFacts, PageMark, content_prefix};

/// Options of preparing a content.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrepareOptions {
    /// The action for a long content if too many other contents wait for a processor.
    pub when_full: WhenFull,
    /// Whether to keep the ranks. Ranks can be merged, but signatures cannot.
    pub ranks: bool,
    /// The purpose of the document.
    pub purpose: Purpose,
}

/// The purpose of a prepared document. Data in addition to its signature takes time and memory, so it is made only if
/// it is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    Sign,
    /// To compare it with another document. Its shingles are needed, even if the collection does not store any.
    Compare,
    /// To look it up, but not to store it. A collection that stores payloads refuses to insert a document with this
    /// purpose.
    Check,
    /// To look it up and store it.
    #[default]
    Insert,
}

/// A document that is ready for a verdict. `made` is absent for an empty document.
#[derive(Clone, Debug)]
pub struct Prepared {
    made: Option<Made>,
    shingles: Option<u64>,
    ranks: Option<Vec<u64>>,
    empty_slots: Option<u32>,
    page: Option<Box<PageFacts>>,
    /// Whether it has tokens, but fewer than an item of a containment collection must have. It then counts as empty.
    is_too_short: bool,
    /// The size of its content as it was sent, in bytes; 0 for a given signature.
    content_bytes: u64,
}

/// The data of a document that is not empty.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub signature: Vec<u8>,
    /// The hash of its content. It is absent if only a signature was sent, without this hash.
    pub content: Option<ContentHash>,
    /// Its shingles, if they are stored or compared.
    pub kept: Option<Kept>,
    /// The page that its text was extracted from.
    pub page: Option<PageMark>,
}

impl Made {
    /// Returns the part of the content hash that is kept in memory. 0 means that there is none.
    pub(crate) fn content_prefix(&self) -> u64 {
        self.content.map_or(0, |content| content_prefix(content).max(1))
    }
}

impl Prepared {
    pub(crate) fn new(made: Option<Made>, shingles: Option<u64>) -> Self {
        Self { made, shingles, ranks: None, empty_slots: None, page: None, is_too_short: false, content_bytes: 0 }
    }

    pub(super) fn with_content_bytes(self, bytes: usize) -> Self {
        Self { content_bytes: bytes as u64, ..self }
    }

    /// Makes a document that has tokens, but too few to be stored as an item.
    pub(super) fn too_short() -> Self {
        Self { is_too_short: true, ..Self::new(None, Some(0)) }
    }

    /// Whether the document has tokens, but fewer than an item of a containment collection must have.
    pub(crate) fn is_too_short(&self) -> bool {
        self.is_too_short
    }

    pub(super) fn with_ranks(self, ranks: Option<Vec<u64>>) -> Self {
        Self { ranks, ..self }
    }

    pub(super) fn with_empty_slots(self, empty_slots: Option<u32>) -> Self {
        Self { empty_slots, ..self }
    }

    pub(super) fn with_page(self, mark: PageMark, facts: PageFacts) -> Self {
        let made = self.made.map(|made| Made { page: Some(mark), ..made });
        Self { made, page: Some(Box::new(facts)), ..self }
    }

    /// Returns the same document for a lookup in another collection of the same spec, without the data that is stored
    /// with it.
    pub(crate) fn for_lookup(&self) -> Self {
        let made = self.made.as_ref().map(|made| Made {
            signature: made.signature.clone(),
            content: made.content,
            kept: made.kept.as_ref().map(Kept::without_payload),
            page: None,
        });
        Self::new(made, self.shingles)
    }

    /// Returns the document without its shingles, for a collection that does not store them.
    pub(crate) fn without_shingles(self) -> Self {
        Self { made: self.made.map(|made| Made { kept: None, ..made }), ..self }
    }

    /// Returns its data (`None` for an empty document) and its number of shingles.
    pub(crate) fn into_parts(self) -> (Option<Made>, Option<u64>) {
        (self.made, self.shingles)
    }

    /// Returns its data, or `None` for an empty document.
    pub(crate) fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// Returns the packed slots, or `None` for an empty document.
    pub fn signature(&self) -> Option<&[u8]> {
        self.made.as_ref().map(|made| &made.signature[..])
    }

    /// Returns the hash of its content; `None` for an empty document and for a given signature.
    pub fn content(&self) -> Option<ContentHash> {
        self.made.as_ref().and_then(|made| made.content)
    }

    /// Returns the size of the content as it was sent, in bytes; 0 for a given signature.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Returns the number of shingles with repetitions, or `None` for a given signature.
    pub fn shingles(&self) -> Option<u64> {
        self.shingles
    }

    /// Returns the least rank of each slot, with 2^64 - 1 for a slot without a rank. `None` if the ranks were not
    /// requested.
    pub fn ranks(&self) -> Option<&[u64]> {
        self.ranks.as_deref()
    }

    /// Takes the facts of the page, if the content was a page.
    pub fn take_page(&mut self) -> Option<Box<PageFacts>> {
        self.page.take()
    }

    /// Returns the number of slots that no shingle reached. It is known only for texts and sets in a collection with an
    /// `oph` sketch.
    pub fn empty_slots(&self) -> Option<u32> {
        self.empty_slots
    }
}
