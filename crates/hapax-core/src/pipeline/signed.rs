//! What signing makes of a document.

use crate::hash::ContentHash;

/// What a document is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// k packed slots.
    pub signature: Vec<u8>,
    /// Equal for equal canonical texts, or equal sets.
    pub content: ContentHash,
    /// Windows of a text, repeats counted; distinct elements of a set.
    pub shingles: u64,
    /// Slots that no shingle reached and densification filled; 0 but with an `oph` sketch.
    pub empty_slots: u32,
}

impl Default for Signed {
    fn default() -> Self {
        Self { signature: Vec::new(), content: ContentHash(0), shingles: 0, empty_slots: 0 }
    }
}
