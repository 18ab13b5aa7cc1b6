//! A banding -> the figures of its S-curve: the similarity at which it is steepest, and the similarity at which a given
//! share of the pairs are candidates. The latter is the inverse of `candidate_probability`. Both take into account that
//! slots agree by chance.

use crate::band::Banding;
use crate::spec::SignatureShape;

/// Similarities at points of the curve of candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoints {
    /// The similarity at which the curve is steepest. `None` for a straight line.
    pub steepest: Option<f64>,
    /// The distance between the similarities at 10 % and at 90 %.
    pub width: f64,
    /// The similarity at which 0.1 % of the pairs are candidates.
    pub at_0_1_percent: f64,
    /// The similarity at which 10 % of the pairs are candidates.
    pub at_10_percent: f64,
    /// The similarity at which 90 % of the pairs are candidates.
    pub at_90_percent: f64,
    /// The similarity at which 99 % of the pairs are candidates.
    pub at_99_percent: f64,
}

impl CurvePoints {
    /// Computes the points for a banding.
    pub fn of(banding: Banding, shape: SignatureShape) -> Self {
        let at = |share| similarity_at(share, banding, shape);
        Self {
            steepest: steepest(banding, shape),
            width: at(0.9) - at(0.1),
            at_0_1_percent: at(0.001),
            at_10_percent: at(0.1),
            at_90_percent: at(0.9),
            at_99_percent: at(0.99),
        }
    }
}

/// Returns the similarity at which this share of the pairs are candidates. It is 0 if slots agree by chance so often
/// that the share is larger at every similarity.
pub fn similarity_at(share: f64, banding: Banding, shape: SignatureShape) -> f64 {
    // s = (1 - (1 - share)^(1/b))^(1/r), without the cancellation that would lose small shares.
    let full = -((-share.clamp(0.0, 1.0)).ln_1p() / f64::from(banding.bands())).exp_m1();
    similarity(full.powf(1.0 / f64::from(banding.rows())), shape.bits)
}

/// Returns the similarity at which the share of candidates grows fastest. `None` for one band of one row, whose curve
/// is a straight line.
///
/// This is the inflection of `1 - (1 - s^r)^b`, at `s = ((r - 1)/(b·r - 1))^(1/r)`. The well-known `(1/b)^(1/r)`
/// (Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4.2) approximates it for large r. Slots that agree by
/// chance move the inflection to a lower similarity, but not to another s, because s is linear in the similarity.
pub fn steepest(banding: Banding, shape: SignatureShape) -> Option<f64> {
    let (bands, rows) = (f64::from(banding.bands()), f64::from(banding.rows()));
    let slots = bands * rows;
    (slots > 1.0).then(|| similarity(((rows - 1.0) / (slots - 1.0)).powf(1.0 / rows), shape.bits))
}

/// Returns the similarity of two documents whose slots agree with this probability: the inverse of `slot_agreement`.
fn similarity(agreement: f64, bits: u32) -> f64 {
    let by_chance = (-f64::from(bits)).exp2();
    ((agreement - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::probability::candidate_probability;

    fn of(bands: u32, rows: u32, bits: u32) -> (Banding, SignatureShape) {
        let shape = SignatureShape { k: 1024, bits };
        (Banding::new(bands, rows, shape).expect("fits"), shape)
    }

    #[test]
    fn a_share_is_reached_at_its_similarity() {
        for bits in [8, 16, 32, 64] {
            for (bands, rows) in [(1, 1), (1, 8), (31, 8), (21, 6), (110, 2), (64, 16), (2, 512), (40, 25)] {
                let (banding, shape) = of(bands, rows, bits);
                let by_chance = candidate_probability(0.0, banding, shape);
                for share in [1e-12, 1e-6, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999_999] {
                    let jaccard = similarity_at(share, banding, shape);
                    let found = candidate_probability(jaccard, banding, shape);
                    let reached = (found / share - 1.0).abs() < 1e-6 || jaccard == 0.0 && share <= by_chance;
                    assert!(reached, "{bands}x{rows}, {bits} bits: {share} at {jaccard}, where it is {found}");
                }
                assert_eq!(similarity_at(1.0, banding, shape), 1.0);
                assert_eq!(similarity_at(0.0, banding, shape), 0.0);
            }
        }
        // If half of the pairs agree in one slot of 8 bits, s is 0.5. The similarity is a little less, because slots
        // also agree by chance.
        let (banding, shape) = of(1, 1, 8);
        assert!((similarity_at(0.5, banding, shape) - (0.5 - 1.0 / 256.0) / (255.0 / 256.0)).abs() < 1e-12);
        // More than 0.1 % of pairs with nothing in common agree in one of 110 bands of 2 rows.
        let (banding, shape) = of(110, 2, 8);
        assert!(candidate_probability(0.0, banding, shape) > 0.001 && similarity_at(0.001, banding, shape) == 0.0);
    }

    #[test]
    fn the_steepest_point_is_the_steepest() {
        for bits in [8, 64] {
            for (bands, rows) in [(2, 2), (31, 8), (21, 6), (35, 3), (9, 13), (5, 25), (1, 8), (500, 2)] {
                let (banding, shape) = of(bands, rows, bits);
                let steepest = steepest(banding, shape).expect("a curve");
                let rate = |jaccard| candidate_probability(jaccard, banding, shape);
                let slope = |jaccard: f64| (rate(jaccard + 1e-4) - rate(jaccard - 1e-4)) / 2e-4;
                let best = (1..1000).map(|n| f64::from(n) / 1000.0).max_by(|a, b| slope(*a).total_cmp(&slope(*b)));
                let best = best.expect("some");
                assert!((best - steepest).abs() < 0.0015, "{bands}x{rows}, {bits} bits: {steepest}, found {best}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_steepest_point() {
        let at = |bands, rows, bits| {
            let (banding, shape) = of(bands, rows, bits);
            steepest(banding, shape)
        };
        assert_eq!(at(1, 1, 8), None, "a straight line");
        assert_eq!(at(2, 1, 8), Some(0.0), "steepest at its beginning");
        assert_eq!(at(1, 9, 8), Some(1.0), "steepest at its end");
        // The exact value is ((8 - 1)/(31·8 - 1))^(1/8). The approximation (1/31)^(1/8) is 0.651.
        let exact = at(31, 8, 64).expect("a curve");
        assert!((exact - 0.640_546).abs() < 1e-6, "{exact}");
    }
}
