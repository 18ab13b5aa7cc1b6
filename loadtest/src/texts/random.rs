//! Random numbers that are the same on every machine.

use hapax_core::{SplitMix64, fmix64};

pub(crate) struct Random(SplitMix64);

impl Random {
    /// Starts sequence `n` of a seed.
    pub(crate) fn of(seed: u64, n: u64) -> Self {
        Self(SplitMix64::new(fmix64(fmix64(seed.wrapping_add(1)) ^ n)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> u64::BITS) as u64
    }

    /// Returns a number above 0 and at most 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
