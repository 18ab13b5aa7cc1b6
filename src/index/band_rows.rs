//! The position of a band's rows among the words of a signature. This file compares the rows, and computes their key
//! for a table.

use std::ops::Range;

use super::arena::Arena;
use super::place::Place;
use super::seed::Seed;
use super::shard::Keys;
use super::sync::{AtomicU64, Ordering};
use crate::types::Seq;

/// The position of a band's rows among the words of a signature.
#[derive(Clone)]
pub(super) struct BandRows {
    words: Range<usize>,
    /// The mask of the bytes in the first word that are rows of the band.
    first_mask: u64,
    /// The mask of the bytes in the last word that are rows of the band; 0 if there is only one word.
    last_mask: u64,
    /// Whether the rows have more than 8 bytes. Shorter rows are combined into one word before their key is computed.
    overlap: bool,
    seed: Seed,
}

impl BandRows {
    pub(super) fn new(bytes: Range<usize>, seed: Seed) -> Self {
        let words = bytes.start / 8..bytes.end.div_ceil(8);
        let mask = |word: usize| {
            let within = |at: usize| if bytes.contains(&(word * 8 + at)) { 0xFF } else { 0 };
            u64::from_ne_bytes(std::array::from_fn(within))
        };
        Self {
            first_mask: mask(words.start),
            last_mask: if words.len() > 1 { mask(words.end - 1) } else { 0 },
            overlap: words.len() > 1 && bytes.len() > 8,
            words,
            seed,
        }
    }

    /// Prefetches the rows of a stored signature.
    #[inline]
    pub(super) fn prefetch(&self, held: &[AtomicU64]) {
        hapax_core::prefetch(&held[self.words.start]);
    }

    /// Returns the function from places to their keys in this band, for a table.
    #[inline]
    pub(super) fn keys<'a>(&'a self, arena: &'a Arena) -> BandKeys<'a> {
        BandKeys { rows: self, arena }
    }

    /// Returns whether a stored signature has the same rows as a query's.
    #[inline]
    pub(super) fn equal(&self, held: &[AtomicU64], signature: &[u64]) -> bool {
        let held = &held[self.words.clone()];
        let asked = &signature[self.words.clone()];
        self.same(|word| held[word].load(Ordering::Relaxed) ^ asked[word])
    }

    /// Returns whether two places have the same rows.
    #[inline]
    pub(super) fn equal_of(&self, arena: &Arena, a: Place, b: Place) -> bool {
        let (a, b) = (&arena.signature(a)[self.words.clone()], &arena.signature(b)[self.words.clone()]);
        self.same(|word| a[word].load(Ordering::Relaxed) ^ b[word].load(Ordering::Relaxed))
    }

    /// Returns whether no bit of the rows differs.
    #[inline]
    fn same(&self, difference: impl Fn(usize) -> u64) -> bool {
        let last = self.words.len() - 1;
        difference(0) & self.first_mask == 0
            && difference(last) & self.last_mask == 0
            && (1..last).all(|word| difference(word) == 0)
    }

    /// Returns the key that tables use for the rows of a signature. Answers to clients have another key of the band,
    /// which takes longer to compute and has no seed.
    #[inline]
    pub(super) fn key(&self, signature: impl Fn(usize) -> u64) -> u64 {
        let (first, last) = (self.words.start, self.words.end - 1);
        let mut rows = signature(first) & self.first_mask;
        if self.overlap {
            for word in first + 1..last {
                rows = self.seed.step(rows, signature(word));
            }
            rows = self.seed.step(rows, signature(last) & self.last_mask);
        } else {
            rows ^= signature(last) & self.last_mask;
        }
        self.seed.key(rows)
    }

    /// Returns the key of a place.
    #[inline]
    pub(super) fn key_of(&self, arena: &Arena, place: Place) -> u64 {
        let cells = arena.signature(place);
        self.key(|word| cells[word].load(Ordering::Relaxed))
    }
}

/// The keys of one band.
pub(super) struct BandKeys<'a> {
    rows: &'a BandRows,
    arena: &'a Arena,
}

impl Keys for BandKeys<'_> {
    #[inline]
    fn key(&self, place: Place) -> u64 {
        self.rows.key_of(self.arena, place)
    }

    #[inline]
    fn order(&self, place: Place) -> Seq {
        self.arena.seq(place)
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        self.arena.prefetch(place, self.rows.words.start);
    }
}
