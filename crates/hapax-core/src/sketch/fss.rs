//! Fast similarity sketching (Dahlgaard, Knudsen, Thorup, arXiv:1704.04370), version 1.
//!
//! Shingles go through rounds. In round t, a shingle x has the value `v = fmix64(x ^ c_t)`: the low bits of v choose a
//! slot, and `t << 56 | v >> 8` is the rank of x in this slot. Each slot keeps its smallest rank. Ranks of later rounds
//! are larger, so no further round is run once every slot has a rank. If slot i is still empty after round 15, it gets
//! the minimum of `16 << 56 | (fmix64(x ^ d) * a_i) >> 8` over all shingles x.

use crate::mix::{SplitMix64, named_seed};
use crate::simd::{self, BATCH, SLOTS_MAX, Simd, SlotSet, lanes};

const ROUNDS: usize = 16;

/// The number of shingles, per slot, that may be held back for later rounds. After that many distinct shingles, the
/// probability that round 0 has left a slot empty is k·e^-16, so almost only sets with many repeats reach this limit.
const HELD_PER_SLOT: usize = 16;
/// If a slot is still empty with more shingles per slot than this, repeats are removed before another round. Without
/// repeats, so many shingles would have filled all slots.
const REPEATS_PER_SLOT: usize = 8;

/// The constants of a sketch of this kind.
#[derive(Clone, Debug)]
pub(super) struct Fss {
    rounds: [u64; ROUNDS],
    last: u64,
    /// The multiplier `a_i` of each slot, odd.
    multipliers: Box<[u64]>,
    /// Zeros, because the last resort adds nothing to its products.
    zeros: Box<[u64]>,
}

const NO_SLOTS: SlotSet = [0; SLOTS_MAX / 64];
const ALL_SLOTS: SlotSet = [u64::MAX; SLOTS_MAX / 64];

/// The state of a set, without its ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct FssProgress {
    /// Shingles that later rounds may need. They are kept until round 0 has filled all slots, or until there are too
    /// many of them.
    held: Vec<u64>,
    /// The last round whose ranks can still lower a slot: the greatest round in any slot, or `ROUNDS` if the last
    /// resort filled a slot.
    reach: usize,
    /// Whether every shingle runs through all rounds within reach, because there are too many to hold.
    eager: bool,
    batch: RoundBuffers,
}

/// The buffers of a round.
#[derive(Clone, Debug)]
struct RoundBuffers {
    /// Mixed shingles: all of them, or those that may lower a slot.
    values: Box<[u64; BATCH]>,
    /// The slots that only the last resort fills.
    slots: Vec<usize>,
    /// The multipliers of these slots.
    factors: Vec<u64>,
    /// The ranks that the last resort finds for these slots.
    least: Vec<u64>,
}

impl Default for RoundBuffers {
    fn default() -> Self {
        Self { values: Box::new([0; BATCH]), slots: Vec::new(), factors: Vec::new(), least: Vec::new() }
    }
}

impl FssProgress {
    pub(super) fn begin(&mut self) {
        self.held.clear();
        self.reach = ROUNDS;
        self.eager = false;
    }
}

impl Fss {
    pub(super) fn new(k: usize) -> Self {
        let mut generator = SplitMix64::new(named_seed(b"hapaxfss"));
        let rounds = std::array::from_fn(|_| generator.next_u64());
        let last = generator.next_u64();
        let multipliers = (0..k).map(|_| generator.next_u64() | 1).collect();
        Self { rounds, last, multipliers, zeros: vec![0; k].into() }
    }

    pub(super) fn push(&self, simd: Simd, ranks: &mut [u64], progress: &mut FssProgress, shingles: &[u64]) {
        self.first_round(simd, ranks, &mut progress.batch, shingles);
        if progress.reach == 0 {
            return;
        }
        if progress.eager {
            self.rounds_after_first(simd, ranks, &mut progress.batch, progress.reach, shingles);
            progress.reach = reach(ranks);
            return;
        }
        progress.held.extend_from_slice(shingles);
        let held_max = HELD_PER_SLOT * ranks.len();
        if progress.held.len() <= held_max {
            return;
        }
        if simd::untouched(simd, ranks) == NO_SLOTS {
            progress.held.clear();
            progress.reach = 0;
            return;
        }
        progress.held.sort_unstable();
        progress.held.dedup();
        if progress.held.len() > held_max / 2 {
            self.rounds_after_first(simd, ranks, &mut progress.batch, ROUNDS, &progress.held);
            progress.held.clear();
            progress.eager = true;
            progress.reach = reach(ranks);
        }
    }

    pub(super) fn finish(&self, simd: Simd, ranks: &mut [u64], progress: &mut FssProgress) {
        if progress.reach == 0 || progress.eager || progress.held.is_empty() {
            return;
        }
        let FssProgress { held, batch, .. } = progress;
        let mut open = simd::untouched(simd, ranks);
        if open != NO_SLOTS && held.len() > REPEATS_PER_SLOT * ranks.len() {
            held.sort_unstable();
            held.dedup();
        }
        for t in 1..ROUNDS {
            if open == NO_SLOTS {
                return;
            }
            open = self.round(simd, t, ranks, batch, &open, held);
        }
        if open != NO_SLOTS {
            held.sort_unstable();
            held.dedup();
            self.last_resort(simd, ranks, batch, held);
        }
    }

    fn first_round(
        &self,
        simd: Simd,
        ranks: &mut [u64],
        RoundBuffers { values, .. }: &mut RoundBuffers,
        shingles: &[u64],
    ) {
        for shingles in shingles.chunks(BATCH) {
            lanes::mix(simd, shingles, self.rounds[0], &mut values[..]);
            for &v in &values[..shingles.len()] {
                lower(0, ranks, v);
            }
        }
    }

    /// Runs one round. It can lower only a slot that was empty before, or that the same round has filled. There are few
    /// such slots, so most shingles are skipped. Returns the slots that it leaves empty.
    fn round(
        &self,
        simd: Simd,
        t: usize,
        ranks: &mut [u64],
        RoundBuffers { values, .. }: &mut RoundBuffers,
        open: &SlotSet,
        shingles: &[u64],
    ) -> SlotSet {
        let mut still_open = *open;
        for shingles in shingles.chunks(BATCH) {
            let count = simd::mix_and_select(simd, shingles, self.rounds[t], open, ranks.len(), values);
            for &v in &values[..count] {
                let slot = lower(t, ranks, v);
                still_open[slot / 64] &= !(1 << (slot % 64));
            }
        }
        still_open
    }

    /// Runs all rounds from 1 to `reach`, even if they fill nothing. This is more work than stopping early, but the
    /// result is the same.
    fn rounds_after_first(
        &self,
        simd: Simd,
        ranks: &mut [u64],
        batch: &mut RoundBuffers,
        reach: usize,
        shingles: &[u64],
    ) {
        for t in 1..ROUNDS.min(reach + 1) {
            self.round(simd, t, ranks, batch, &ALL_SLOTS, shingles);
        }
        if reach == ROUNDS {
            self.last_resort(simd, ranks, batch, shingles);
        }
    }

    /// Fills the slots that no round has reached. There are few such slots if there are many shingles.
    fn last_resort(&self, simd: Simd, ranks: &mut [u64], batch: &mut RoundBuffers, shingles: &[u64]) {
        const HIGH: u64 = (ROUNDS as u64) << 56;
        let RoundBuffers { values, slots, factors, least } = batch;
        slots.clear();
        slots.extend(ranks.iter().enumerate().filter(|(_, rank)| **rank >= HIGH).map(|(slot, _)| slot));
        factors.clear();
        factors.extend(slots.iter().map(|&slot| self.multipliers[slot]));
        factors.resize(slots.len().next_multiple_of(lanes::SLOTS), 1);
        least.clear();
        least.resize(factors.len(), u64::MAX);
        for shingles in shingles.chunks(BATCH) {
            lanes::mix(simd, shingles, self.last, &mut values[..]);
            lanes::lower_to_least(simd, &values[..shingles.len()], factors, &self.zeros, HIGH, least);
        }
        for (slot, least) in slots.iter().zip(least) {
            ranks[*slot] = ranks[*slot].min(*least);
        }
    }
}

/// Lowers the slot that a mixed shingle of round t chooses; returns that slot.
#[inline(always)]
fn lower(t: usize, ranks: &mut [u64], v: u64) -> usize {
    let slot = v as usize & (ranks.len() - 1);
    ranks[slot] = ranks[slot].min((t as u64) << 56 | v >> 8);
    slot
}

fn reach(ranks: &[u64]) -> usize {
    let greatest = ranks.iter().fold(0, |greatest, &rank| rank.max(greatest));
    ((greatest >> 56) as usize).min(ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::fmix64;
    use crate::simd::EMPTY;

    /// Computes the ranks as they are defined: every shingle goes through every round and the last resort, and each
    /// slot keeps its minimum.
    fn definition(constants: &Fss, k: usize, shingles: &[u64]) -> Vec<u64> {
        let mut ranks = vec![EMPTY; k];
        for &x in shingles {
            for (t, c) in constants.rounds.iter().enumerate() {
                let v = fmix64(x ^ c);
                let slot = &mut ranks[v as usize & (k - 1)];
                *slot = (*slot).min((t as u64) << 56 | v >> 8);
            }
            for (slot, a) in ranks.iter_mut().zip(&constants.multipliers) {
                *slot = (*slot).min(16 << 56 | fmix64(x ^ constants.last).wrapping_mul(*a) >> 8);
            }
        }
        ranks
    }

    /// Returns shingles that round 0 never places in the upper half of the slots: the worst input for an unkeyed
    /// sketch.
    fn avoiding(constants: &Fss, k: usize, len: usize) -> Vec<u64> {
        let mut generator = SplitMix64::new(9);
        let lower = |x: &u64| (fmix64(x ^ constants.rounds[0]) as usize & (k - 1)) < k / 2;
        std::iter::repeat_with(|| generator.next_u64()).filter(lower).take(len).collect()
    }

    #[test]
    fn stopping_holding_and_eager_rounds_change_nothing() {
        let k = 64;
        let constants = Fss::new(k);
        let mut generator = SplitMix64::new(8);
        let random: Vec<u64> = (0..5_000).map(|_| generator.next_u64()).collect();
        let avoiding = avoiding(&constants, k, 5_000);
        let mut repeats = [1, 2, 3, 4].repeat(2_000);
        repeats.extend_from_slice(&random[..20]);
        for set in [&random[..1], &random[..5], &random[..100], &random, &avoiding[..900], &avoiding, &repeats] {
            let expected = definition(&constants, k, set);
            for (block, simd) in
                [1, 7, 512, 5_000].into_iter().flat_map(|block| Simd::available().map(move |simd| (block, simd)))
            {
                let (mut ranks, mut progress) = (vec![EMPTY; k], FssProgress::default());
                progress.begin();
                for shingles in set.chunks(block) {
                    constants.push(simd, &mut ranks, &mut progress, shingles);
                    assert!(progress.held.len() <= HELD_PER_SLOT * k);
                }
                constants.finish(simd, &mut ranks, &mut progress);
                assert!(ranks == expected, "{} shingles in blocks of {block}, {simd:?}", set.len());
            }
        }
    }
}
