//! A banding as a value: where each band is in a signature, and which keys tables go by.
//! Knows nothing of tables, or of which documents there are.

use hapax_core::{BandKey, Banding, SignatureShape};
use smallvec::SmallVec;

use super::arena::Arena;
use super::band_rows::BandRows;
use super::place::Place;
use super::seed::Seed;

/// Bands whose keys and shards are on the stack; more take a heap buffer.
pub(super) const BANDS: usize = 32;

/// The bands of signatures of one shape.
#[derive(Clone)]
pub(super) struct Bands {
    banding: Banding,
    shape: SignatureShape,
    rows: Box<[BandRows]>,
}

impl Bands {
    pub(super) fn new(banding: Banding, shape: SignatureShape, seed: Seed) -> Self {
        let rows = (0..banding.bands()).map(|band| BandRows::new(banding.row_bytes(shape, band), seed)).collect();
        Self { banding, shape, rows }
    }

    /// How many bands of how many rows.
    pub(super) fn banding(&self) -> Banding {
        self.banding
    }

    pub(super) fn shape(&self) -> SignatureShape {
        self.shape
    }

    /// The rows of each band.
    #[inline]
    pub(super) fn rows(&self) -> &[BandRows] {
        &self.rows
    }

    /// The keys that tables go by, one a band, of the words of a signature.
    #[inline]
    pub(super) fn keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        keys.clear();
        keys.extend(self.rows.iter().map(|rows| rows.key(|word| words[word])));
    }

    /// The keys that tables go by of the document at a place.
    #[inline]
    pub(super) fn keys_of(&self, arena: &Arena, place: Place) -> SmallVec<[u64; BANDS]> {
        self.rows.iter().map(|rows| rows.key_of(arena, place)).collect()
    }

    /// The key of one band as clients know it.
    pub(super) fn key_on_the_wire(&self, signature: &[u8], band: u32) -> BandKey {
        self.banding.key(signature, self.shape, band)
    }
}
