//! Sketch and number of shingles -> the spread of estimates, divided by the spread of independent slots. The figures
//! were measured over 600 to 2,000 pairs at J = 0.5, 0.8 and 0.9, k = 64 to 1024 (standard error of a figure about
//! 0.02). The spread depends on the ratio of shingles to slots, and hardly on either number alone. `tests/sketches.rs`
//! checks the figures with real sketches.

use crate::spec::SketchKind;

/// The properties of two sketched documents on which the spread of their estimates depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchedPair {
    /// The sketch.
    pub sketch: SketchKind,
    /// The number of distinct shingles in the two documents. A shared shingle counts once.
    pub shingles: u64,
}

/// The first figure is for this log2 of shingles per slot. Each further figure is for twice as many shingles.
const FIRST: f64 = -7.0;
const FSS: [f64; 13] = [0.92, 0.89, 0.83, 0.76, 0.71, 0.705, 0.71, 0.735, 0.79, 0.86, 0.92, 0.965, 1.0];
const OPH: [f64; 13] = [1.35, 1.25, 1.24, 1.22, 1.19, 1.13, 1.06, 0.97, 0.885, 0.865, 0.92, 0.96, 1.0];

impl SketchedPair {
    /// Returns the standard deviation of the number of equal slots, divided by that of k independent slots.
    pub fn spread(self, k: u32) -> f64 {
        let figures = match self.sketch {
            SketchKind::Classic | SketchKind::None => return 1.0,
            SketchKind::Fss => FSS,
            SketchKind::Oph => OPH,
        };
        let at = ((self.shingles.max(1) as f64 / f64::from(k)).log2() - FIRST).clamp(0.0, figures.len() as f64 - 1.0);
        let (low, part) = (at as usize, at.fract());
        figures[low] + part * (figures[(low + 1).min(figures.len() - 1)] - figures[low])
    }
}
