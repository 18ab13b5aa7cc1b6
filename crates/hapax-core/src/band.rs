//! Packed signature -> band keys. Rows of band j are slots j·r..(j+1)·r, hashed in order with the band's number; slots
//! beyond b·r enter no band but do count in verification. Knows nothing of buckets or storage. Keys are derived anew
//! from signatures at every boot, but a change here must still come with a change of whatever stores them:
//! `tests/vectors.json` pins the output.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::spec::SignatureShape;
use crate::tuning;

/// b bands of r rows; b·r <= k of the shape it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banding {
    bands: u32,
    rows: u32,
}

/// Why a banding does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BandingError(pub String);

/// What documents that agree in all rows of a band share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BandKey(pub u64);

impl Banding {
    /// At least one band and one row, and no more slots than the shape has.
    pub fn new(bands: u32, rows: u32, shape: SignatureShape) -> Result<Self, BandingError> {
        if bands == 0 || rows == 0 {
            return Err(BandingError(format!("a banding has at least one band and one row, not {bands}x{rows}")));
        }
        match bands.checked_mul(rows) {
            Some(slots) if slots <= shape.k => Ok(Self { bands, rows }),
            _ => Err(BandingError(format!(
                "{bands} bands of {rows} rows need more than the {} slots there are",
                shape.k
            ))),
        }
    }

    /// Number of bands, b. More bands propose more candidates.
    pub fn bands(self) -> u32 {
        self.bands
    }

    /// Rows in a band, r. More rows propose fewer candidates.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// The key of one band of a packed signature.
    ///
    /// # Panics
    /// If the band or the signature is not one of this banding and shape.
    #[inline]
    pub fn key(self, signature: &[u8], shape: SignatureShape, band: u32) -> BandKey {
        debug_assert!(band < self.bands && signature.len() == shape.bytes());
        Self::key_of_rows(&signature[self.row_bytes(shape, band)], band)
    }

    /// Where the rows of a band stand in a packed signature, for those who keep signatures in pieces.
    #[inline]
    pub fn row_bytes(self, shape: SignatureShape, band: u32) -> Range<usize> {
        let len = self.rows as usize * (shape.bits / 8) as usize;
        band as usize * len..(band as usize + 1) * len
    }

    /// The key of a band from the bytes of its rows.
    #[inline]
    pub fn key_of_rows(rows: &[u8], band: u32) -> BandKey {
        BandKey(xxh3_64_with_seed(rows, u64::from(band)))
    }

    /// All keys of a packed signature, in order of bands.
    pub fn keys(self, signature: &[u8], shape: SignatureShape) -> impl ExactSizeIterator<Item = BandKey> + '_ {
        (0..self.bands).map(move |band| self.key(signature, shape, band))
    }

    /// What [`tuning::choose`] chooses if nothing is asked for. At a threshold of 0.8: 31x8 for k=256 and 21x6 for k=128.
    pub fn default_for(shape: SignatureShape, threshold: f64) -> Self {
        let threshold = if threshold.is_nan() { 1.0 } else { threshold.clamp(0.0, 1.0) };
        tuning::choose(tuning::Asked::default(), threshold, shape).expect("the defaults always have an answer").banding
    }

    /// The default of collections in stores of formats 1 and 2, which do not say if bands were set by hand. Frozen: an
    /// upgrade compares with it.
    ///
    /// 31x8 for k=256 and 21x6 for k=128 if these find 0.99 of the pairs at the threshold; else the banding that finds
    /// so many with the fewest candidates 0.2 below it.
    pub fn default_of_format_2(shape: SignatureShape, threshold: f64) -> Self {
        const RECALL: f64 = 0.99;
        let known = match shape.k {
            256 => Some(Self { bands: 31, rows: 8 }),
            128 => Some(Self { bands: 21, rows: 6 }),
            _ => None,
        };
        if let Some(banding) = known
            && tuning::candidate_probability(threshold, banding, shape) >= RECALL
        {
            return banding;
        }
        let threshold = if threshold.is_nan() { 1.0 } else { threshold.clamp(0.0, 1.0) };
        let targets = tuning::Targets {
            recall: RECALL,
            s_hi: threshold,
            s_lo: (threshold - 0.2).max(0.0),
            bands_wanted: 0,
            candidates_max: f64::INFINITY,
            documents: 0.0,
            s_bg: 0.0,
        };
        tuning::cheapest(targets, shape).map_or(Self { bands: shape.k, rows: 1 }, |choice| choice.banding)
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

    fn bands(banding: Banding) -> (u32, u32) {
        (banding.bands(), banding.rows())
    }

    #[test]
    fn defaults_are_the_measured_ones_and_follow_the_threshold() {
        let bands = |k, bits, threshold| bands(Banding::default_for(SignatureShape { k, bits }, threshold));
        for bits in [8, 16, 32, 64] {
            for threshold in [0.79, 0.8, 0.9, 1.0] {
                assert_eq!(bands(256, bits, threshold), (31, 8), "{bits} bits at {threshold}");
            }
            assert_eq!(bands(128, bits, 0.8), (21, 6));
        }
        for k in [64, 100, 128, 256, 1024] {
            for threshold in [0.3, 0.5, 0.7, 0.9, 1.0] {
                let shape = SignatureShape { k, bits: 8 };
                let banding = Banding::default_for(shape, threshold);
                assert!(tuning::candidate_probability(threshold, banding, shape) >= 0.99, "k={k} at {threshold}");
            }
        }
        assert_eq!(Banding::default_for(SignatureShape { k: 16, bits: 32 }, 0.05).rows(), 1);
    }

    /// An upgrade takes any other banding for one that was set by hand: what the first formats chose must not move.
    #[test]
    fn the_default_of_the_first_formats_is_frozen() {
        for (k, bits, threshold, expected) in [
            (64, 8, 0.2, (21, 1)),
            (64, 8, 0.5, (16, 2)),
            (64, 8, 0.7, (11, 3)),
            (64, 8, 0.775, (11, 4)),
            (64, 8, 0.8, (12, 5)),
            (64, 8, 0.85, (10, 6)),
            (64, 8, 0.9, (8, 7)),
            (64, 8, 1.0, (1, 64)),
            (64, 32, 0.4, (27, 2)),
            (64, 32, 0.75, (13, 4)),
            (64, 32, 0.8, (12, 5)),
            (128, 8, 0.2, (21, 1)),
            (128, 8, 0.5, (35, 3)),
            (128, 8, 0.7, (25, 5)),
            (128, 8, 0.775, (21, 6)),
            (128, 8, 0.8, (21, 6)),
            (128, 8, 0.85, (21, 6)),
            (128, 8, 0.9, (21, 6)),
            (128, 8, 1.0, (21, 6)),
            (128, 32, 0.4, (27, 2)),
            (128, 32, 0.75, (17, 5)),
            (128, 32, 0.8, (21, 6)),
            (256, 8, 0.2, (110, 2)),
            (256, 8, 0.5, (35, 3)),
            (256, 8, 0.7, (37, 6)),
            (256, 8, 0.775, (25, 7)),
            (256, 8, 0.8, (31, 8)),
            (256, 8, 0.85, (31, 8)),
            (256, 8, 0.9, (31, 8)),
            (256, 8, 1.0, (31, 8)),
            (256, 32, 0.4, (70, 3)),
            (256, 32, 0.75, (33, 7)),
            (256, 32, 0.8, (31, 8)),
            (512, 8, 0.2, (110, 2)),
            (512, 8, 0.5, (71, 4)),
            (512, 8, 0.7, (53, 7)),
            (512, 8, 0.775, (43, 9)),
            (512, 8, 0.8, (41, 10)),
            (512, 8, 0.85, (36, 13)),
            (512, 8, 0.9, (26, 17)),
            (512, 8, 1.0, (1, 512)),
            (512, 32, 0.4, (70, 3)),
            (512, 32, 0.75, (44, 8)),
            (512, 32, 0.8, (41, 10)),
            (1024, 8, 0.2, (110, 2)),
            (1024, 8, 0.5, (143, 5)),
            (1024, 8, 0.7, (111, 9)),
            (1024, 8, 0.775, (73, 11)),
            (1024, 8, 0.8, (64, 12)),
            (1024, 8, 0.85, (60, 16)),
            (1024, 8, 0.9, (44, 22)),
            (1024, 8, 1.0, (1, 1024)),
            (1024, 32, 0.4, (178, 4)),
            (1024, 32, 0.75, (80, 10)),
            (1024, 32, 0.8, (65, 12)),
        ] {
            let shape = SignatureShape { k, bits };
            assert_eq!(bands(Banding::default_of_format_2(shape, threshold)), expected, "{k}x{bits} at {threshold}");
        }
    }
}
