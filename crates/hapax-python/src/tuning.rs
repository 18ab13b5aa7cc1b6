//! Targets -> a banding and its curve.

use hapax_core::tuning::{
    Asked, SketchedPair, candidate_probability, choose, index_bytes, standard_error, verdict_probability,
};
use hapax_core::{Banding, SignatureShape};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::share;
use crate::spec::sketch_of;

/// A banding for a threshold, and its expected results.
#[pyclass(frozen, module = "pyhapax")]
pub(crate) struct Tuning {
    banding: Banding,
    shape: SignatureShape,
    pair: SketchedPair,
    /// The threshold.
    #[pyo3(get)]
    threshold: f64,
    /// How many documents of the similarity s_bg a lookup compares, on average.
    #[pyo3(get)]
    background_candidates: f64,
}

#[pymethods]
impl Tuning {
    /// The number of bands. More bands find more pairs.
    #[getter]
    fn bands(&self) -> u32 {
        self.banding.bands()
    }

    /// The number of rows in a band. More rows find fewer pairs.
    #[getter]
    fn rows(&self) -> u32 {
        self.banding.rows()
    }

    /// Returns the share of the pairs of this similarity that agree in a band, and so are compared.
    fn proposed(&self, similarity: f64) -> PyResult<f64> {
        Ok(candidate_probability(share("similarity", similarity)?, self.banding, self.shape))
    }

    /// Returns the share of the pairs of this similarity that are compared and whose estimate reaches the threshold.
    fn reported(&self, similarity: f64) -> PyResult<f64> {
        let similarity = share("similarity", similarity)?;
        Ok(verdict_probability(similarity, self.banding, self.shape, self.threshold, self.pair))
    }

    /// Returns the S-curve: points with similarities from 0 to 1. Each point has the similarity and the values of
    /// proposed() and reported() for it.
    #[pyo3(signature = (points=21))]
    fn curve(&self, points: u32) -> PyResult<Vec<(f64, f64, f64)>> {
        if !(2..=10_001).contains(&points) {
            return Err(PyValueError::new_err(format!("points must be between 2 and 10001, not {points}")));
        }
        let similarity = |point| f64::from(point) / f64::from(points - 1);
        (0..points)
            .map(similarity)
            .map(|similarity| Ok((similarity, self.proposed(similarity)?, self.reported(similarity)?)))
            .collect()
    }

    /// The standard error of an estimate at the threshold.
    #[getter]
    fn standard_error(&self) -> f64 {
        standard_error(self.threshold, self.shape, self.pair)
    }

    /// The bytes of a server's index for one document.
    #[getter]
    fn index_bytes(&self) -> u64 {
        index_bytes(self.banding, self.shape)
    }

    fn __repr__(&self) -> String {
        let (bands, rows) = (self.bands(), self.rows());
        format!("<pyhapax.Tuning {bands} bands of {rows} rows for a threshold of {}>", self.threshold)
    }
}

/// Returns the banding that a server chooses for a threshold and these targets, with its S-curve.
///
/// The targets are those of `hapax tune`: recall at the similarity s_hi, few candidates at s_lo, bands_wanted, and
/// candidates_max among documents of the similarity s_bg. shingles is the number of distinct shingles in the two
/// documents of a pair. A shared shingle counts once.
#[pyfunction]
#[pyo3(signature = (
    threshold=0.8, *, sketch="fss256x8", shingles=1000, recall=None, s_hi=None, s_lo=None, bands_wanted=None,
    candidates_max=None, documents=None, s_bg=None
))]
#[allow(clippy::too_many_arguments)] // keyword arguments
pub(crate) fn tune(
    threshold: f64,
    sketch: &str,
    shingles: u64,
    recall: Option<f64>,
    s_hi: Option<f64>,
    s_lo: Option<f64>,
    bands_wanted: Option<u32>,
    candidates_max: Option<f64>,
    documents: Option<f64>,
    s_bg: Option<f64>,
) -> PyResult<Tuning> {
    let threshold = share("threshold", threshold)?;
    let (kind, shape) = sketch_of(sketch)?;
    let asked = Asked { recall, s_hi, s_lo, bands_wanted, candidates_max, documents, s_bg };
    let choice = choose(asked, threshold, shape).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let pair = SketchedPair { sketch: kind, shingles };
    let background_candidates = choice.background_candidates;
    Ok(Tuning { banding: choice.banding, shape, pair, threshold, background_candidates })
}
