//! Simulates random pairs of sets with real sketches and bands, to check the prediction for independent slots.

use crate::band::Banding;
use crate::mix::SplitMix64;
use crate::sketch::{SketchState, Sketcher};
use crate::spec::{SignatureShape, SketchKind};
use crate::verify::{matching_min, matching_slots};

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// The sketch.
    pub sketch: SketchKind,
    /// Its shape: k a power of two; 8, 16 or 32 bits.
    pub shape: SignatureShape,
    /// The banding.
    pub banding: Banding,
    /// The minimum estimated similarity of a near-duplicate.
    pub threshold: f64,
    /// The number of shingles in each set of a pair, at least 1.
    pub set_size: usize,
    /// The number of pairs at each similarity.
    pub pairs: u32,
    /// The seed. Equal seeds give equal results, on every machine.
    pub seed: u64,
}

/// The results at one similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedPoint {
    /// The Jaccard similarity of the pairs: the possible value for sets of this size that is nearest to the given one.
    pub jaccard: f64,
    /// The number of pairs tried.
    pub pairs: u32,
    /// The share that agreed in some band.
    pub candidate_rate: f64,
    /// The share that agreed in some band and whose estimate reached the threshold.
    pub verdict_rate: f64,
    /// The mean share of equal slots.
    pub agreement_mean: f64,
    /// The variance of the share of equal slots over the pairs.
    pub agreement_variance: f64,
}

/// Tries pairs of random sets at each similarity.
pub fn simulate(simulation: &Simulation, jaccards: &[f64]) -> Vec<SimulatedPoint> {
    let sketcher = Sketcher::new(simulation.sketch, simulation.shape.k);
    jaccards.iter().map(|&jaccard| point(simulation, &sketcher, jaccard)).collect()
}

fn point(simulation: &Simulation, sketcher: &Sketcher, jaccard: f64) -> SimulatedPoint {
    let &Simulation { shape, banding, pairs, .. } = simulation;
    // Each similarity has its own random numbers, so that adding similarities does not change the results of the
    // others.
    let mut generator = SplitMix64::new(simulation.seed ^ jaccard.to_bits());
    let least = matching_min(simulation.threshold, shape);
    let mut state = SketchState::default();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut candidates, mut verdicts, mut sum, mut squares) = (0u32, 0u32, 0u64, 0u64);
    let mut achieved = 0.0;
    for _ in 0..pairs {
        achieved = random_pair(&mut generator, simulation.set_size.max(1), jaccard, &mut a, &mut b);
        let mut sign = |set: &[u64]| {
            sketcher.begin(&mut state);
            sketcher.push(&mut state, set);
            sketcher.finish(&mut state);
            let mut packed = Vec::new();
            sketcher.pack_into(&mut state, shape.bits, &mut packed);
            packed
        };
        let (a, b) = (sign(&a), sign(&b));
        let matching = matching_slots(&a, &b, shape);
        let row = (shape.bits / 8) as usize * banding.rows() as usize;
        let candidate =
            a.chunks_exact(row).zip(b.chunks_exact(row)).take(banding.bands() as usize).any(|(a, b)| a == b);
        candidates += u32::from(candidate);
        verdicts += u32::from(candidate && matching >= least);
        sum += u64::from(matching);
        squares += u64::from(matching) * u64::from(matching);
    }
    let (n, k) = (f64::from(pairs.max(1)), f64::from(shape.k));
    let mean = sum as f64 / n;
    SimulatedPoint {
        jaccard: achieved,
        pairs,
        candidate_rate: f64::from(candidates) / n,
        verdict_rate: f64::from(verdicts) / n,
        agreement_mean: mean / k,
        agreement_variance: (squares as f64 / n - mean * mean).max(0.0) / (k * k),
    }
}

/// Fills both sets with `size` random shingles each. The number of shared shingles is the one that comes nearest to the
/// similarity. Returns the similarity that the sets really have.
fn random_pair(generator: &mut SplitMix64, size: usize, jaccard: f64, a: &mut Vec<u64>, b: &mut Vec<u64>) -> f64 {
    let shared = ((2.0 * size as f64 * jaccard / (1.0 + jaccard)).round() as usize).min(size);
    a.clear();
    b.clear();
    a.extend((0..size).map(|_| generator.next_u64()));
    b.extend_from_slice(&a[..shared]);
    b.extend((shared..size).map(|_| generator.next_u64()));
    shared as f64 / (2 * size - shared) as f64
}
