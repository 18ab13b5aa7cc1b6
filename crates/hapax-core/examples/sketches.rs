//! Compares the three sketches, from 10 to 5,000 shingles: bias, variance as a multiple of J(1-J)/k (the variance of k
//! independent slots), and cost. `cargo run --release -p hapax-core --example sketches` prints Markdown.

use std::hint::black_box;
use std::time::Instant;

use hapax_core::sketch::{SketchState, Sketcher};
use hapax_core::tuning::{Simulation, simulate, slot_agreement};
use hapax_core::{Banding, SignatureShape, SketchKind, SplitMix64};

const SHAPE: SignatureShape = SignatureShape { k: 256, bits: 32 };
const JACCARDS: [f64; 3] = [0.5, 0.8, 0.9];
const SIZES: [usize; 6] = [10, 25, 100, 400, 1_000, 5_000];
const SEED: u64 = 2017;

/// Returns the number of pairs to simulate for a size, such that all sizes take about the same time.
fn pairs(size: usize) -> u32 {
    (4_000_000 / size).clamp(1_000, 20_000) as u32
}

#[allow(clippy::print_stdout)]
fn main() {
    let banding = Banding::new(31, 8, SHAPE).expect("fits");
    println!(
        "k={}, {} bits, seed {SEED}. Bias of the estimate with its standard error; variance over J(1-J)/k.\n",
        SHAPE.k, SHAPE.bits
    );
    println!("| shingles | sketch | J | bias | ± | variance ratio | empty slots | us a set |");
    println!("|--:|---|--:|--:|--:|--:|--:|--:|");
    for size in SIZES {
        for sketch in SketchKind::ALL {
            let (us, empty) = cost(sketch, size);
            let pairs = pairs(size);
            let simulation =
                Simulation { sketch, shape: SHAPE, banding, threshold: 0.8, set_size: size, pairs, seed: SEED };
            for point in simulate(&simulation, &JACCARDS) {
                let s = slot_agreement(point.jaccard, SHAPE.bits);
                let independent = s * (1.0 - s) / f64::from(SHAPE.k);
                println!(
                    "| {size} | {} | {:.3} | {:+.5} | {:.5} | {:.2} | {:.1} % | {us:.2} |",
                    sketch.name(),
                    point.jaccard,
                    point.agreement_mean - s,
                    (point.agreement_variance / f64::from(pairs)).sqrt(),
                    point.agreement_variance / independent,
                    100.0 * empty,
                );
            }
        }
    }
}

/// Returns the median time to sketch and pack a set, in microseconds, and the share of its slots that stay empty.
fn cost(kind: SketchKind, size: usize) -> (f64, f64) {
    const SETS: usize = 100;
    const ROUNDS: usize = 15;
    let mut generator = SplitMix64::new(SEED);
    let sets: Vec<Vec<u64>> = (0..SETS).map(|_| (0..size).map(|_| generator.next_u64()).collect()).collect();
    let (sketcher, mut state, mut packed) = (Sketcher::new(kind, SHAPE.k), SketchState::default(), Vec::new());
    let mut empty = 0;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            empty = 0;
            let start = Instant::now();
            for set in &sets {
                sketcher.begin(&mut state);
                sketcher.push(&mut state, set);
                sketcher.finish(&mut state);
                empty += sketcher.pack_into(&mut state, SHAPE.bits, &mut packed);
                black_box(&packed);
            }
            start.elapsed().as_secs_f64() / SETS as f64 * 1e6
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[ROUNDS / 2], f64::from(empty) / (SETS as f64 * f64::from(SHAPE.k)))
}
