//! Shingle hashes -> k ranks -> packed signature. Ranks of two sets merge to the ranks of their union; packed slots do
//! not. Knows nothing of text, bands or storage.

mod classic;
mod fss;

use crate::hash::fmix64;
use crate::spec::{SignatureShape, SketchKind};

/// What a slot holds that no shingle has reached: greater than every rank.
const EMPTY: u64 = u64::MAX;

/// The least rank of each slot: the sketch before it is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Vec<u64>);

impl Ranks {
    /// Slots.
    pub fn k(&self) -> usize {
        self.0.len()
    }

    /// The ranks, slot by slot. 2^64 - 1 stands in the slots of the empty set only.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Makes this the sketch of the union of both sets.
    ///
    /// # Panics
    /// If the ranks have different lengths; of different kinds or lengths they are not comparable.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.0.len(), other.0.len(), "ranks of one spec have one length");
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).min(*theirs);
        }
    }

    /// The low 8, 16 or 32 bits of each rank, mixed, little-endian.
    pub fn pack(&self, bits: u32) -> Vec<u8> {
        pack(&self.0, bits)
    }
}

/// Mixing first, because the low bits of a rank carry its slot and the high bits its round.
fn pack(ranks: &[u64], bits: u32) -> Vec<u8> {
    let mixed = ranks.iter().map(|&rank| fmix64(rank));
    match bits {
        8 => mixed.map(|slot| slot as u8).collect(),
        16 => mixed.flat_map(|slot| (slot as u16).to_le_bytes()).collect(),
        32 => mixed.flat_map(|slot| (slot as u32).to_le_bytes()).collect(),
        _ => unreachable!("a text spec has slots of 8, 16 or 32 bits"),
    }
}

/// A kind of sketch with its constants for one k.
#[derive(Clone, Debug)]
pub struct Sketcher {
    constants: Constants,
    k: usize,
}

#[derive(Clone, Debug)]
enum Constants {
    Fss(fss::Constants),
    Classic(classic::Constants),
}

/// A sketch in the making; its buffers can be used again.
#[derive(Clone, Debug, Default)]
pub struct SketchState {
    ranks: Vec<u64>,
    fss: fss::Progress,
}

impl Sketcher {
    /// The constants of this kind for k slots, a power of two.
    pub fn new(kind: SketchKind, k: u32) -> Self {
        let k = k as usize;
        assert!(k.is_power_of_two(), "k of a valid spec is a power of two");
        let constants = match kind {
            SketchKind::Fss => Constants::Fss(fss::Constants::new(k)),
            SketchKind::Classic => Constants::Classic(classic::Constants::new(k)),
        };
        Self { constants, k }
    }

    /// Begins the sketch of another set.
    pub fn begin(&self, state: &mut SketchState) {
        state.ranks.clear();
        state.ranks.resize(self.k, EMPTY);
        state.fss.begin();
    }

    /// Takes more shingle hashes; repeats and order do not matter.
    pub fn push(&self, state: &mut SketchState, shingles: &[u64]) {
        match &self.constants {
            Constants::Fss(constants) => constants.push(&mut state.ranks, &mut state.fss, shingles),
            Constants::Classic(constants) => constants.push(&mut state.ranks, shingles),
        }
    }

    /// Ends the set and returns its ranks, which stay in the state until the next [`Sketcher::begin`].
    pub fn finish<'a>(&self, state: &'a mut SketchState) -> &'a [u64] {
        if let Constants::Fss(constants) = &self.constants {
            constants.finish(&mut state.ranks, &mut state.fss);
        }
        &state.ranks
    }

    /// The packed signature of a set that [`Sketcher::finish`] has ended.
    pub fn packed(&self, state: &SketchState, shape: SignatureShape) -> Vec<u8> {
        pack(&state.ranks, shape.bits)
    }

    /// Ranks of a whole set at once.
    pub fn ranks(&self, shingles: &[u64]) -> Ranks {
        let mut state = SketchState::default();
        self.begin(&mut state);
        self.push(&mut state, shingles);
        self.finish(&mut state);
        Ranks(state.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SplitMix64;

    const KINDS: [SketchKind; 2] = [SketchKind::Fss, SketchKind::Classic];

    fn random_set(generator: &mut SplitMix64, len: usize) -> Vec<u64> {
        (0..len).map(|_| generator.next_u64()).collect()
    }

    #[test]
    fn merging_ranks_equals_the_sketch_of_the_union() {
        let mut generator = SplitMix64::new(3);
        for kind in KINDS {
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
        for kind in KINDS {
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
                    assert_eq!(sketcher.finish(&mut state), expected.as_slice(), "{kind:?} {len} in {block}s");
                }
            }
        }
    }

    #[test]
    fn every_slot_of_a_set_with_an_element_is_filled() {
        for kind in KINDS {
            let sketcher = Sketcher::new(kind, 1024);
            assert!(sketcher.ranks(&[5]).as_slice().iter().all(|&rank| rank != EMPTY));
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
