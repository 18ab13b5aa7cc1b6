//! For each document that a probe found, counts the slots that are equal to those of the query. Most documents that
//! share a band by chance, or because of common boilerplate, already differ in their first slots. Therefore, if a
//! document shares only one band, its first slots are compared first, and the other slots only if the document can
//! still be similar to the query. Memory is prefetched a few documents ahead.

use hapax_core::{SignatureShape, verify};

use super::arena::{Arena, Occupant};
use super::bucket_reads::Hit;
use super::place::Place;

/// How many documents ahead memory is prefetched.
const AHEAD: usize = 4;
/// A document with fewer equal slots than this in the first look cannot reach the minimum. An unrelated document
/// usually has fewer: the slots of the band that found it, and a few more.
const BY_CHANCE: u32 = 16;

/// A query that is compared with one document after the other.
pub(super) struct Verifier<'a> {
    arena: &'a Arena,
    query: &'a [u8],
    shape: SignatureShape,
    matching_min: u32,
    /// The shape of the part of the signature that the first look compares.
    first: SignatureShape,
    words: &'a mut Vec<u64>,
}

impl<'a> Verifier<'a> {
    /// Makes a verifier that looks for at least `matching_min` equal slots. `words` is a buffer.
    pub(super) fn new(
        arena: &'a Arena,
        query: &'a [u8],
        shape: SignatureShape,
        matching_min: u32,
        words: &'a mut Vec<u64>,
    ) -> Self {
        words.resize(arena.words(), 0);
        let slots_per_word = u64::BITS / shape.bits;
        let decisive = (shape.k.saturating_sub(matching_min) + BY_CHANCE).next_multiple_of(slots_per_word);
        // If the first look would compare nearly all slots, it compares all of them.
        let first = if decisive <= shape.k / 4 * 3 { decisive } else { shape.k };
        Self { arena, query, shape, matching_min, first: SignatureShape { k: first, ..shape }, words }
    }

    /// Returns the document at a place, and how many slots of its signature are equal. If these are fewer than
    /// `matching_min`, they may not all have been counted. Returns `None` if the place is free or changes while it is
    /// read.
    pub(super) fn with(&mut self, place: Place) -> Option<(Occupant, u32)> {
        if self.first.k < self.shape.k {
            let (occupant, matching) = self.look(place, self.first)?;
            if matching + (self.shape.k - self.first.k) < self.matching_min {
                return Some((occupant, matching));
            }
        }
        self.look(place, self.shape)
    }

    /// Compares many places, and skips those without a document. Documents that share several bands are compared in
    /// full at once, all others by [`Self::with`].
    pub(super) fn each(&mut self, hits: &[Hit], mut visit: impl FnMut(Place, Occupant, u32)) {
        hits.iter().take(AHEAD).for_each(|hit| self.prefetch(hit));
        for (at, hit) in hits.iter().enumerate() {
            if let Some(later) = hits.get(at + AHEAD) {
                self.prefetch(later);
            }
            let looked = if is_likely(hit) { self.look(hit.place, self.shape) } else { self.with(hit.place) };
            if let Some((occupant, matching)) = looked {
                visit(hit.place, occupant, matching);
            }
        }
    }

    fn look(&mut self, place: Place, part: SignatureShape) -> Option<(Occupant, u32)> {
        let bytes = part.bytes();
        let words = &mut self.words[..bytes.div_ceil(size_of::<u64>())];
        let occupant = self.arena.read(place, words)?;
        Some((occupant, verify::matching_slots(&self.query[..bytes], &bytemuck::cast_slice(words)[..bytes], part)))
    }

    fn prefetch(&self, hit: &Hit) {
        let part = if is_likely(hit) { self.shape } else { self.first };
        self.arena.prefetch_row(hit.place, part.bytes().div_ceil(size_of::<u64>()));
    }
}

/// Returns whether a document is likely to be similar to the query, because it shares several bands.
fn is_likely(hit: &Hit) -> bool {
    hit.bands > 1
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::index::arena::Entry;
    use crate::index::labels::LabelSet;
    use crate::types::{Seq, TimestampMs};

    #[test]
    fn documents_at_the_minimum_are_counted_in_full_and_no_others_reach_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for (k, bits) in [(128, 8), (256, 8), (64, 16), (20, 8), (128, 32), (16, 64)] {
            let shape = SignatureShape { k, bits };
            let slot_bytes = bits as usize / 8;
            let query: Vec<u8> = (0..shape.bytes()).map(|_| rng.random()).collect();
            let arena = Arena::new(shape);
            let mut expected = Vec::new();
            for place in 0..200 {
                let share = rng.random_range(0.0..1.0);
                let mut signature = query.clone();
                for held in signature.chunks_mut(slot_bytes) {
                    if rng.random_bool(share) {
                        held.fill_with(|| rng.random());
                    }
                }
                let slots = signature.chunks(slot_bytes).zip(query.chunks(slot_bytes));
                expected.push(slots.filter(|(a, b)| a == b).count() as u32);
                let seq = Seq(u64::from(place) + 1);
                let entry = Entry {
                    seq,
                    id_fingerprint: 0,
                    content: 0,
                    linked: false,
                    signature: &signature,
                    labels: LabelSet::NONE,
                    last_seen: TimestampMs(0),
                };
                arena.publish(Place(place), entry);
            }
            for matching_min in [0, 1, k / 2, k * 4 / 5, k] {
                let mut words = Vec::new();
                let mut verifier = Verifier::new(&arena, &query, shape, matching_min, &mut words);
                let hits: Vec<Hit> = (0..201).map(|place| Hit { place: Place(place), bands: place % 3 }).collect();
                let mut visited = 0;
                verifier.each(&hits, |place, occupant, matching| {
                    assert_eq!((place.0, occupant.seq), (visited, Seq(u64::from(visited) + 1)));
                    let expected = expected[place.0 as usize];
                    if expected >= matching_min {
                        assert_eq!(matching, expected);
                    } else {
                        assert!(matching < matching_min);
                    }
                    visited += 1;
                });
                assert_eq!(visited, 200, "all except the free place");
            }
        }
    }
}
