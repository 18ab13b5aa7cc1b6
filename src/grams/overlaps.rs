//! The result of a lookup: the items that a text contains, the best first.

use std::cmp::Ordering;

/// An item of which a text has some n-grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub item: u32,
    /// The number of distinct n-grams of the item that the text has.
    pub shared: usize,
    /// The number of distinct n-grams of the item.
    pub grams: usize,
}

impl Overlap {
    /// The share of the item's distinct n-grams that the text has.
    pub fn containment(&self) -> f64 {
        self.shared as f64 / self.grams as f64
    }

    /// The order of a result: by containment, the highest first.
    pub fn by_containment(&self, other: &Self) -> Ordering {
        // Fractions are compared without rounding.
        let [own, others] = [self.shared * other.grams, other.shared * self.grams];
        others.cmp(&own)
    }

    /// The same order. If the containment is equal, the lower number of an item comes first.
    pub(super) fn rank(&self, other: &Self) -> Ordering {
        self.by_containment(other).then(self.item.cmp(&other.item))
    }
}

/// The items that a text contains.
#[derive(Debug, Default)]
pub struct Overlaps {
    pub(super) found: Vec<Overlap>,
    pub(super) capped: usize,
}

impl Overlaps {
    /// The items, the best first.
    pub fn found(&self) -> &[Overlap] {
        &self.found
    }

    /// The number of distinct n-grams of the text whose items were not all read, because there are too many. All values of
    /// the items that were found are exact all the same. An item may be missing only if every n-gram that it shares with the
    /// text is one of these.
    pub fn capped(&self) -> usize {
        self.capped
    }

    /// Whether no item is missing.
    pub fn is_complete(&self) -> bool {
        self.capped == 0
    }
}
