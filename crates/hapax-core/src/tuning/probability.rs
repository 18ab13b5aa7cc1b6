//! A banding and a similarity -> the probability that a pair is found. Pure arithmetic on independent slots; `simulate`
//! checks it with real sketches.

use super::spread::SketchedPair;
use crate::band::Banding;
use crate::spec::{SignatureShape, SketchKind};
use crate::verify::{matching_min, spread};

/// Returns the probability that two slots of w bits agree: `s = J + (1 - J)/2^w`.
pub fn slot_agreement(jaccard: f64, bits: u32) -> f64 {
    jaccard + (1.0 - jaccard) * (-f64::from(bits)).exp2()
}

/// Returns P(some band agrees in all rows) = `1 - (1 - s^r)^b` with s = slot_agreement(J).
pub fn candidate_probability(jaccard: f64, banding: Banding, shape: SignatureShape) -> f64 {
    some_band(slot_agreement(jaccard, shape.bits), banding.bands(), banding.rows())
}

/// Returns `1 - (1 - s^r)^b`, without the cancellation that would lose rates of one in a billion. Such rates matter
/// over 50 million documents.
fn some_band(s: f64, bands: u32, rows: u32) -> f64 {
    let full = s.powi(rows as i32);
    if full >= 1.0 { 1.0 } else { -(f64::from(bands) * (-full).ln_1p()).exp_m1() }
}

/// Returns P(candidate and estimate >= threshold).
///
/// It is exact for `classic` sketches, whose slots are independent. The estimates of other sketches spread less or more
/// ([`SketchedPair::spread`]). For these sketches it calculates with more or fewer independent slots: k divided by the
/// square of the spread.
pub fn verdict_probability(
    jaccard: f64,
    banding: Banding,
    shape: SignatureShape,
    threshold: f64,
    signed: SketchedPair,
) -> f64 {
    let least = matching_min(threshold, shape);
    let both = matching_probability(jaccard, banding, shape, least);
    let spread = signed.spread(shape.k);
    if spread == 1.0 || least == 0 {
        return both;
    }
    let s = slot_agreement(jaccard, shape.bits);
    let enough = tail(shape.k, s, f64::from(least));
    if enough == 0.0 {
        return 0.0;
    }
    let slots = (f64::from(shape.k) / (spread * spread)).round();
    // The bound is half a slot below the smallest sufficient number. It is scaled to the changed number of slots.
    let enough_spread = tail(slots as u32, s, (f64::from(least) - 0.5) * slots / f64::from(shape.k) + 0.5);
    // Among pairs with enough equal slots, the share of candidates is assumed not to depend on the spread.
    (both / enough * enough_spread).clamp(0.0, 1.0)
}

/// Returns P(at least `least` of k independent slots agree); interpolated if `least` is not whole.
fn tail(k: u32, s: f64, least: f64) -> f64 {
    let probabilities = binomial(k as usize, s);
    let from = least.floor().max(0.0);
    let more: f64 = probabilities.iter().skip(from as usize + 1).sum();
    more + (1.0 - (least - from)) * probabilities.get(from as usize).unwrap_or(&0.0)
}

/// Returns P(candidate and at least `least` slots agree), exact for independent slots.
///
/// It starts from P(enough slots agree), and subtracts the probability that enough slots agree but no band agrees in
/// all its rows. The latter is a convolution of b copies of Binomial(r, s) without its last term, and of Binomial(k -
/// b·r, s).
pub fn matching_probability(jaccard: f64, banding: Banding, shape: SignatureShape, least: u32) -> f64 {
    let s = slot_agreement(jaccard, shape.bits);
    let least = least as usize;
    let (bands, rows) = (banding.bands() as usize, banding.rows() as usize);
    let k = shape.k as usize;
    let mut broken = binomial(rows, s);
    broken.pop();
    let mut missed = binomial(k - bands * rows, s);
    for _ in 0..bands {
        missed = convolve(&missed, &broken);
    }
    let enough: f64 = binomial(k, s).iter().skip(least).sum();
    let missed: f64 = missed.iter().skip(least).sum();
    (enough - missed).clamp(0.0, 1.0)
}

/// How often a pair may be on the wrong side of [`survivor_min`], and of [`certain_min`].
const RARE: f64 = 0.001;

/// Returns the largest m such that in two documents of this similarity, at least m slots agree with probability 0.999
/// or more. If m is used in place of [`matching_min`], the spread of the estimate loses one document in a thousand at
/// exactly this similarity, and fewer at higher similarities. The number is smaller if estimates from the sketch spread
/// more than estimates from independent slots ([`spread`]).
pub fn survivor_min(jaccard: f64, shape: SignatureShape, sketch: Option<SketchKind>) -> u32 {
    let mut fewer = 0.0;
    let agreement = slot_agreement(jaccard.clamp(0.0, 1.0), shape.bits);
    let least = binomial(shape.k as usize, agreement).iter().position(|probability| {
        fewer += probability;
        fewer > RARE
    });
    let least = least.map_or(shape.k, |least| least as u32);
    let mean = f64::from(shape.k) * agreement;
    let wider = mean - sketch.map_or(1.0, spread) * (mean - f64::from(least));
    least.min(wider.max(0.0) as u32)
}

/// Returns the smallest m such that in two documents of this similarity, at least m slots agree with probability 0.001
/// or less. A pair with m equal slots is almost certainly more similar than this. If the probability is higher even for
/// all slots, returns the number of slots plus one. The number is larger if estimates from the sketch spread more than
/// estimates from independent slots ([`spread`]).
pub fn certain_min(jaccard: f64, shape: SignatureShape, sketch: Option<SketchKind>) -> u32 {
    let mut as_many = 0.0;
    let agreement = slot_agreement(jaccard.clamp(0.0, 1.0), shape.bits);
    let rare = binomial(shape.k as usize, agreement).into_iter().rev().take_while(|probability| {
        as_many += probability;
        as_many <= RARE
    });
    let least = shape.k + 1 - rare.count() as u32;
    let mean = f64::from(shape.k) * agreement;
    let wider = mean + sketch.map_or(1.0, spread) * (f64::from(least) - mean);
    least.max(wider.ceil() as u32).min(shape.k + 1)
}

/// Returns P(m of n) for m in 0..=n, computed in logarithms so that no term underflows.
fn binomial(n: usize, s: f64) -> Vec<f64> {
    if s <= 0.0 || s >= 1.0 {
        let certain = if s >= 1.0 { n } else { 0 };
        return (0..=n).map(|m| f64::from(u8::from(m == certain))).collect();
    }
    let (ln_s, ln_not) = (s.ln(), (-s).ln_1p());
    let mut ln_choose = 0.0;
    (0..=n)
        .map(|m| {
            if m > 0 {
                ln_choose += ((n - m + 1) as f64 / m as f64).ln();
            }
            (ln_choose + m as f64 * ln_s + (n - m) as f64 * ln_not).exp()
        })
        .collect()
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (slot, y) in sum[i..].iter_mut().zip(b) {
            *slot += x * y;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const K256: SignatureShape = SignatureShape { k: 256, bits: 8 };
    const CLASSIC: SketchedPair = SketchedPair { sketch: SketchKind::Classic, shingles: 1000 };

    fn banding(bands: u32, rows: u32, shape: SignatureShape) -> Banding {
        Banding::new(bands, rows, shape).expect("fits")
    }

    #[test]
    fn candidate_rates_are_the_documented_ones() {
        let rate = |bands, rows, jaccard| candidate_probability(jaccard, banding(bands, rows, K256), K256);
        assert!((rate(31, 8, 0.8) - 0.997).abs() < 0.001, "{}", rate(31, 8, 0.8));
        assert!((rate(16, 8, 0.8) - 0.947).abs() < 0.002, "{}", rate(16, 8, 0.8));
        // 50 million documents at background similarity 0.1.
        let background = |bands, rows| 50e6 * rate(bands, rows, 0.1);
        assert!((background(31, 8) - 20.0).abs() < 2.0, "{}", background(31, 8));
        assert!((background(21, 6) - 1290.0).abs() < 30.0, "{}", background(21, 6));
        assert_eq!(rate(31, 8, 1.0), 1.0);
        // Small probabilities keep their precision. Here the probability is nearly s^r·b.
        let shape = SignatureShape { k: 256, bits: 32 };
        let tail = candidate_probability(0.01, banding(8, 32, shape), shape);
        assert!((tail / (8.0 * 0.01f64.powi(32)) - 1.0).abs() < 1e-5, "{tail:e}");
    }

    /// The banding that is chosen by the areas at the S-curve for threshold 0.8 and 128 slots (datasketch's default)
    /// finds 40 % of the pairs of similarity 0.8.
    #[test]
    fn nine_bands_of_thirteen_find_two_in_five_at_their_threshold() {
        let shape = SignatureShape { k: 128, bits: 64 };
        let recall = candidate_probability(0.8, banding(9, 13, shape), shape);
        assert!((recall - 0.40).abs() < 0.005, "{recall}");
    }

    /// Computes the probability by summing over every outcome of k slots, one by one.
    fn verdict_by_enumeration(jaccard: f64, banding: Banding, shape: SignatureShape, threshold: f64) -> f64 {
        let s = slot_agreement(jaccard, shape.bits);
        let rows = (1u32 << banding.rows()) - 1;
        (0u32..1 << shape.k)
            .filter(|slots| {
                slots.count_ones() >= matching_min(threshold, shape)
                    && (0..banding.bands()).any(|band| slots >> (band * banding.rows()) & rows == rows)
            })
            .map(|slots| {
                let agree = slots.count_ones() as i32;
                s.powi(agree) * (1.0 - s).powi(shape.k as i32 - agree)
            })
            .sum()
    }

    #[test]
    fn verdict_probability_equals_enumeration() {
        let shape = SignatureShape { k: 16, bits: 8 };
        for (bands, rows) in [(1, 1), (4, 4), (5, 3), (16, 1), (1, 16), (2, 5)] {
            for jaccard in [0.0, 0.2, 0.5, 0.8, 0.97, 1.0] {
                for threshold in [0.0, 0.3, 0.5, 0.8, 1.0] {
                    let banding = banding(bands, rows, shape);
                    let exact = verdict_probability(jaccard, banding, shape, threshold, CLASSIC);
                    let counted = verdict_by_enumeration(jaccard, banding, shape, threshold);
                    assert!((exact - counted).abs() < 1e-12, "{bands}x{rows} J={jaccard} t={threshold}");
                }
            }
        }
    }

    #[test]
    fn a_verdict_needs_a_candidate_and_the_threshold() {
        for (k, bands, rows) in [(256, 31, 8), (128, 21, 6), (1024, 128, 8), (4096, 512, 8)] {
            let shape = SignatureShape { k, bits: 8 };
            let banding = banding(bands, rows, shape);
            for percent in 0..=100 {
                let jaccard = f64::from(percent) / 100.0;
                let candidate = candidate_probability(jaccard, banding, shape);
                let verdict = verdict_probability(jaccard, banding, shape, 0.8, CLASSIC);
                assert!((0.0..=candidate + 1e-9).contains(&verdict), "k={k} J={jaccard}: {verdict} of {candidate}");
                let any = verdict_probability(jaccard, banding, shape, 0.0, CLASSIC);
                assert!((any - candidate).abs() < 1e-9, "k={k} J={jaccard}: {any} and {candidate}");
                if percent == 0 || k == 4096 && percent % 20 != 0 {
                    continue;
                }
            }
            let at = |jaccard| verdict_probability(jaccard, banding, shape, 0.8, CLASSIC);
            assert!((0.4..0.6).contains(&at(0.8)), "about half at the threshold itself: {}", at(0.8));
        }
        let verdict = verdict_probability(0.85, banding(31, 8, K256), K256, 0.8, CLASSIC);
        assert!(verdict > 0.98, "{verdict}");
    }

    #[test]
    fn one_in_a_thousand_is_certain_by_mistake() {
        for (k, bits) in [(64, 8), (256, 8), (1024, 8), (128, 64)] {
            let shape = SignatureShape { k, bits };
            for jaccard in [0.3, 0.5, 0.8, 0.9] {
                let least = certain_min(jaccard, shape, None);
                assert!(least > matching_min(jaccard, shape), "k={k} J={jaccard}");
                let all = banding(k, 1, shape);
                let reach = |least| matching_probability(jaccard, all, shape, least);
                assert!(reach(least) <= 0.001 + 1e-9, "k={k} J={jaccard}: {}", reach(least));
                assert!(reach(least - 1) > 0.001, "k={k} J={jaccard}: {}", reach(least - 1));
            }
            assert_eq!(certain_min(1.0, shape, None), k + 1, "nothing is more similar than equal");
        }
        // With few slots, even all of them agree too often.
        assert_eq!(certain_min(0.95, SignatureShape { k: 64, bits: 8 }, None), 65);
        assert!(certain_min(0.8, K256, Some(SketchKind::Oph)) > certain_min(0.8, K256, None));
    }

    #[test]
    fn survivors_are_all_but_one_in_a_thousand() {
        for (k, bits) in [(64, 8), (256, 8), (1024, 8), (128, 64)] {
            let shape = SignatureShape { k, bits };
            for jaccard in [0.3, 0.5, 0.8, 0.95] {
                let least = survivor_min(jaccard, shape, None);
                assert!(least < matching_min(jaccard, shape), "k={k} J={jaccard}");
                let all = banding(k, 1, shape);
                let survive = |least| matching_probability(jaccard, all, shape, least);
                assert!(survive(least) >= 0.999 - 1e-9, "k={k} J={jaccard}: {}", survive(least));
                assert!(survive(least + 1) < 0.999, "k={k} J={jaccard}: {}", survive(least + 1));
            }
            assert_eq!(survivor_min(1.0, shape, None), k);
        }
        assert_eq!(survivor_min(0.8, K256, None), 184);
        assert_eq!(survivor_min(0.8, K256, Some(SketchKind::Fss)), 184);
        assert_eq!(survivor_min(0.8, K256, Some(SketchKind::Oph)), 176);
    }
}
