//! Shape and threshold -> the banding of a collection whose settings name no banding.

use super::choice::{Asked, Targets, cheapest, choose};
use super::probability::candidate_probability;
use crate::band::Banding;
use crate::spec::SignatureShape;

/// Returns the result of [`choose`] if no target is given. At a threshold of 0.8: 31x8 for k=256 and 21x6 for k=128.
pub fn default_banding(shape: SignatureShape, threshold: f64) -> Banding {
    let threshold = if threshold.is_nan() { 1.0 } else { threshold.clamp(0.0, 1.0) };
    choose(Asked::default(), threshold, shape).expect("the defaults always have an answer").banding
}

/// Returns the default for collections in stores of formats 1 and 2. These stores do not say whether bands were set by
/// hand. This default is frozen, because an upgrade compares bandings with it.
///
/// It is 31x8 for k=256 and 21x6 for k=128 if these find 0.99 of the pairs at the threshold; otherwise the banding that
/// finds this share with the fewest candidates at 0.2 below the threshold.
pub fn default_banding_of_format_2(shape: SignatureShape, threshold: f64) -> Banding {
    const RECALL: f64 = 0.99;
    let of = |bands, rows| Banding::new(bands, rows, shape).expect("bands times rows is at most k");
    let known = match shape.k {
        256 => Some(of(31, 8)),
        128 => Some(of(21, 6)),
        _ => None,
    };
    if let Some(banding) = known
        && candidate_probability(threshold, banding, shape) >= RECALL
    {
        return banding;
    }
    let threshold = if threshold.is_nan() { 1.0 } else { threshold.clamp(0.0, 1.0) };
    let targets = Targets {
        recall: RECALL,
        s_hi: threshold,
        s_lo: (threshold - 0.2).max(0.0),
        bands_wanted: 0,
        candidates_max: f64::INFINITY,
        documents: 0.0,
        s_bg: 0.0,
    };
    cheapest(targets, shape).map_or(of(shape.k, 1), |choice| choice.banding)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The k, bits and threshold of a collection, and the bands and rows of its default.
    const OF_FORMAT_2: [(u32, u32, f64, (u32, u32)); 55] = [
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
    ];

    fn bands(banding: Banding) -> (u32, u32) {
        (banding.bands(), banding.rows())
    }

    #[test]
    fn defaults_are_the_measured_ones_and_follow_the_threshold() {
        let bands = |k, bits, threshold| bands(default_banding(SignatureShape { k, bits }, threshold));
        for bits in [8, 16, 32, 64] {
            for threshold in [0.79, 0.8, 0.9, 1.0] {
                assert_eq!(bands(256, bits, threshold), (31, 8), "{bits} bits at {threshold}");
            }
            assert_eq!(bands(128, bits, 0.8), (21, 6));
        }
        for k in [64, 100, 128, 256, 1024] {
            for threshold in [0.3, 0.5, 0.7, 0.9, 1.0] {
                let shape = SignatureShape { k, bits: 8 };
                let banding = default_banding(shape, threshold);
                assert!(candidate_probability(threshold, banding, shape) >= 0.99, "k={k} at {threshold}");
            }
        }
        assert_eq!(default_banding(SignatureShape { k: 16, bits: 32 }, 0.05).rows(), 1);
    }

    /// Leaving a target out and giving its default must have the same result, or help and documentation would be wrong.
    #[test]
    fn a_default_that_is_spelled_out_changes_nothing() {
        for (threshold, s_hi, s_lo) in [(0.5, 0.5, 0.3), (0.8, 0.8, 0.6), (0.95, 0.8, 0.6)] {
            for k in [64, 128, 256, 512, 1024] {
                let shape = SignatureShape { k, bits: 16 };
                let spelled = Asked {
                    recall: Some(0.99),
                    s_hi: Some(s_hi),
                    s_lo: Some(s_lo),
                    bands_wanted: Some(31),
                    candidates_max: None,
                    documents: Some(1e7),
                    s_bg: Some(0.1),
                };
                let banding = |asked| choose(asked, threshold, shape).expect("reachable").banding;
                assert_eq!(banding(Asked::default()), banding(spelled), "k={k} at {threshold}");
                assert_eq!(banding(Asked::default()), default_banding(shape, threshold));
            }
        }
    }

    /// An upgrade treats any other banding as set by hand, so the choices of the first formats must never change.
    #[test]
    fn the_default_of_the_first_formats_is_frozen() {
        for (k, bits, threshold, expected) in OF_FORMAT_2 {
            let shape = SignatureShape { k, bits };
            assert_eq!(bands(default_banding_of_format_2(shape, threshold)), expected, "{k}x{bits} at {threshold}");
        }
    }
}
