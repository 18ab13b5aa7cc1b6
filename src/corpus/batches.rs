//! Pairs of documents that share a band -> batches of documents that can be decided on one after another.
//!
//! A decision on a document depends only on documents that share a band with it: no other one is read from a bucket, is
//! counted there, or is compared. So documents that no chain of shared bands joins have nothing to do with each other, and
//! the decisions on each joined group are the same whether the other groups are in the index or not. A batch has whole
//! groups, as many as fit into memory. A group of one document needs no decision at all: the document is kept.
//!
//! Knows nothing of files, of signatures, or of how documents are decided on. A document takes eight bytes.

use super::forest::Forest;

/// The unit of the weights: they have 32 bits, but a group may take more than 4 GiB.
const WEIGHT_BYTES: usize = 64;

/// The documents that were joined so far.
pub struct SharedBands {
    groups: Forest,
    /// The memory that each document takes, in units.
    weights: Vec<u32>,
}

/// The batch of each document.
pub struct Batches {
    groups: Forest,
    /// The batch of each group, at the number of its first document.
    numbers: Vec<u32>,
    count: u32,
    /// The batches with a group that is larger than a batch may be, and with nothing else.
    large: Vec<u32>,
}

/// The number of a document that shares no band with another one.
const ALONE: u32 = u32::MAX;

impl SharedBands {
    /// The bytes that this takes for each document.
    pub const BYTES_EACH: usize = 8;

    /// `bytes`: the memory that each of the documents takes in its batch.
    pub fn new(documents: u32, bytes: impl Iterator<Item = usize>) -> Self {
        let mut weights = Vec::with_capacity(documents as usize);
        weights.extend(bytes.map(|bytes| u32::try_from(bytes.div_ceil(WEIGHT_BYTES)).unwrap_or(u32::MAX)));
        Self { groups: Forest::of(weights.len() as u32), weights }
    }

    /// Notes that two documents share a band.
    pub fn join(&mut self, one: u32, other: u32) {
        self.groups.join(one, other);
    }

    /// Divides the documents into batches of at most `bytes_max` bytes, except for groups that are larger.
    pub fn into_batches(self, bytes_max: usize) -> Batches {
        let Self { mut groups, mut weights } = self;
        let most = u32::try_from(bytes_max / WEIGHT_BYTES).unwrap_or(u32::MAX - 1);
        let is_joined = add_to_roots(&mut groups, &mut weights);
        let (mut count, mut filled, mut large) = (0, u32::MAX, Vec::new());
        for document in 0..weights.len() {
            let weight = weights[document];
            if groups.root(document as u32) as usize != document || is_joined[document / 64] >> (document % 64) & 1 == 0
            {
                weights[document] = ALONE;
                continue;
            }
            match filled.checked_add(weight).filter(|&filled| filled <= most) {
                Some(sum) => filled = sum,
                None => (count, filled) = (count + 1, weight),
            }
            weights[document] = count - 1;
            if weight > most {
                large.push(count - 1);
                filled = u32::MAX;
            }
        }
        Batches { groups, numbers: weights, count, large }
    }
}

/// Adds the weight of each document to that of its group. Returns a bit for each number, which is set for the roots of groups
/// of several documents.
fn add_to_roots(groups: &mut Forest, weights: &mut [u32]) -> Vec<u64> {
    let mut is_joined = vec![0u64; weights.len().div_ceil(64)];
    for document in 0..weights.len() {
        let root = groups.root(document as u32) as usize;
        if root != document {
            weights[root] = weights[root].saturating_add(weights[document]);
            is_joined[root / 64] |= 1 << (root % 64);
        }
    }
    is_joined
}

impl Batches {
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the batch of a document; `None` if it shares no band with another one.
    pub fn of(&mut self, document: u32) -> Option<u32> {
        let root = self.groups.root(document);
        Some(self.numbers[root as usize]).filter(|&number| number != ALONE)
    }

    /// Whether a batch is one group that is larger than a batch may be.
    pub fn is_large(&self, batch: u32) -> bool {
        self.large.binary_search(&batch).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(documents: u32, bytes: usize, pairs: &[(u32, u32)]) -> SharedBands {
        let mut shared = SharedBands::new(documents, (0..documents).map(|_| bytes));
        pairs.iter().for_each(|&(one, other)| shared.join(one, other));
        shared
    }

    #[test]
    fn a_batch_has_whole_groups_and_no_document_that_is_alone() {
        // 128 bytes each: the groups are 0 8, 2 3 5 and 6 7.
        let mut batches = shared(9, 100, &[(8, 0), (2, 3), (3, 5), (6, 7)]).into_batches(128 * 5);
        let of: Vec<_> = (0..9).map(|document| batches.of(document)).collect();
        assert_eq!(of, [Some(0), None, Some(0), Some(0), None, Some(0), Some(1), Some(1), Some(0)]);
        assert!(batches.count() == 2 && !batches.is_large(0) && !batches.is_large(1));
    }

    #[test]
    fn a_large_group_is_a_batch_of_its_own() {
        let mut batches = shared(7, 64, &[(0, 2), (1, 3), (4, 1), (5, 6)]).into_batches(128);
        let of: Vec<_> = (0..7).map(|document| batches.of(document)).collect();
        assert_eq!(of, [0, 1, 0, 1, 1, 2, 2].map(Some));
        assert_eq!([0, 1, 2].map(|batch| batches.is_large(batch)), [false, true, false]);
        assert_eq!(shared(3, 64, &[]).into_batches(1).count(), 0);
    }
}
