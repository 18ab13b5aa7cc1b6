//! MinHash as Broder had it (1997): k ranks of every shingle, one for each slot, each slot keeping its least.
//! A rank is `(fmix64(x ^ e) * a_i + b_i) >> 8`: one multiplication a slot on a mixed hash, whose low bits are dropped
//! because a product's low bits depend on its factors' low bits alone.

use crate::hash::{SplitMix64, fmix64, named_seed};

/// Shingles whose mixed hashes are kept at hand while a slot runs over them.
const BLOCK: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Constants {
    first: u64,
    /// a (odd) and b of each slot.
    slots: Box<[(u64, u64)]>,
}

impl Constants {
    pub(super) fn new(k: usize) -> Self {
        let mut generator = SplitMix64::new(named_seed(b"classic/"));
        let first = generator.next_u64();
        let slots = (0..k).map(|_| (generator.next_u64() | 1, generator.next_u64())).collect();
        Self { first, slots }
    }

    pub(super) fn push(&self, ranks: &mut [u64], shingles: &[u64]) {
        let mut mixed = [0; BLOCK];
        for block in shingles.chunks(BLOCK) {
            for (mixed, x) in mixed.iter_mut().zip(block) {
                *mixed = fmix64(x ^ self.first);
            }
            for (slot, (a, b)) in ranks.iter_mut().zip(&self.slots) {
                let least = mixed[..block.len()]
                    .iter()
                    .fold(u64::MAX, |least, mixed| least.min(mixed.wrapping_mul(*a).wrapping_add(*b)));
                *slot = (*slot).min(least >> 8);
            }
        }
    }
}
