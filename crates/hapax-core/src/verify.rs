//! Two signatures -> estimated similarity with its interval; two sets of shingles -> exact similarity. Decisions are
//! made on integers (equal slots out of k): a threshold is turned once into the smallest number of equal slots that
//! reaches it.

use crate::spec::{SignatureShape, SketchKind};

/// Counts the equal slots of two packed signatures.
///
/// # Panics
/// If a signature does not have the shape.
pub fn matching_slots(a: &[u8], b: &[u8], shape: SignatureShape) -> u32 {
    assert!(a.len() == shape.bytes() && b.len() == shape.bytes(), "both signatures have the shape");
    match shape.bits {
        8 => matching::<1>(a, b),
        16 => matching::<2>(a, b),
        32 => matching::<4>(a, b),
        64 => matching::<8>(a, b),
        _ => unreachable!("a valid shape has slots of 8, 16, 32 or 64 bits"),
    }
}

/// Counts equal slots in 16 lanes of one byte each. Compilers turn the loop into vector comparisons. A lane is emptied
/// before it overflows.
#[inline]
fn matching<const WIDTH: usize>(a: &[u8], b: &[u8]) -> u32 {
    const LANES: usize = 16;
    let mut total = 0;
    for (a, b) in a.chunks(LANES * WIDTH * 255).zip(b.chunks(LANES * WIDTH * 255)) {
        let mut lanes = [0u8; LANES];
        let (a, b) = (a.chunks_exact(LANES * WIDTH), b.chunks_exact(LANES * WIDTH));
        let rest = a.remainder().chunks_exact(WIDTH).zip(b.remainder().chunks_exact(WIDTH));
        total += rest.filter(|(a, b)| a == b).count() as u32;
        for (a, b) in a.zip(b) {
            for (lane, (a, b)) in lanes.iter_mut().zip(a.chunks_exact(WIDTH).zip(b.chunks_exact(WIDTH))) {
                *lane += u8::from(a == b);
            }
        }
        total += lanes.iter().map(|&lane| u32::from(lane)).sum::<u32>();
    }
    total
}

/// Returns `J = (m/k - 2^-w) / (1 - 2^-w)`, clamped to 0..=1: slots of w bits also agree by chance, and this share is
/// subtracted.
pub fn similarity(matching: u32, shape: SignatureShape) -> f64 {
    let (numerator, denominator) = similarity_ratio(matching, shape);
    (numerator as f64 / denominator as f64).clamp(0.0, 1.0)
}

/// Returns the similarity as an exact fraction: `(m·2^w - k) / (k·(2^w - 1))`.
fn similarity_ratio(matching: u32, SignatureShape { k, bits }: SignatureShape) -> (i128, i128) {
    let values = 1i128 << bits;
    (i128::from(matching) * values - i128::from(k), i128::from(k) * (values - 1))
}

/// Returns the 95 % interval of the similarity for m of k equal slots: Wilson's interval with a continuity correction
/// (Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 4), converted to J. Without the
/// correction, the interval contained the similarity of documents with nothing in common in only 92 % of cases.
///
/// The interval contains the similarity in at least 95 % of cases, whatever the sketch and the number of shingles
/// (`tests/coverage.rs`). It is made for independent slots, which `classic` has. Estimates from `fss` vary less, by a
/// factor of 0.7 to 0.9 with up to 300 shingles, so the interval contains the similarity more often. Estimates from
/// `oph` vary more if a document has fewer shingles than slots. In this case, the calculation uses fewer slots
/// ([`spread`]). If the sketch is unknown (`None`), slots are taken as independent.
pub fn interval95(matching: u32, shape: SignatureShape, sketch: Option<SketchKind>) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let fewer = sketch.map_or(1.0, spread).powi(2);
    let (k, m) = (f64::from(shape.k) / fewer, f64::from(matching) / fewer);
    let p = m / k;
    let half = |sign: f64| Z * (Z * Z - 1.0 / k + 4.0 * m * (1.0 - p) + sign * (4.0 * p - 2.0)).max(0.0).sqrt() + 1.0;
    let scale = 2.0 * (k + Z * Z);
    let low = if matching == 0 { 0.0 } else { (2.0 * m + Z * Z - half(1.0)) / scale };
    let high = if matching == shape.k { 1.0 } else { (2.0 * m + Z * Z + half(-1.0)) / scale };
    let by_chance = (-f64::from(shape.bits)).exp2();
    let to_similarity = |p: f64| ((p - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0);
    (to_similarity(low), to_similarity(high))
}

/// Returns how much more the estimates from a sketch may vary than those from independent slots, as a factor of the
/// standard deviation. For `oph`, the measured factor is 1.45 with two shingles, and 1.1 to 1.3 from 10 shingles to
/// about as many shingles as there are slots.
pub fn spread(sketch: SketchKind) -> f64 {
    match sketch {
        SketchKind::Fss | SketchKind::Classic | SketchKind::None => 1.0,
        SketchKind::Oph => 1.35,
    }
}

/// Returns the smallest number of equal slots whose similarity reaches the threshold. The threshold is rounded to nine
/// decimals: 0.8 means exactly 8/10, not the nearest `f64`. So no match exactly at the threshold is lost. For example,
/// 205 equal slots of 256, of 8 bits each, are a similarity of exactly 0.8. The threshold is clamped to 0..=1. If it is
/// NaN, all slots must be equal.
pub fn matching_min(threshold: f64, shape: SignatureShape) -> u32 {
    let nanos = nanos(threshold);
    if nanos == 0 {
        return 0;
    }
    let k = i128::from(shape.k);
    let values = 1i128 << shape.bits;
    // m·2^w·NANOS >= nanos·k·(2^w - 1) + k·NANOS
    let needed = nanos * k * (values - 1) + k * NANOS;
    let least = (needed + values * NANOS - 1) / (values * NANOS);
    u32::try_from(least).expect("at most k")
}

const NANOS: i128 = 1_000_000_000;

fn nanos(threshold: f64) -> i128 {
    let threshold = if threshold.is_nan() { 1.0 } else { threshold.clamp(0.0, 1.0) };
    (threshold * NANOS as f64).round() as i128
}

/// Returns whether `part / whole` reaches the threshold. The threshold is rounded as in [`matching_min`], and the
/// decision is made on integers.
pub fn reaches(part: u64, whole: u64, threshold: f64) -> bool {
    i128::from(part) * NANOS >= nanos(threshold) * i128::from(whole)
}

/// The result of an exact comparison of two sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exact {
    /// The size of the intersection divided by the size of the union; 0 for two empty sets.
    pub jaccard: f64,
    /// The share of a that is in b; 0 if a is empty.
    pub containment_a_in_b: f64,
    /// The share of b that is in a; 0 if b is empty.
    pub containment_b_in_a: f64,
    /// The number of elements in both.
    pub intersection: u64,
}

/// Compares two sorted slices of distinct shingle hashes.
pub fn exact(a: &[u64], b: &[u64]) -> Exact {
    debug_assert!(a.is_sorted_by(|x, y| x < y) && b.is_sorted_by(|x, y| x < y), "sorted and distinct");
    let (mut i, mut j, mut intersection) = (0, 0, 0usize);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        intersection += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    let share = |of: usize| if of == 0 { 0.0 } else { intersection as f64 / of as f64 };
    Exact {
        jaccard: share(a.len() + b.len() - intersection),
        containment_a_in_b: share(a.len()),
        containment_b_in_a: share(b.len()),
        intersection: intersection as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix64;

    fn shapes() -> impl Iterator<Item = SignatureShape> {
        [(64, 8), (256, 8), (4096, 8), (24, 8), (128, 16), (20, 16), (100, 32), (128, 64), (17, 64), (4096, 64)]
            .into_iter()
            .map(|(k, bits)| SignatureShape { k, bits })
    }

    #[test]
    fn matching_slots_equals_the_plain_count() {
        let mut generator = SplitMix64::new(5);
        for shape in shapes() {
            let width = (shape.bits / 8) as usize;
            for agree in [0, 1, 30, 99, 100] {
                let a: Vec<u8> = (0..shape.bytes()).map(|_| generator.next_u64() as u8).collect();
                let mut b = a.clone();
                for slot in b.chunks_mut(width) {
                    if generator.next_u64() % 100 >= agree {
                        slot[generator.next_u64() as usize % width] ^= 1 << (generator.next_u64() % 8);
                    }
                }
                let plain = a.chunks(width).zip(b.chunks(width)).filter(|(a, b)| a == b).count() as u32;
                assert_eq!(matching_slots(&a, &b, shape), plain, "{shape:?} seed 5");
            }
        }
    }

    #[test]
    fn the_least_matching_reaches_the_threshold_and_one_less_does_not() {
        assert_eq!(matching_min(0.8, SignatureShape { k: 256, bits: 8 }), 205);
        assert_eq!(similarity(205, SignatureShape { k: 256, bits: 8 }), 0.8);
        assert_eq!(matching_min(f64::NAN, SignatureShape { k: 256, bits: 8 }), 256);
        for shape in shapes() {
            assert_eq!(matching_min(1.0, shape), shape.k);
            assert_eq!(matching_min(0.0, shape), 0);
            for thousandth in 1..=1000u32 {
                let threshold = f64::from(thousandth) / 1000.0;
                let least = matching_min(threshold, shape);
                let reaches = |m: u32| {
                    let (numerator, denominator) = similarity_ratio(m, shape);
                    numerator * 1000 >= denominator * i128::from(thousandth)
                };
                assert!(least <= shape.k && reaches(least) && !reaches(least - 1), "{shape:?} {threshold}");
            }
        }
    }

    #[test]
    fn a_ratio_reaches_a_threshold_that_it_equals() {
        for (part, whole, threshold, reached) in [
            (4, 5, 0.8, true),
            (799_999_999, 1_000_000_000, 0.8, false),
            (1, 3, 0.333_333_333, true),
            (1, 3, 0.333_333_334, false),
            (7, 10, 0.1 + 0.6, true),
            (u64::MAX, u64::MAX, 1.0, true),
            (u64::MAX - 1, u64::MAX, 1.0, false),
            (1, 1, f64::NAN, true),
        ] {
            assert_eq!(reaches(part, whole, threshold), reached, "{part}/{whole} {threshold}");
        }
    }

    #[test]
    fn similarity_runs_from_0_to_1_inside_its_interval() {
        for shape in shapes() {
            assert_eq!(similarity(shape.k, shape), 1.0);
            assert_eq!(similarity(0, shape), 0.0);
            let mut before = -1.0;
            for m in 0..=shape.k {
                let (low, high) = interval95(m, shape, None);
                let estimate = similarity(m, shape);
                assert!(before <= estimate && low <= estimate + 1e-12 && estimate <= high + 1e-12, "{shape:?} {m}");
                assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
                before = estimate;
            }
        }
        // From Newcombe 1998, Table I. With slots of 64 bits nothing is subtracted.
        for (m, k, low, high) in
            [(81, 263, 0.2535, 0.3682), (15, 148, 0.0598, 0.1644), (0, 20, 0.0, 0.2005), (1, 29, 0.0018, 0.1963)]
        {
            let found = interval95(m, SignatureShape { k, bits: 64 }, None);
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{m} of {k}: {found:?}");
        }
    }

    #[test]
    fn exact_comparison_counts_the_intersection() {
        let found = exact(&[1, 2, 3, 4], &[2, 4, 6]);
        assert_eq!(
            found,
            Exact { jaccard: 0.4, containment_a_in_b: 0.5, containment_b_in_a: 2.0 / 3.0, intersection: 2 }
        );
        let none = Exact { jaccard: 0.0, containment_a_in_b: 0.0, containment_b_in_a: 0.0, intersection: 0 };
        assert_eq!(exact(&[], &[]), none);
        assert_eq!(exact(&[], &[1]), none);
        assert_eq!(exact(&[u64::MAX], &[u64::MAX]).jaccard, 1.0);
    }
}
