//! Measures how much the candidates of lookups differ from those that the S-curve predicts. The prediction uses pairs
//! of sampled documents. Each pair agrees in some share of its slots. If slots are independent, the pair is a candidate
//! with the probability that the curve shows. If there are more candidates than predicted, and they are less similar
//! than predicted, the slots of a band tend to agree together. That is a sign of boilerplate.

use hapax_core::{Banding, SignatureShape, tuning, verify};

use crate::engine::meters::DriftMeans;
use crate::store::Record;

/// The classes of documents: the lowest number of shingles, and the name of each class.
pub(super) const CLASSES: [(u64, &str); 4] = [(0, "0-49"), (50, "50-199"), (200, "200-999"), (1000, "1000-")];

/// The prediction of the curve for a document.
pub(super) struct Predicted {
    /// The number of candidates of the document.
    candidates: f64,
    /// The sum of the similarities of these candidates to the document.
    similarities: f64,
    /// The mean similarity of the document to the other documents.
    background: f64,
}

/// The sums over the documents of one class in the last rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthClass {
    documents: f64,
    observed: Proposals,
    expected: Proposals,
    background: f64,
}

/// The number of candidates, and the sum of their similarities.
#[derive(Clone, Copy, Debug, Default)]
struct Proposals {
    count: f64,
    similarities: f64,
}

impl Proposals {
    fn fade(&mut self, by: f64) {
        self.count *= by;
        self.similarities *= by;
    }

    fn add(&mut self, count: f64, similarities: f64) {
        self.count += count;
        self.similarities += similarities;
    }

    /// Returns the mean similarity; NaN if there are no candidates.
    fn similarity(&self) -> f64 {
        self.similarities / self.count
    }
}

impl LengthClass {
    /// Reduces the weight of the earlier rounds.
    pub(super) fn fade(&mut self, by: f64) {
        self.documents *= by;
        self.observed.fade(by);
        self.expected.fade(by);
        self.background *= by;
    }

    /// Adds a document, with the similarity of each of its candidates.
    pub(super) fn add(&mut self, predicted: &Predicted, observed: &[f64]) {
        self.documents += 1.0;
        self.observed.add(observed.len() as f64, observed.iter().sum());
        self.expected.add(predicted.candidates, predicted.similarities);
        self.background += predicted.background;
    }

    /// Returns the means; `None` if no document of this class was looked at.
    pub(super) fn mean(&self) -> Option<DriftMeans> {
        (self.documents > 0.0).then(|| DriftMeans {
            observed: self.observed.count / self.documents,
            expected: self.expected.count / self.documents,
            observed_similarity: self.observed.similarity(),
            expected_similarity: self.expected.similarity(),
            background: self.background / self.documents,
        })
    }
}

/// Returns the class of a document.
pub(super) fn class_of(record: &Record) -> usize {
    let shingles = record.shingles.unwrap_or_default();
    CLASSES.iter().rposition(|(least, _)| *least <= shingles).unwrap_or_default()
}

/// Predicts the candidates of a document in a collection of `documents` documents, from its similarities to the other
/// documents of a sample. `None` if the sample has no other document.
pub(super) fn predicted(
    record: &Record,
    sample: &[Record],
    documents: u64,
    (banding, shape): (Banding, SignatureShape),
) -> Option<Predicted> {
    let others = sample.iter().filter(|other| other.seq != record.seq);
    let similarities: Vec<f64> = others
        .map(|other| verify::matching_slots(&record.signature, &other.signature, shape))
        .map(|matching| verify::similarity(matching, shape))
        .collect();
    let (mut all, mut proposed) = (0.0, Proposals::default());
    for &similarity in &similarities {
        let probability = tuning::candidate_probability(similarity, banding, shape);
        all += similarity;
        proposed.add(probability, probability * similarity);
    }
    let each = documents.saturating_sub(1) as f64 / similarities.len() as f64;
    (!similarities.is_empty()).then(|| Predicted {
        candidates: proposed.count * each,
        similarities: proposed.similarities * each,
        background: all / similarities.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(documents: &[(Predicted, &[f64])]) -> LengthClass {
        let mut class = LengthClass::default();
        documents.iter().for_each(|(predicted, observed)| class.add(predicted, observed));
        class
    }

    const PREDICTED: Predicted = Predicted { candidates: 4.0, similarities: 2.0, background: 0.25 };

    #[test]
    fn similarities_are_means_over_candidates_and_counts_over_documents() {
        let mean = class(&[(PREDICTED, &[0.875, 0.625]), (PREDICTED, &[])]).mean().unwrap();
        let expected = DriftMeans {
            observed: 1.0,
            expected: 4.0,
            observed_similarity: 0.75,
            expected_similarity: 0.5,
            background: 0.25,
        };
        assert_eq!(mean, expected);
    }

    #[test]
    fn earlier_rounds_weigh_less() {
        let mut class = class(&[(PREDICTED, &[0.75, 0.75])]);
        class.fade(0.5);
        class.add(&PREDICTED, &[0.25]);
        let mean = class.mean().unwrap();
        // The first document counts half and has two candidates. The second one counts in full and has one candidate.
        assert_eq!((mean.observed, mean.observed_similarity), (2.0 / 1.5, 0.5));
    }

    #[test]
    fn nothing_is_said_of_documents_or_candidates_that_do_not_exist() {
        assert!(class(&[]).mean().is_none());
        assert!(class(&[(PREDICTED, &[])]).mean().unwrap().observed_similarity.is_nan());
    }
}
