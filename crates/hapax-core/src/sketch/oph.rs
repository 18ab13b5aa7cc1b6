//! One permutation hashing (Li, Owen, Zhang 2012) with optimal densification (Shrivastava 2017, arXiv:1703.04664).
//!
//! A shingle x has the value `v = fmix64(x ^ c)`: the low bits of v choose one slot, and `v >> 8` is the rank of x in
//! this slot. Slots that no shingle reached stay empty in the ranks, so that ranks can be merged.
//!
//! Packing gives each empty slot the rank of a donor. To find the donor, slots are drawn,
//! `fmix64(d ^ (slot << 32 | draw))` for draws 0, 1, 2 …, until a drawn slot is not empty. The number of the empty
//! slot, `(slot + 1) << 48`, is XORed into the rank. Otherwise, two sets of one shingle each would agree in all 256
//! slots at once with probability 1/256, because all slots of such a set are filled from one rank.

use crate::mix::{SplitMix64, fmix64, named_seed};
use crate::simd::{BATCH, EMPTY, Simd, lanes};

const CONSTANTS: [u64; 2] = {
    let mut generator = SplitMix64::new(named_seed(b"oneperm/"));
    [generator.next_u64(), generator.next_u64()]
};
const PLACE: u64 = CONSTANTS[0];
const DRAW: u64 = CONSTANTS[1];

pub(super) fn push(simd: Simd, ranks: &mut [u64], shingles: &[u64]) {
    let mask = ranks.len() - 1;
    let mut mixed = [0; BATCH];
    for shingles in shingles.chunks(BATCH) {
        lanes::mix(simd, shingles, PLACE, &mut mixed);
        for &v in &mixed[..shingles.len()] {
            let slot = &mut ranks[v as usize & mask];
            *slot = (*slot).min(v >> 8);
        }
    }
}

/// Gives every empty slot the rank of its donor, read from `ranks` and written to `dense`.
pub(super) fn densify(ranks: &[u64], dense: &mut Vec<u64>) {
    dense.clear();
    dense.extend_from_slice(ranks);
    let mut occupied = ranks.iter().filter(|&&rank| rank != EMPTY);
    let Some(&first) = occupied.next() else { return };
    // With a single donor, drawing until it is found would take k draws a slot.
    let only = occupied.next().is_none().then_some(first);
    for (slot, rank) in dense.iter_mut().enumerate().filter(|(_, rank)| **rank == EMPTY) {
        let slot = slot as u64;
        let mut drawn = (0u64..).map(|draw| ranks[fmix64(DRAW ^ (slot << 32 | draw)) as usize & (ranks.len() - 1)]);
        let donated = only.or_else(|| drawn.find(|&drawn| drawn != EMPTY));
        *rank = donated.expect("some slot is not empty, and draws go on until it is met") ^ (slot + 1) << 48;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_slot_takes_the_first_occupied_one_drawn_for_it() {
        let k = 64;
        for occupied in [1, 2, 5, 60] {
            let mut ranks = vec![EMPTY; k];
            (0..occupied).for_each(|i| ranks[(i * 37 + 11) % k] = i as u64);
            let mut dense = Vec::new();
            densify(&ranks, &mut dense);
            for (slot, dense) in dense.iter().enumerate() {
                let mut at = slot;
                let mut draw = 0;
                while ranks[at] == EMPTY {
                    at = (fmix64(DRAW ^ ((slot as u64) << 32 | draw)) % k as u64) as usize;
                    draw += 1;
                }
                let own = if draw == 0 { 0 } else { (slot as u64 + 1) << 48 };
                assert_eq!(*dense, ranks[at] ^ own, "slot {slot} of {occupied} occupied");
            }
        }
    }
}
