//! Similarities of pairs -> a picture of how many there are, over the S-curve of the banding.

use anyhow::{Result, anyhow};
use hapax_core::tuning::candidate_probability;

use crate::cli::plot::{self, Bars};
use crate::verdicts::Settings;

/// The argument that names the picture.
pub(in crate::cli) const PLOT: &str = "--plot";

/// Returns the picture as SVG. `counts`: the number of pairs in each equal part of the similarities from 0 to 1.
pub(in crate::cli) fn draw(settings: &Settings, counts: &[u64]) -> Result<String> {
    let (banding, threshold, shape) = (settings.banding, settings.threshold, settings.spec.shape());
    let bars = Bars {
        title: format!("{} bands of {} rows, threshold {threshold}", banding.bands(), banding.rows()),
        threshold,
        candidate: &|jaccard| candidate_probability(jaccard, banding, shape),
        counts,
    };
    plot::draw_bars(&bars).map_err(|error| anyhow!("cannot draw the plot: {error}"))
}
