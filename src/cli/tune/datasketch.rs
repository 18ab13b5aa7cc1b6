//! A threshold -> the banding that datasketch's `MinHashLSH` picks for it, with its recall and its cost.

use hapax_core::tuning;
use hapax_core::{Banding, SignatureShape};
use serde::Serialize;

use super::tuned::Tuned;

/// The bits of a slot in datasketch's MinHash.
const BITS: u32 = 32;
/// `MinHashLSH` refuses a threshold for which it would pick fewer bands than this.
const BANDS_MIN: u32 = 2;

/// The banding that datasketch picks, and its figures.
#[derive(Debug, Serialize)]
pub(super) struct Likeness {
    pub threshold: f64,
    pub num_perm: u32,
    pub bands: u32,
    pub rows: u32,
    /// Whether `MinHashLSH` refuses the threshold.
    pub is_refused: bool,
    pub candidate_recall_at_threshold: f64,
    /// The recall of the banding that hapax chose, at the same threshold.
    pub chosen_recall_at_threshold: f64,
    pub candidate_recall_at_s_hi: f64,
    pub background_candidates: f64,
    /// Whether a collection with this shape can have this banding.
    pub fits: bool,
}

impl Likeness {
    /// Computes the banding that datasketch picks, and its figures. They are for the same documents as the figures of
    /// hapax's own banding, so that users can compare them.
    pub(super) fn of(threshold: f64, num_perm: u32, tuned: &Tuned<'_>) -> Self {
        let Tuned { targets, shape, unrelated, curve, .. } = *tuned;
        let (bands, rows) = tuning::smallest_areas(threshold, num_perm);
        let theirs = SignatureShape { k: num_perm, bits: BITS };
        let banding = Banding::new(bands, rows, theirs).expect("a pick fits its permutations");
        Self {
            threshold,
            num_perm,
            bands,
            rows,
            is_refused: bands < BANDS_MIN,
            candidate_recall_at_threshold: tuning::candidate_probability(threshold, banding, theirs),
            chosen_recall_at_threshold: (curve.candidate)(threshold),
            candidate_recall_at_s_hi: tuning::candidate_probability(targets.s_hi, banding, theirs),
            background_candidates: targets.documents * unrelated.candidate_rate(banding, theirs),
            fits: Banding::new(bands, rows, shape).is_ok(),
        }
    }
}
