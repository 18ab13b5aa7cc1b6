//! Secret numbers that tables mix into their keys, so that no client can choose which keys fall into the same bucket.
//! Signatures and content hashes may be given by clients. Without a seed, a client could make documents whose keys
//! share a shard, bucket and tag, and every lookup and insertion would look at all of them.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use hapax_core::fmix64;

/// Two secret numbers. Only tables in memory use these numbers. No file depends on them, so each process may have its
/// own numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    before: u64,
    factor: u64,
}

impl Seed {
    /// Returns the seed of this process.
    pub(super) fn of_process() -> Self {
        static SEED: OnceLock<Seed> = OnceLock::new();
        // `RandomState` gets its keys from the system. `fixed` makes two numbers from one.
        *SEED.get_or_init(|| Self::fixed(RandomState::new().hash_one(0_u64)))
    }

    /// Makes a seed that is the same in every process, for tests.
    pub(super) fn fixed(number: u64) -> Self {
        let before = fmix64(number ^ 0x6861_7061_7821);
        // The factor is odd and has its highest bit set, so that no product loses bits of the other factor.
        let factor = fmix64(before.wrapping_add(0x9E37_79B9_7F4A_7C15)) | 1 << 63 | 1;
        Self { before, factor }
    }

    /// Returns the key of 64 bits of input. Both secret numbers are needed to find inputs with similar keys.
    #[inline]
    pub(super) fn key(self, input: u64) -> u64 {
        fold(fmix64(input ^ self.before), self.factor)
    }

    /// Returns the key of many words.
    #[inline]
    pub(super) fn key_of_all(self, words: impl Iterator<Item = u64>) -> u64 {
        self.key(words.fold(self.before, |key, word| fold(key ^ word, self.factor).wrapping_add(key.rotate_left(29))))
    }

    /// Computes one step of the key of a few words. [`Self::key`] finishes the key.
    #[inline]
    pub(super) fn step(self, key: u64, word: u64) -> u64 {
        fmix64(fold(key ^ self.before, self.factor)) ^ word
    }
}

/// Combines the upper and the lower half of the product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use super::*;

    #[test]
    fn seeds_place_the_same_inputs_differently() {
        let (one, other) = (Seed::fixed(1), Seed::fixed(2));
        let together = |seed: Seed, bits: u32| {
            let keys: std::collections::HashSet<u64> = (0..4096_u64).map(|n| seed.key(n) >> (64 - bits)).collect();
            keys.len()
        };
        assert!((0..4096).all(|n| one.key(n) != other.key(n)));
        assert!((0..4096).all(|n| one.key_of_all([n, 1].into_iter()) != other.key_of_all([n, 1].into_iter())));
        // 4,096 balls thrown into 4,096 boxes fill 63 % of them.
        for seed in [one, other, Seed::of_process()] {
            assert!((2450..2730).contains(&together(seed, 12)), "{}", together(seed, 12));
        }
        assert_eq!(Seed::fixed(7).key(9), Seed::fixed(7).key(9));
    }
}
