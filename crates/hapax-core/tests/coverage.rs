//! The 95 % interval contains the similarity in 95 of 100 cases, for every sketch and any number of shingles. In an
//! earlier version, it did so in only 89 to 93 of 100 cases for `oph` with 10 to 30 shingles, and in 92 for documents
//! with nothing in common.

#![allow(clippy::print_stdout)] // seeds and figures, shown when a test fails

use hapax_core::sketch::{SketchState, Sketcher};
use hapax_core::{SignatureShape, SketchKind, SplitMix64, fmix64, verify};

const SEED: u64 = 1;
/// The number of shingles in at least one of the two documents, and the number in both.
const SETS: [(u64, u64); 20] = [
    (2, 0),
    (2, 1),
    (3, 2),
    (5, 4),
    (10, 0),
    (10, 5),
    (10, 8),
    (10, 9),
    (20, 16),
    (30, 0),
    (30, 15),
    (30, 24),
    (30, 27),
    (60, 48),
    (100, 1),
    (100, 50),
    (100, 80),
    (100, 95),
    (300, 240),
    (300, 0),
];

fn signature(sketcher: &Sketcher, state: &mut SketchState, bits: u32, shingles: &[u64]) -> Vec<u8> {
    sketcher.begin(state);
    sketcher.push(state, shingles);
    sketcher.finish(state);
    let mut packed = Vec::new();
    sketcher.pack_into(state, bits, &mut packed);
    packed
}

/// Returns the share of pairs whose interval contains their similarity.
fn coverage(kind: SketchKind, shape: SignatureShape, (either, both): (u64, u64), pairs: u32) -> f64 {
    let sketcher = Sketcher::new(kind, shape.k);
    let (mut state, mut numbers) = (SketchState::default(), SplitMix64::new(SEED));
    let similarity = both as f64 / either as f64;
    let held = (0..pairs).filter(|_| {
        let all: Vec<u64> = (0..either).map(|_| fmix64(numbers.next_u64())).collect();
        let only_a = ((either - both) / 2).max(u64::from(both == 0)) as usize;
        let (shared, others) = all.split_at(both as usize);
        let (a, b) = ([shared, &others[..only_a]].concat(), [shared, &others[only_a..]].concat());
        let [a, b] = [a, b].map(|set| signature(&sketcher, &mut state, shape.bits, &set));
        let matching = verify::matching_slots(&a, &b, shape);
        let (low, high) = verify::interval95(matching, shape, Some(kind));
        low <= similarity + 1e-12 && similarity <= high + 1e-12
    });
    held.count() as f64 / f64::from(pairs)
}

#[test]
fn the_interval_holds_the_similarity_in_95_of_100_cases() {
    println!("seed {SEED}");
    for kind in [SketchKind::Fss, SketchKind::Classic, SketchKind::Oph] {
        for (k, bits) in [(256, 8), (64, 8), (128, 16)] {
            let shape = SignatureShape { k, bits };
            for set in SETS {
                let pairs = if set.0 > 100 { 1000 } else { 4000 };
                let coverage = coverage(kind, shape, set, pairs);
                println!("{kind:?} {k}x{bits}, {} of {} shared: {coverage:.4}", set.1, set.0);
                // Allows for two standard errors of the sample.
                let error = (0.95 * 0.05 / f64::from(pairs)).sqrt();
                assert!(coverage >= 0.95 - 2.0 * error, "{kind:?} {k}x{bits} {set:?}: {coverage}");
            }
        }
    }
}
