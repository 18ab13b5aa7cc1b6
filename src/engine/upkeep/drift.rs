//! How far the candidates of lookups are from those that the S-curve predicts. The prediction rests on pairs of sampled
//! documents: each pair agrees in some share of its slots, and independent slots would make it a candidate with the
//! probability of the curve. More candidates than predicted mean that the slots of a band agree together: boilerplate.

use hapax_core::{Banding, SignatureShape, tuning, verify};

use crate::engine::meters::DriftMeans;
use crate::store::Record;

/// The least numbers of shingles of the classes of documents, and the names of the classes.
pub(super) const CLASSES: [(u64, &str); 4] = [(0, "0-49"), (50, "50-199"), (200, "200-999"), (1000, "1000-")];

/// The sums over the documents of one class, of the last rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthClass {
    documents: f64,
    observed: f64,
    expected: f64,
    similarity: f64,
}

impl LengthClass {
    /// Weighs the earlier rounds less.
    pub(super) fn fade(&mut self, by: f64) {
        let Self { documents, observed, expected, similarity } = *self;
        *self = Self {
            documents: documents * by,
            observed: observed * by,
            expected: expected * by,
            similarity: similarity * by,
        };
    }

    /// Adds a document.
    pub(super) fn add(&mut self, drift: DriftMeans) {
        self.documents += 1.0;
        self.observed += drift.observed;
        self.expected += drift.expected;
        self.similarity += drift.similarity;
    }

    /// Returns the means; `None` if no document of this class was looked at.
    pub(super) fn mean(&self) -> Option<DriftMeans> {
        let Self { documents, observed, expected, similarity } = *self;
        let mean = |sum: f64| sum / documents;
        (documents > 0.0).then(|| DriftMeans {
            observed: mean(observed),
            expected: mean(expected),
            similarity: mean(similarity),
        })
    }
}

/// Returns the class of a document.
pub(super) fn class_of(record: &Record) -> usize {
    let shingles = record.shingles.unwrap_or_default();
    CLASSES.iter().rposition(|(least, _)| *least <= shingles).unwrap_or_default()
}

/// Returns the mean similarity of a document to the others of a sample, and how many of `documents` the curve predicts as
/// its candidates. `None` without others.
pub(super) fn predicted(
    record: &Record,
    sample: &[Record],
    documents: u64,
    (banding, shape): (Banding, SignatureShape),
) -> Option<(f64, f64)> {
    let others = sample.iter().filter(|other| other.seq != record.seq);
    let matching: Vec<u32> =
        others.map(|other| verify::matching_slots(&record.signature, &other.signature, shape)).collect();
    let mean = |sum: f64| sum / matching.len() as f64;
    let similarities = || matching.iter().map(|&matching| verify::similarity(matching, shape));
    let rate = mean(similarities().map(|similarity| tuning::candidate_probability(similarity, banding, shape)).sum());
    (!matching.is_empty()).then(|| (mean(similarities().sum()), rate * documents.saturating_sub(1) as f64))
}
