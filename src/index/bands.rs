//! A banding as a value: the position of each band in a signature, and the keys that tables use.
//! Knows nothing of tables, or of the documents.

use hapax_core::{BandKey, Banding, SignatureShape};
use smallvec::SmallVec;

use super::arena::Arena;
use super::band_rows::BandRows;
use super::place::Place;
use super::seed::Seed;

/// The number of bands whose keys and shards fit on the stack. For more bands, a heap buffer is used.
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

    /// Returns the number of bands, and the number of rows of each band.
    pub(super) fn banding(&self) -> Banding {
        self.banding
    }

    pub(super) fn shape(&self) -> SignatureShape {
        self.shape
    }

    /// Returns the rows of each band.
    #[inline]
    pub(super) fn rows(&self) -> &[BandRows] {
        &self.rows
    }

    /// Computes the keys of a signature, one per band, for the tables.
    #[inline]
    pub(super) fn keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        keys.clear();
        keys.extend(self.rows.iter().map(|rows| rows.key(|word| words[word])));
    }

    /// Returns the keys of the document at a place, one per band, for the tables.
    #[inline]
    pub(super) fn keys_of(&self, arena: &Arena, place: Place) -> SmallVec<[u64; BANDS]> {
        self.rows.iter().map(|rows| rows.key_of(arena, place)).collect()
    }

    /// Returns the key of one band as it appears in answers to clients.
    pub(super) fn key_on_the_wire(&self, signature: &[u8], band: u32) -> BandKey {
        self.banding.key(signature, self.shape, band)
    }
}
