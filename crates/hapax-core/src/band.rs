//! Packed signature -> band keys. The key of band j is a hash of j and of the band's rows, in order. The rows of band j
//! are the slots from j·r to (j+1)·r - 1. With b bands, the slots from b·r on are in no band, but verification compares
//! them too. Knows nothing of buckets or storage. In the server's API, a band key names a bucket, and clients may store
//! keys. Therefore `tests/vectors.json` pins the output. The index of the server does not use these keys.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::spec::SignatureShape;

/// b bands of r rows each. A banding is made for one signature shape, and b·r is at most the number of slots of this
/// shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banding {
    bands: u32,
    rows: u32,
}

/// The reason why a banding does not fit a signature shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BandingError(pub String);

/// The hash of a band's rows. Documents that agree in all rows of a band have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BandKey(pub u64);

impl Banding {
    /// Makes a banding. It is an error if `bands` or `rows` is 0, or if the shape has fewer than `bands * rows` slots.
    pub fn new(bands: u32, rows: u32, shape: SignatureShape) -> Result<Self, BandingError> {
        if bands == 0 || rows == 0 {
            return Err(BandingError(format!("a banding must have at least one band and one row, not {bands}x{rows}")));
        }
        match bands.checked_mul(rows) {
            Some(slots) if slots <= shape.k => Ok(Self { bands, rows }),
            _ => Err(BandingError(format!(
                "{bands} bands of {rows} rows need more than the {} slots of a signature; use fewer bands or rows",
                shape.k
            ))),
        }
    }

    /// The number of bands, b. More bands find more candidates.
    pub fn bands(self) -> u32 {
        self.bands
    }

    /// The number of rows in a band, r. More rows find fewer candidates.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// Returns the key of one band of a packed signature.
    ///
    /// # Panics
    /// If the band or the signature does not fit this banding and shape.
    #[inline]
    pub fn key(self, signature: &[u8], shape: SignatureShape, band: u32) -> BandKey {
        debug_assert!(band < self.bands && signature.len() == shape.bytes());
        Self::key_of_rows(&signature[self.row_bytes(shape, band)], band)
    }

    /// Returns the byte range of a band's rows in a packed signature, for callers that keep signatures in pieces.
    #[inline]
    pub fn row_bytes(self, shape: SignatureShape, band: u32) -> Range<usize> {
        let len = self.rows as usize * (shape.bits / 8) as usize;
        band as usize * len..(band as usize + 1) * len
    }

    /// Returns the key of a band from the bytes of its rows.
    #[inline]
    pub fn key_of_rows(rows: &[u8], band: u32) -> BandKey {
        BandKey(xxh3_64_with_seed(rows, u64::from(band)))
    }

    /// Returns all keys of a packed signature, in the order of the bands.
    pub fn keys(self, signature: &[u8], shape: SignatureShape) -> impl ExactSizeIterator<Item = BandKey> + '_ {
        (0..self.bands).map(move |band| self.key(signature, shape, band))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: SignatureShape = SignatureShape { k: 256, bits: 8 };

    #[test]
    fn a_banding_that_does_not_fit_is_refused() {
        assert!(Banding::new(32, 8, SHAPE).is_ok());
        for (bands, rows) in [(0, 8), (8, 0), (33, 8), (257, 1), (1, 257), (65_536, 65_536), (u32::MAX, 2)] {
            assert!(Banding::new(bands, rows, SHAPE).is_err(), "{bands}x{rows}");
        }
    }

    #[test]
    fn a_key_depends_on_its_band_and_the_order_of_its_rows() {
        let banding = Banding::new(31, 8, SHAPE).expect("fits");
        let same = vec![7; 256];
        let keys: std::collections::HashSet<_> = banding.keys(&same, SHAPE).collect();
        assert_eq!(keys.len(), 31, "equal rows in different bands must not meet");
        let (mut up, mut down) = (same.clone(), same.clone());
        (up[0], up[1], down[0], down[1]) = (1, 2, 2, 1);
        assert_ne!(banding.key(&up, SHAPE, 0), banding.key(&down, SHAPE, 0));
        assert_eq!(banding.key(&up, SHAPE, 1), banding.key(&down, SHAPE, 1));
        let mut beyond = same.clone();
        beyond[248..].fill(1);
        assert!(banding.keys(&same, SHAPE).eq(banding.keys(&beyond, SHAPE)), "slots beyond b·r are in no band");
    }

    #[test]
    fn wide_slots_are_hashed_whole() {
        let shape = SignatureShape { k: 16, bits: 64 };
        let banding = Banding::new(4, 4, shape).expect("fits");
        let zeros = vec![0; shape.bytes()];
        for byte in 0..shape.bytes() {
            let mut one = zeros.clone();
            one[byte] = 1;
            let differing: Vec<u32> =
                (0..4).filter(|&band| banding.key(&one, shape, band) != banding.key(&zeros, shape, band)).collect();
            assert_eq!(differing, [byte as u32 / 32]);
        }
    }
}
