//! The items of a containment collection that a text contains: options and result.

use crate::types::{DocId, ID_JSON_BYTES_MAX};

/// Options of a lookup by containment.
#[derive(Clone, Copy, Debug)]
pub struct OverlapOptions {
    /// The least share of an item's n-grams that the text must have. An item of which the text has no n-gram is never
    /// found.
    pub containment_min: f64,
    /// The largest number of items in the answer.
    pub limit: usize,
}

/// An item of which a text has some n-grams.
#[derive(Clone, Debug)]
pub struct OverlappingItem {
    /// `None` until the id is known.
    pub id: Option<DocId>,
    /// The share of the item's distinct n-grams that the text has.
    pub containment: f64,
    /// The number of these n-grams.
    pub shared: u64,
    /// The number of distinct n-grams of the item.
    pub ngrams: u64,
    /// The passages of the text that consist of these n-grams: the first byte, and the byte after the last one.
    pub spans: Vec<(u32, u32)>,
    /// The number of passages that are not listed.
    pub spans_omitted: u64,
}

/// The items that a text contains.
#[derive(Clone, Debug)]
pub struct Overlaps {
    /// The items with the highest containment, the highest first; of two with the same, the one that was stored first.
    pub items: Vec<OverlappingItem>,
    /// The number of all items that the options allow.
    pub found: u64,
    /// Whether no item is missing.
    pub is_complete: bool,
}

impl OverlappingItem {
    /// The most passages that are listed for one item.
    pub const SPANS_MAX: usize = 100;
    /// The largest possible size of an item as JSON without its id and passages, in bytes.
    const BYTES: usize = 160;
    /// The largest possible size of a passage as JSON, in bytes.
    const SPAN_BYTES: usize = 24;

    /// The largest possible size of an item as JSON, in bytes.
    pub const BYTES_MAX: usize = Self::BYTES + ID_JSON_BYTES_MAX + Self::SPANS_MAX * Self::SPAN_BYTES;

    fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, DocId::json_bytes);
        Self::BYTES + id + self.spans.len() * Self::SPAN_BYTES
    }
}

impl Overlaps {
    /// The largest possible size of an answer as JSON without its items, in bytes.
    const BYTES: usize = 128;

    /// Returns the largest possible size of an answer with `items` items as JSON, in bytes.
    pub fn bytes_max(items: usize) -> usize {
        Self::BYTES + items * OverlappingItem::BYTES_MAX
    }

    /// Returns the largest possible size of this answer as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        Self::BYTES + self.items.iter().map(OverlappingItem::bytes).sum::<usize>()
    }

    /// Leaves out the last items until the answer has at most `bytes_max` bytes. The first item always stays.
    pub fn fitting(mut self, bytes_max: usize) -> Self {
        let (mut bytes, mut stay) = (Self::BYTES, 0);
        for item in &self.items {
            bytes += item.bytes();
            if stay > 0 && bytes > bytes_max {
                break;
            }
            stay += 1;
        }
        self.items.truncate(stay);
        self
    }
}
