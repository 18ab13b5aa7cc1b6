//! A banding -> all the facts about it that `hapax tune` prints, as numbers. As JSON, the report is the output of
//! `--json`.

use hapax_core::tuning::{self, CurvePoints, SimulatedPoint};
use serde::Serialize;

use super::datasketch::Likeness;
use super::sample::Sample;
use super::tuned::Tuned;
use crate::cli::plot::Curve;

/// The similarities in the table.
const TABLE: [f64; 15] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub banding: BandingReport,
    pub k: u32,
    pub bits: u32,
    pub slots_unused: u32,
    pub threshold: f64,
    pub s_hi: f64,
    pub candidate_recall_at_s_hi: f64,
    pub verdict_recall_at_s_hi: f64,
    pub candidate_recall_at_threshold: f64,
    pub verdict_recall_at_threshold: f64,
    pub documents: f64,
    /// With a sample, this is the similarity that would produce the same number of candidates.
    pub s_bg: f64,
    pub background_candidates: f64,
    /// The bytes of the index for one document.
    pub index_bytes_per_document: u64,
    pub index_bytes: f64,
    /// The standard error of an estimate at the threshold.
    pub estimate_standard_error: f64,
    pub curve: CurveReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like_datasketch: Option<Likeness>,
    pub table: Vec<Row>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct BandingReport {
    pub bands: u32,
    pub rows: u32,
}

/// The similarities at certain points of the curve of candidates.
#[derive(Debug, Serialize)]
pub(super) struct CurveReport {
    /// `None` for a straight line.
    pub steepest: Option<f64>,
    /// The distance between the similarities at 10 % and at 90 %.
    pub width: f64,
    pub candidates_0_1_percent: f64,
    pub candidates_10_percent: f64,
    pub candidates_90_percent: f64,
    pub candidates_99_percent: f64,
}

/// The documents that were compared with each other.
#[derive(Debug, Serialize)]
pub(super) struct SampleReport {
    pub documents_read: u64,
    /// The number of lines that are not documents.
    pub without_text: u64,
    pub documents: u64,
    pub shingles_median: u64,
    /// The number of pairs below the threshold. All similarities here are from these pairs.
    pub pairs: u64,
    pub pairs_at_or_above_threshold: u64,
    pub similarity_mean: f64,
    pub similarity_p99: f64,
    pub similarity_p999: f64,
    pub similarity_max: f64,
    /// The standard error of the number of unrelated candidates.
    pub background_candidates_error: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub jaccard: f64,
    pub candidate: f64,
    pub verdict: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub candidate: f64,
    pub verdict: f64,
}

impl Report {
    /// Makes a report that has no notes yet.
    pub(super) fn new(tuned: &Tuned<'_>) -> Self {
        let Tuned { args, targets, banding, shape, unrelated, ref sample, curve } = *tuned;
        let threshold = curve.threshold;
        let index_bytes_per_document = tuning::index_bytes(banding, shape);
        let like = |threshold| Likeness::of(threshold, args.num_perm, tuned);
        Self {
            banding: BandingReport { bands: banding.bands(), rows: banding.rows() },
            k: shape.k,
            bits: shape.bits,
            slots_unused: shape.k - banding.bands() * banding.rows(),
            threshold,
            s_hi: targets.s_hi,
            candidate_recall_at_s_hi: (curve.candidate)(targets.s_hi),
            verdict_recall_at_s_hi: (curve.verdict)(targets.s_hi),
            candidate_recall_at_threshold: (curve.candidate)(threshold),
            verdict_recall_at_threshold: (curve.verdict)(threshold),
            documents: targets.documents,
            s_bg: unrelated.equivalent(banding, shape),
            background_candidates: targets.documents * unrelated.candidate_rate(banding, shape),
            index_bytes_per_document,
            index_bytes: index_bytes_per_document as f64 * targets.documents,
            estimate_standard_error: tuning::standard_error(threshold, shape, args.signed()),
            curve: CurvePoints::of(banding, shape).into(),
            sample: sample.as_ref().map(|sample| SampleReport::of(sample, tuned)),
            like_datasketch: args.like_datasketch.map(like),
            table: table(curve, targets.s_hi),
            warnings: Vec::new(),
        }
    }
}

impl From<CurvePoints> for CurveReport {
    fn from(points: CurvePoints) -> Self {
        let CurvePoints { steepest, width, at_0_1_percent, at_10_percent, at_90_percent, at_99_percent } = points;
        Self {
            steepest,
            width,
            candidates_0_1_percent: at_0_1_percent,
            candidates_10_percent: at_10_percent,
            candidates_90_percent: at_90_percent,
            candidates_99_percent: at_99_percent,
        }
    }
}

impl SampleReport {
    fn of(sample: &Sample, tuned: &Tuned<'_>) -> Self {
        let unrelated = tuned.unrelated;
        Self {
            documents_read: sample.read,
            without_text: sample.without_text,
            documents: sample.documents,
            shingles_median: sample.shingles,
            pairs: sample.pairs,
            pairs_at_or_above_threshold: sample.duplicates,
            similarity_mean: unrelated.mean(),
            similarity_p99: unrelated.quantile(0.99),
            similarity_p999: unrelated.quantile(0.999),
            similarity_max: unrelated.largest(),
            background_candidates_error: tuned.targets.documents
                * unrelated.candidate_rate_error(tuned.banding, tuned.shape),
        }
    }
}

/// Returns the rows of the table. They include rows for the threshold and for `s_hi`.
fn table(curve: &Curve<'_>, s_hi: f64) -> Vec<Row> {
    // Simulated sets have the nearest similarity that their size allows, so the rows are at these similarities.
    // Additional rows at the round similarities would have no measurements.
    let mut similarities: Vec<f64> = match curve.measured {
        [] => TABLE.to_vec(),
        measured => measured.iter().map(|point| point.jaccard).collect(),
    };
    for wanted in [curve.threshold, s_hi] {
        if !similarities.iter().any(|&jaccard| is_same_row(jaccard, wanted)) {
            similarities.push(wanted);
        }
    }
    similarities.sort_by(f64::total_cmp);
    let measured = |jaccard| curve.measured.iter().find(|point: &&SimulatedPoint| is_same_row(point.jaccard, jaccard));
    similarities
        .into_iter()
        .map(|jaccard| Row {
            jaccard,
            candidate: (curve.candidate)(jaccard),
            verdict: (curve.verdict)(jaccard),
            measured: measured(jaccard)
                .map(|point| Measured { candidate: point.candidate_rate, verdict: point.verdict_rate }),
        })
        .collect()
}

/// Returns whether two similarities are too close to be two rows: the table and the simulated sets cannot distinguish
/// them.
pub(super) fn is_same_row(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.001
}
