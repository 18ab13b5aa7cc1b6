//! Shingle hashes -> k ranks -> packed signature. The ranks of two sets can be merged into the ranks of their union;
//! packed slots cannot. Knows nothing of text, bands or storage.

mod classic;
mod fss;
mod oph;

use crate::simd::{EMPTY, SLOTS_MAX, Simd, lanes};
use crate::spec::SketchKind;

/// The minimum rank of each slot: the sketch before it is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    kind: SketchKind,
    slots: Vec<u64>,
}

impl Ranks {
    /// Returns the number of slots.
    pub fn k(&self) -> usize {
        self.slots.len()
    }

    /// Returns the ranks, slot by slot. A slot that no shingle reached has the rank 2^64 - 1. The empty set has only
    /// such slots. With `oph`, packing fills them from other slots.
    pub fn as_slice(&self) -> &[u64] {
        &self.slots
    }

    /// Keeps the smaller rank of each slot, which makes this the sketch of the union of both sets.
    ///
    /// # Panics
    /// If the ranks are of different kinds or lengths: they cannot be compared.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!((self.kind, self.k()), (other.kind, other.k()), "ranks of one spec");
        for (mine, theirs) in self.slots.iter_mut().zip(&other.slots) {
            *mine = (*mine).min(*theirs);
        }
    }

    /// Mixes each rank and returns its low 8, 16 or 32 bits, little-endian.
    pub fn pack(&self, bits: u32) -> Vec<u8> {
        let mut state = SketchState { ranks: self.slots.clone(), ..SketchState::default() };
        let mut packed = Vec::new();
        Sketcher::new(self.kind, self.k() as u32).pack_into(&mut state, bits, &mut packed);
        packed
    }
}

/// A kind of sketch with its constants for one k.
#[derive(Clone, Debug)]
pub struct Sketcher {
    constants: Constants,
    k: usize,
    simd: Simd,
}

#[derive(Clone, Debug)]
enum Constants {
    Fss(fss::Fss),
    Classic(classic::Classic),
    Oph,
    /// Nothing is sketched.
    None,
}

/// A sketch that is being made; its buffers are reused.
#[derive(Clone, Debug, Default)]
pub struct SketchState {
    ranks: Vec<u64>,
    fss: fss::FssProgress,
    /// The ranks after `oph` has filled its empty slots.
    dense: Vec<u64>,
}

impl SketchState {
    /// Returns the ranks so far; after [`Sketcher::finish`], the ranks of the whole set.
    pub fn ranks(&self) -> &[u64] {
        &self.ranks
    }
}

impl Sketcher {
    /// Makes the constants of this kind for k slots, a power of two. [`SketchKind::None`] has no slots.
    pub fn new(kind: SketchKind, k: u32) -> Self {
        Self::with_simd(kind, k, Simd::best())
    }

    /// Like [`Sketcher::new`], with the given vector instructions.
    pub fn with_simd(kind: SketchKind, k: u32, simd: Simd) -> Self {
        if kind == SketchKind::None {
            return Self { constants: Constants::None, k: 0, simd };
        }
        let k = k as usize;
        assert!(k.is_power_of_two() && (64..=SLOTS_MAX).contains(&k), "k of a valid spec");
        let constants = match kind {
            SketchKind::Fss => Constants::Fss(fss::Fss::new(k)),
            SketchKind::Classic => Constants::Classic(classic::Classic::new(k)),
            SketchKind::Oph => Constants::Oph,
            SketchKind::None => unreachable!("it has no slots"),
        };
        Self { constants, k, simd }
    }

    fn kind(&self) -> SketchKind {
        match self.constants {
            Constants::Fss(_) => SketchKind::Fss,
            Constants::Classic(_) => SketchKind::Classic,
            Constants::Oph => SketchKind::Oph,
            Constants::None => SketchKind::None,
        }
    }

    /// Begins the sketch of another set.
    pub fn begin(&self, state: &mut SketchState) {
        state.ranks.clear();
        state.ranks.resize(self.k, EMPTY);
        state.fss.begin();
    }

    /// Adds shingle hashes; repeats and order do not matter.
    pub fn push(&self, state: &mut SketchState, shingles: &[u64]) {
        match &self.constants {
            Constants::Fss(constants) => constants.push(self.simd, &mut state.ranks, &mut state.fss, shingles),
            Constants::Classic(constants) => constants.push(self.simd, &mut state.ranks, shingles),
            Constants::Oph => oph::push(self.simd, &mut state.ranks, shingles),
            Constants::None => {}
        }
    }

    /// Ends the set. Its ranks stay in the state until the next [`Sketcher::begin`].
    pub fn finish(&self, state: &mut SketchState) {
        if let Constants::Fss(constants) = &self.constants {
            constants.finish(self.simd, &mut state.ranks, &mut state.fss);
        }
    }

    /// Replaces `packed` by the packed signature of a set that [`Sketcher::finish`] has ended: each rank is mixed, and
    /// its low 8, 16 or 32 bits are written, little-endian. Returns the number of slots that no shingle had reached.
    pub fn pack_into(&self, state: &mut SketchState, bits: u32, packed: &mut Vec<u8>) -> u32 {
        let ranks = match self.constants {
            Constants::Fss(_) | Constants::Classic(_) | Constants::None => &state.ranks,
            Constants::Oph => {
                oph::densify(&state.ranks, &mut state.dense);
                &state.dense
            }
        };
        packed.resize(ranks.len() * bits as usize / 8, 0);
        // Ranks are mixed first, because their low bits contain the slot and their high bits the round.
        lanes::pack(self.simd, ranks, packed);
        state.ranks.iter().map(|&rank| u32::from(rank == EMPTY)).sum()
    }

    /// Returns the ranks of a whole set.
    pub fn ranks(&self, shingles: &[u64]) -> Ranks {
        let mut state = SketchState::default();
        self.begin(&mut state);
        self.push(&mut state, shingles);
        self.finish(&mut state);
        self.take_ranks(&state)
    }

    /// Returns a copy of the ranks of a set that [`Sketcher::finish`] has ended.
    pub fn take_ranks(&self, state: &SketchState) -> Ranks {
        Ranks { kind: self.kind(), slots: state.ranks.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::{SplitMix64, fmix64};

    fn random_set(generator: &mut SplitMix64, len: usize) -> Vec<u64> {
        (0..len).map(|_| generator.next_u64()).collect()
    }

    #[test]
    fn merging_ranks_equals_the_sketch_of_the_union() {
        let mut generator = SplitMix64::new(3);
        for kind in SketchKind::ALL {
            for k in [64, 256] {
                let sketcher = Sketcher::new(kind, k);
                for round in 0..300 {
                    let lens = [generator.next_u64() % 12, generator.next_u64() % (1 << (round % 12))];
                    let [a, b] = lens.map(|len| random_set(&mut generator, len as usize + usize::from(round > 5)));
                    let union: Vec<u64> = a.iter().chain(&b).copied().collect();
                    let mut merged = sketcher.ranks(&a);
                    merged.merge(&sketcher.ranks(&b));
                    assert_eq!(merged, sketcher.ranks(&union), "{kind:?} k={k} round {round} of seed 3");
                }
            }
        }
    }

    #[test]
    fn neither_order_nor_repeats_nor_blocks_matter() {
        let mut generator = SplitMix64::new(4);
        for kind in SketchKind::ALL {
            let sketcher = Sketcher::new(kind, 128);
            for len in [1, 4, 30, 700, 20_000] {
                let set = random_set(&mut generator, len);
                let expected = sketcher.ranks(&set);
                let mut shuffled: Vec<u64> = set.iter().rev().chain(&set[len / 2..]).copied().collect();
                shuffled.sort_unstable_by_key(|&x| fmix64(x));
                let mut state = SketchState::default();
                for block in [1, 17, 4096] {
                    sketcher.begin(&mut state);
                    shuffled.chunks(block).for_each(|shingles| sketcher.push(&mut state, shingles));
                    sketcher.finish(&mut state);
                    assert_eq!(state.ranks(), expected.as_slice(), "{kind:?} {len} in {block}s");
                }
            }
        }
    }

    #[test]
    fn every_slot_of_a_set_with_an_element_is_filled() {
        for kind in SketchKind::ALL {
            let sketcher = Sketcher::new(kind, 1024);
            let mut one = SketchState::default();
            sketcher.begin(&mut one);
            sketcher.push(&mut one, &[5]);
            sketcher.finish(&mut one);
            let empty = sketcher.pack_into(&mut one, 16, &mut Vec::new());
            assert_eq!(empty, if kind == SketchKind::Oph { 1023 } else { 0 });
            assert_eq!(one.ranks().iter().filter(|&&rank| rank == EMPTY).count(), empty as usize);
            assert!(sketcher.ranks(&[]).as_slice().iter().all(|&rank| rank == EMPTY));
        }
    }

    #[test]
    fn packed_slots_are_the_low_bits_of_one_another() {
        let ranks = Sketcher::new(SketchKind::Fss, 64).ranks(&[1, 2, 3]);
        let (bytes, words, longs) = (ranks.pack(8), ranks.pack(16), ranks.pack(32));
        assert_eq!((bytes.len(), words.len(), longs.len()), (64, 128, 256));
        for slot in 0..64 {
            assert_eq!(bytes[slot], words[slot * 2]);
            assert_eq!(words[slot * 2..slot * 2 + 2], longs[slot * 4..slot * 4 + 2]);
        }
    }
}
