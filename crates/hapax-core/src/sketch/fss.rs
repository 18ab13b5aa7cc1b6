//! Fast similarity sketching (Dahlgaard, Knudsen, Thorup, arXiv:1704.04370), version 1.
//!
//! In round t a shingle x goes to one slot, `v = fmix64(x ^ c_t)`: the low bits of v choose the slot, `t << 56 | v >> 8`
//! is its rank. Every slot keeps its least rank, so the rounds after the first at whose end no slot is empty cannot
//! change anything and are not run. Slots that are empty after round 15 take the least
//! `16 << 56 | (fmix64(x ^ d) * a_i) >> 8`.

use super::EMPTY;
use crate::hash::{SplitMix64, fmix64, named_seed};

const ROUNDS: usize = 16;

/// Shingles are held back for later rounds up to so many a slot. Distinct ones leave a slot empty after round 0 with
/// probability k·e^-16, so almost always only a set of many repeats comes here.
const HELD_PER_SLOT: usize = 16;
/// From so many a slot on, repeats are looked for before another round: distinct shingles would have filled all slots.
const REPEATS_PER_SLOT: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Constants {
    rounds: [u64; ROUNDS],
    last: u64,
    multipliers: Box<[u64]>,
}

/// How far a set has come besides its ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Shingles that later rounds may need, while round 0 leaves a slot empty and they are few.
    held: Vec<u64>,
    /// The rounds whose ranks can still win: the greatest round in any slot, `ROUNDS` where the last resort is.
    reach: usize,
    /// Every shingle runs through all rounds within reach, because too many would have to be held.
    eager: bool,
}

impl Progress {
    pub(super) fn begin(&mut self) {
        self.held.clear();
        self.reach = ROUNDS;
        self.eager = false;
    }
}

impl Constants {
    pub(super) fn new(k: usize) -> Self {
        let mut generator = SplitMix64::new(named_seed(b"hapaxfss"));
        let rounds = std::array::from_fn(|_| generator.next_u64());
        let last = generator.next_u64();
        let multipliers = (0..k).map(|_| generator.next_u64() | 1).collect();
        Self { rounds, last, multipliers }
    }

    pub(super) fn push(&self, ranks: &mut [u64], progress: &mut Progress, shingles: &[u64]) {
        self.round(0, ranks, shingles);
        if progress.reach == 0 {
            return;
        }
        if progress.eager {
            self.rounds_after_first(ranks, progress.reach, shingles);
            progress.reach = reach(ranks);
        } else if has_empty(ranks) {
            progress.held.extend_from_slice(shingles);
            let held_max = HELD_PER_SLOT * ranks.len();
            if progress.held.len() > held_max {
                progress.held.sort_unstable();
                progress.held.dedup();
                if progress.held.len() > held_max / 2 {
                    self.rounds_after_first(ranks, ROUNDS, &progress.held);
                    progress.held.clear();
                    progress.eager = true;
                    progress.reach = reach(ranks);
                }
            }
        } else {
            progress.held.clear();
            progress.reach = 0;
        }
    }

    pub(super) fn finish(&self, ranks: &mut [u64], progress: &mut Progress) {
        if progress.reach == 0 || progress.eager || progress.held.is_empty() {
            return;
        }
        let held = &mut progress.held;
        if held.len() > REPEATS_PER_SLOT * ranks.len() {
            held.sort_unstable();
            held.dedup();
        }
        for t in 1..ROUNDS {
            if !has_empty(ranks) {
                return;
            }
            self.round(t, ranks, held);
        }
        if has_empty(ranks) {
            held.sort_unstable();
            held.dedup();
            self.last_resort(ranks, held);
        }
    }

    fn round(&self, t: usize, ranks: &mut [u64], shingles: &[u64]) {
        let (constant, round) = (self.rounds[t], (t as u64) << 56);
        let mask = ranks.len() - 1;
        for &x in shingles {
            let v = fmix64(x ^ constant);
            let slot = &mut ranks[v as usize & mask];
            *slot = (*slot).min(round | v >> 8);
        }
    }

    /// All rounds from 1 to `reach`, without regard to what they fill: more work than stopping, the same result.
    fn rounds_after_first(&self, ranks: &mut [u64], reach: usize, shingles: &[u64]) {
        for t in 1..ROUNDS.min(reach + 1) {
            self.round(t, ranks, shingles);
        }
        if reach == ROUNDS {
            self.last_resort(ranks, shingles);
        }
    }

    fn last_resort(&self, ranks: &mut [u64], shingles: &[u64]) {
        for (slot, multiplier) in ranks.iter_mut().zip(&self.multipliers) {
            if *slot < (ROUNDS as u64) << 56 {
                continue;
            }
            for &x in shingles {
                let rank = (ROUNDS as u64) << 56 | fmix64(x ^ self.last).wrapping_mul(*multiplier) >> 8;
                *slot = (*slot).min(rank);
            }
        }
    }
}

fn has_empty(ranks: &[u64]) -> bool {
    // No early exit, so that it vectorises.
    ranks.iter().fold(false, |empty, &rank| empty | (rank == EMPTY))
}

fn reach(ranks: &[u64]) -> usize {
    let greatest = ranks.iter().fold(0, |greatest, &rank| rank.max(greatest));
    ((greatest >> 56) as usize).min(ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: every shingle through every round and the last resort, then the least of each slot.
    fn definition(constants: &Constants, k: usize, shingles: &[u64]) -> Vec<u64> {
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

    /// Shingles whose round 0 never reaches the upper half of the slots: the worst that an unkeyed sketch can be fed.
    fn avoiding(constants: &Constants, k: usize, len: usize) -> Vec<u64> {
        let mut generator = SplitMix64::new(9);
        let lower = |x: &u64| (fmix64(x ^ constants.rounds[0]) as usize & (k - 1)) < k / 2;
        std::iter::repeat_with(|| generator.next_u64()).filter(lower).take(len).collect()
    }

    #[test]
    fn stopping_holding_and_eager_rounds_change_nothing() {
        let k = 64;
        let constants = Constants::new(k);
        let mut generator = SplitMix64::new(8);
        let random: Vec<u64> = (0..5_000).map(|_| generator.next_u64()).collect();
        let avoiding = avoiding(&constants, k, 5_000);
        let mut repeats = [1, 2, 3, 4].repeat(2_000);
        repeats.extend_from_slice(&random[..20]);
        for set in [&random[..1], &random[..5], &random[..100], &random, &avoiding[..900], &avoiding, &repeats] {
            let expected = definition(&constants, k, set);
            for block in [1, 7, 512, 5_000] {
                let (mut ranks, mut progress) = (vec![EMPTY; k], Progress::default());
                progress.begin();
                for shingles in set.chunks(block) {
                    constants.push(&mut ranks, &mut progress, shingles);
                    assert!(progress.held.len() <= HELD_PER_SLOT * k);
                }
                constants.finish(&mut ranks, &mut progress);
                assert!(ranks == expected, "{} shingles in blocks of {block}", set.len());
            }
        }
    }
}
