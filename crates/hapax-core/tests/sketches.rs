//! The average behaviour of sketches, by simulation with a fixed seed. Every bound is a multiple of the sampling error.
//! So a failure is not bad luck: a sketch is wrong.

#![allow(clippy::print_stdout)] // seeds and figures, shown when a test fails

use hapax_core::tuning::{SimulatedPoint, Simulation, candidate_probability, simulate, slot_agreement};
use hapax_core::tuning::{SketchedPair, verdict_probability};
use hapax_core::{Banding, SignatureShape, SketchKind};

const SEED: u64 = 170_404_370;
const SHAPE: SignatureShape = SignatureShape { k: 256, bits: 8 };
const JACCARDS: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

fn run(sketch: SketchKind, banding: (u32, u32), set_size: usize, pairs: u32) -> Vec<SimulatedPoint> {
    let banding = Banding::new(banding.0, banding.1, SHAPE).expect("fits");
    let simulation = Simulation { sketch, shape: SHAPE, banding, threshold: 0.8, set_size, pairs, seed: SEED };
    simulate(&simulation, &JACCARDS)
}

/// Returns set sizes, each with the number of pairs that can be simulated in reasonable time.
fn grid(sketch: SketchKind) -> Vec<(usize, u32)> {
    match sketch {
        SketchKind::Fss => {
            vec![(5, 3_000), (10, 3_000), (25, 3_000), (100, 3_000), (400, 2_000), (1_000, 1_500), (5_000, 400)]
        }
        SketchKind::Oph => {
            vec![(5, 3_000), (10, 3_000), (25, 3_000), (100, 3_000), (400, 3_000), (1_000, 3_000), (5_000, 1_000)]
        }
        SketchKind::Classic => {
            vec![(5, 3_000), (10, 3_000), (25, 3_000), (100, 1_500), (400, 500), (1_000, 200), (5_000, 50)]
        }
        SketchKind::None => unreachable!("it estimates nothing"),
    }
}

/// The mean agreement is s = J + (1-J)/2^w for every size; its variance is that of k independent slots (classic) or
/// less (FSS).
fn estimates_are_unbiased(sketch: SketchKind) {
    println!("seed {SEED}");
    let (mut sum, mut cells) = (0.0, 0.0f64);
    for (size, pairs) in grid(sketch) {
        for point in run(sketch, (31, 8), size, pairs) {
            let s = slot_agreement(point.jaccard, SHAPE.bits);
            if point.jaccard == 1.0 {
                assert_eq!((point.agreement_mean, point.agreement_variance), (1.0, 0.0), "{sketch:?} {size}");
                continue;
            }
            let variance = s * (1.0 - s) / f64::from(SHAPE.k);
            // Densified slots are made from other slots, so they are not independent. The error of the mean is computed
            // from the measured variance over the pairs.
            let spread_of_one = if sketch == SketchKind::Oph { point.agreement_variance } else { variance };
            let z = (point.agreement_mean - s) / (spread_of_one / f64::from(pairs)).sqrt();
            let ratio = point.agreement_variance / variance;
            let spread = 4.5 * (2.0 / f64::from(pairs)).sqrt();
            println!("{sketch:?} n={size:4} J={:.3}: bias {z:+.2} standard errors, variance {ratio:.3}", point.jaccard);
            assert!(z.abs() < 4.5, "{sketch:?} n={size} {point:?}: biased by {z} standard errors");
            match sketch {
                SketchKind::Oph => {
                    // In the worst case, the number of independent slots is the number of shingles.
                    let worst = (f64::from(SHAPE.k) / size as f64 + 1.0) * (1.0 + spread);
                    assert!(ratio < worst, "n={size} {point:?}: variance {ratio}");
                }
                SketchKind::Fss => {
                    let most = if matches!(size, 25 | 100) { 0.6 } else { 1.0 };
                    assert!(ratio < most + spread, "n={size} {point:?}: variance {ratio}");
                }
                SketchKind::Classic => assert!((ratio - 1.0).abs() < spread, "n={size} {point:?}: variance {ratio}"),
                SketchKind::None => unreachable!("it estimates nothing"),
            }
            sum += z;
            cells += 1.0;
        }
    }
    let pooled = sum / cells.sqrt();
    assert!(cells > 40.0 && pooled.abs() < 4.0, "{sketch:?}: {pooled} standard errors over all cells");
}

#[test]
fn fss_is_unbiased_and_varies_less_than_independent_slots() {
    estimates_are_unbiased(SketchKind::Fss);
}

#[test]
fn oph_is_unbiased_and_varies_more_where_most_slots_are_filled_from_others() {
    estimates_are_unbiased(SketchKind::Oph);
}

/// All slots of a set of one or two shingles are filled from one or two ranks. If one slot agrees with that of another
/// such set by chance, the other slots must not all agree too. In an earlier version, all slots agreed with probability
/// 1/256.
#[test]
fn tiny_sets_agree_by_chance_slot_by_slot() {
    println!("seed {SEED}");
    for sketch in SketchKind::ALL {
        for size in [1, 2, 3] {
            let banding = Banding::new(31, 8, SHAPE).expect("fits");
            let simulation =
                Simulation { sketch, shape: SHAPE, banding, threshold: 0.8, set_size: size, pairs: 5_000, seed: SEED };
            let point = simulate(&simulation, &[0.0])[0];
            let independent = slot_agreement(0.0, SHAPE.bits) * (1.0 - slot_agreement(0.0, SHAPE.bits)) / 256.0;
            assert!(point.agreement_variance < 1.5 * independent, "{sketch:?} of {size}: {point:?}");
            assert_eq!((point.candidate_rate, point.verdict_rate), (0.0, 0.0), "{sketch:?} of {size}");
        }
    }
}

#[test]
fn classic_is_unbiased_and_varies_as_independent_slots() {
    estimates_are_unbiased(SketchKind::Classic);
}

const BANDINGS: [(u32, u32); 4] = [(31, 8), (21, 6), (16, 8), (42, 6)];

/// The sampling error of a rate, with room for the few events that a normal distribution does not describe.
fn sampling_error(rate: f64, pairs: u32) -> f64 {
    let n = f64::from(pairs);
    4.0 * (rate * (1.0 - rate) / n).sqrt() + 3.0 / n
}

#[test]
fn classic_candidates_follow_the_curve() {
    println!("seed {SEED}");
    for (bands, rows) in BANDINGS {
        let banding = Banding::new(bands, rows, SHAPE).expect("fits");
        for (size, pairs) in [(10, 2_000), (60, 2_000)] {
            for point in run(SketchKind::Classic, (bands, rows), size, pairs) {
                let theory = candidate_probability(point.jaccard, banding, SHAPE);
                let bound = sampling_error(theory, pairs);
                assert!((point.candidate_rate - theory).abs() <= bound, "{bands}x{rows} n={size} {theory} {point:?}");
                let signed = SketchedPair { sketch: SketchKind::Classic, shingles: size as u64 };
                let theory = verdict_probability(point.jaccard, banding, SHAPE, 0.8, signed);
                let bound = sampling_error(theory, pairs);
                assert!((point.verdict_rate - theory).abs() <= bound, "{bands}x{rows} n={size} {theory} {point:?}");
            }
        }
    }
}

/// A prediction that assumes independent slots is not enough. For `fss` with 100 shingles at J = 0.85, it predicts a
/// rate of 0.99, but the measured rate is 0.999.
#[test]
fn verdicts_follow_the_prediction_of_their_sketch_and_number_of_shingles() {
    println!("seed {SEED}");
    let banding = Banding::new(31, 8, SHAPE).expect("fits");
    for sketch in [SketchKind::Fss, SketchKind::Oph] {
        for (size, pairs) in [(10, 4_000), (25, 4_000), (100, 4_000), (400, 4_000), (2_000, 1_000)] {
            for point in run(sketch, (31, 8), size, pairs) {
                let signed = SketchedPair { sketch, shingles: size as u64 };
                let theory = verdict_probability(point.jaccard, banding, SHAPE, 0.8, signed);
                let bound = 0.03 + sampling_error(theory, pairs);
                assert!((point.verdict_rate - theory).abs() <= bound, "{sketch:?} n={size} {theory} {point:?}");
            }
        }
    }
}

/// The slots of FSS are slightly correlated. Therefore the share of pairs that become candidates may differ from the
/// prediction by a tenth of it. But if the prediction is above 0.99, the share must not be smaller than predicted.
#[test]
fn fss_candidates_stay_near_the_curve_and_never_lose_recall() {
    println!("seed {SEED}");
    let mut recalls = 0;
    for (bands, rows) in BANDINGS {
        let banding = Banding::new(bands, rows, SHAPE).expect("fits");
        for (size, pairs) in [(5, 4_000), (25, 4_000), (100, 4_000), (400, 4_000), (2_000, 1_000)] {
            for point in run(SketchKind::Fss, (bands, rows), size, pairs) {
                let theory = candidate_probability(point.jaccard, banding, SHAPE);
                let error = sampling_error(theory, pairs);
                println!(
                    "{bands}x{rows} n={size:4} J={:.3}: {:.4} of {theory:.4}",
                    point.jaccard, point.candidate_rate
                );
                if theory >= 0.05 {
                    let off = (point.candidate_rate - theory).abs();
                    assert!(off <= 0.1 * theory + error, "{bands}x{rows} n={size} {theory} {point:?}");
                }
                if theory > 0.99 {
                    recalls += 1;
                    assert!(point.candidate_rate >= theory - error, "{bands}x{rows} n={size} {theory} {point:?}");
                }
            }
        }
    }
    assert!(recalls > 40, "{recalls} cells above 0.99");
}

#[test]
fn a_simulation_is_the_same_every_time_and_for_every_list_of_similarities() {
    let all = run(SketchKind::Fss, (21, 6), 40, 50);
    assert_eq!(all, run(SketchKind::Fss, (21, 6), 40, 50));
    let banding = Banding::new(21, 6, SHAPE).expect("fits");
    let simulation = Simulation {
        sketch: SketchKind::Fss,
        shape: SHAPE,
        banding,
        threshold: 0.8,
        set_size: 40,
        pairs: 50,
        seed: SEED,
    };
    assert_eq!(simulate(&simulation, &[0.7]), all[3..4]);
}

/// Estimates are also unbiased with wider slots, which agree by chance less often, and with other numbers of slots.
#[test]
fn other_shapes_are_unbiased_too() {
    println!("seed {SEED}");
    for (sketch, k, bits) in [
        (SketchKind::Fss, 64, 16),
        (SketchKind::Fss, 1024, 32),
        (SketchKind::Classic, 64, 32),
        (SketchKind::Fss, 128, 8),
        (SketchKind::Oph, 64, 16),
    ] {
        let shape = SignatureShape { k, bits };
        let banding = Banding::new(8, 8, shape).expect("fits");
        let simulation = Simulation { sketch, shape, banding, threshold: 0.5, set_size: 60, pairs: 1_500, seed: SEED };
        for point in simulate(&simulation, &[0.2, 0.6, 0.9]) {
            let s = slot_agreement(point.jaccard, bits);
            let error = ((s * (1.0 - s) / f64::from(k)).max(point.agreement_variance) / 1_500.0).sqrt();
            assert!((point.agreement_mean - s).abs() < 4.5 * error, "{sketch:?} {shape:?} {point:?}");
        }
    }
}
