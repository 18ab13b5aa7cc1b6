//! A set of hashes that may answer yes by mistake, but never no. Most n-grams of a corpus are in no item, so this small set
//! is asked before the table of the index.

/// Each hash sets three bits of one word of 64 bits, so that an answer takes one read.
pub(super) struct Filter {
    /// The number of words is a power of two.
    words: Vec<u64>,
    hashes: usize,
}

/// The words for each hash: 8 to 16 bits, as the number of words is a power of two. About 3 % of other hashes pass if the
/// filter is full, and 0.5 % if it has just grown.
const HASHES_PER_WORD: usize = 8;

impl Filter {
    /// Adds a hash. Returns false, and adds nothing, if the filter is full.
    pub(super) fn add(&mut self, hash: u64) -> bool {
        if self.hashes >= self.words.len() * HASHES_PER_WORD {
            return false;
        }
        self.hashes += 1;
        let at = self.word(hash);
        self.words[at] |= bits(hash);
        true
    }

    /// Makes an empty filter with room for this number of hashes, or more.
    pub(super) fn with_room(hashes: usize) -> Self {
        Self { words: vec![0; hashes.div_ceil(HASHES_PER_WORD).next_power_of_two()], hashes: 0 }
    }

    /// Appends the places of the hashes that are in the set, and of a few others.
    pub(super) fn places(&self, hashes: &[u64], places: &mut Vec<u32>) {
        const BLOCK: usize = 64;
        for (block, hashes) in hashes.chunks(BLOCK).enumerate() {
            // Most blocks have few places, so the bits of a block are first collected without a branch.
            let mut found = 0u64;
            for (at, &hash) in hashes.iter().enumerate() {
                found |= u64::from(self.has(hash)) << at;
            }
            while found != 0 {
                places.push(block as u32 * BLOCK as u32 + found.trailing_zeros());
                found &= found - 1;
            }
        }
    }

    #[inline(always)]
    fn has(&self, hash: u64) -> bool {
        let word = self.words[self.word(hash)];
        word >> (hash & 63) & word >> (hash >> 6 & 63) & word >> (hash >> 12 & 63) & 1 == 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    #[inline(always)]
    fn word(&self, hash: u64) -> usize {
        // The table of the index uses the lowest and the highest bits.
        (hash >> 24) as usize & (self.words.len() - 1)
    }
}

#[inline(always)]
fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

#[cfg(test)]
mod tests {
    use hapax_core::SplitMix64;

    use super::*;

    #[test]
    fn each_hash_passes_and_few_others_do() {
        let mut random = SplitMix64::new(7);
        let hashes: Vec<_> = (0..40_000).map(|_| random.next_u64()).collect();
        let others: Vec<_> = (0..100_000).map(|_| random.next_u64()).collect();
        let mut filter = Filter::with_room(hashes.len());
        assert!(hashes.iter().all(|hash| filter.add(*hash)));
        let mut places = vec![7];
        filter.places(&hashes, &mut places);
        assert!(places[0] == 7 && places[1..].iter().copied().eq(0..40_000));
        places.clear();
        filter.places(&others, &mut places);
        assert!((100..5_000).contains(&places.len()), "{} of 100,000", places.len());
    }

    #[test]
    fn a_full_filter_says_so() {
        let mut filter = Filter::with_room(0);
        assert_eq!((0..20).filter(|hash| filter.add(*hash)).count(), 8);
    }
}
