//! Broder's MinHash (1997): every shingle has k ranks, one for each slot, and each slot keeps the minimum of its ranks.
//! A rank is `(fmix64(x ^ e) * a_i + b_i) >> 8`: one multiplication a slot on a mixed hash. The low bits are dropped
//! because a product's low bits depend only on its factors' low bits.

use crate::mix::{SplitMix64, named_seed};
use crate::simd::{BATCH, Simd, lanes};

/// The constants of a sketch of this kind.
#[derive(Clone, Debug)]
pub(super) struct Classic {
    first: u64,
    /// The factor `a_i` of each slot, odd.
    factors: Box<[u64]>,
    /// The term `b_i` of each slot.
    terms: Box<[u64]>,
}

impl Classic {
    pub(super) fn new(k: usize) -> Self {
        let mut generator = SplitMix64::new(named_seed(b"classic/"));
        let first = generator.next_u64();
        let (factors, terms): (Vec<u64>, Vec<u64>) =
            (0..k).map(|_| (generator.next_u64() | 1, generator.next_u64())).unzip();
        Self { first, factors: factors.into(), terms: terms.into() }
    }

    pub(super) fn push(&self, simd: Simd, ranks: &mut [u64], shingles: &[u64]) {
        let mut mixed = [0; BATCH];
        for shingles in shingles.chunks(BATCH) {
            lanes::mix(simd, shingles, self.first, &mut mixed);
            lanes::lower_to_least(simd, &mixed[..shingles.len()], &self.factors, &self.terms, 0, ranks);
        }
    }
}
