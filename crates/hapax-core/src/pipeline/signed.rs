//! The result of signing a document.

use crate::hash::ContentHash;

/// The signature, content hash and shingle count of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The k packed slots.
    pub signature: Vec<u8>,
    /// A hash that is equal for equal canonical texts, or equal sets.
    pub content: ContentHash,
    /// The number of shingles: the windows of a text, including repeats, or the distinct elements of a set.
    pub shingles: u64,
    /// The number of slots that no shingle reached and densification filled; always 0 if the sketch is not `oph`.
    pub empty_slots: u32,
}

impl Default for Signed {
    fn default() -> Self {
        Self { signature: Vec::new(), content: ContentHash(0), shingles: 0, empty_slots: 0 }
    }
}
