//! Similarities of unrelated documents -> how often a banding proposes an unrelated document. Comparing such a document
//! is wasted work.

use super::curve::similarity_at;
use super::probability::candidate_probability;
use crate::band::Banding;
use crate::spec::SignatureShape;

/// Measured similarities are rounded up to multiples of 1/STEPS, so that few different values remain to compute with.
const STEPS: f64 = 10_000.0;

/// The similarities of pairs of unrelated documents.
#[derive(Clone, Debug)]
pub struct Unrelated {
    /// Each similarity and the share of the pairs that have it, ascending.
    levels: Vec<(f64, f64)>,
    /// The number of measured pairs; `None` if no pair was measured.
    pairs: Option<u64>,
    mean: f64,
}

impl Unrelated {
    /// Assumes that all pairs have this similarity.
    pub fn alike(jaccard: f64) -> Self {
        Self { levels: vec![(jaccard, 1.0)], pairs: None, mean: jaccard }
    }

    /// Uses the similarities of measured pairs. `None` if there are none.
    pub fn measured(similarities: &[f64]) -> Option<Self> {
        let pairs = similarities.len() as f64;
        let mut steps: Vec<u32> = similarities.iter().map(|s| (s.clamp(0.0, 1.0) * STEPS).ceil() as u32).collect();
        steps.sort_unstable();
        let levels: Vec<_> = steps
            .chunk_by(|a, b| a == b)
            .map(|equal| (f64::from(equal[0]) / STEPS, equal.len() as f64 / pairs))
            .collect();
        let mean = similarities.iter().sum::<f64>() / pairs;
        (!levels.is_empty()).then_some(Self { levels, pairs: Some(similarities.len() as u64), mean })
    }

    /// Whether the pairs were measured.
    pub fn is_measured(&self) -> bool {
        self.pairs.is_some()
    }

    /// Returns the mean similarity.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the largest similarity.
    pub fn largest(&self) -> f64 {
        self.levels.last().map_or(0.0, |level| level.0)
    }

    /// Returns the quantile for `share`: this share of the pairs has the returned similarity or a lower one.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut so_far = 0.0;
        // Sums of shares may be a little too small because of rounding.
        let reached = |level: &&(f64, f64)| {
            so_far += level.1;
            so_far >= share - 1e-12
        };
        self.levels.iter().find(reached).map_or_else(|| self.largest(), |level| level.0)
    }

    /// Returns the share of the pairs that become candidates: the mean of the S-curve over the pairs.
    ///
    /// This is far above the value of the curve at the mean similarity. The curve grows with the r-th power, so the few
    /// most similar pairs produce most of the candidates.
    pub fn candidate_rate(&self, banding: Banding, shape: SignatureShape) -> f64 {
        self.levels.iter().map(|(jaccard, share)| share * candidate_probability(*jaccard, banding, shape)).sum()
    }

    /// Returns the standard error of [`candidate_rate`](Self::candidate_rate), which is estimated from a limited number
    /// of pairs; 0 if no pair was measured. If a single pair accounts for most of the rate, the error is as large as
    /// the rate.
    pub fn candidate_rate_error(&self, banding: Banding, shape: SignatureShape) -> f64 {
        let Some(pairs) = self.pairs else { return 0.0 };
        let mean = self.candidate_rate(banding, shape);
        let deviation =
            |(jaccard, share): &(f64, f64)| share * (candidate_probability(*jaccard, banding, shape) - mean).powi(2);
        (self.levels.iter().map(deviation).sum::<f64>() / pairs as f64).sqrt()
    }

    /// Returns the similarity at which this banding would have the same candidate rate if all pairs had this
    /// similarity.
    pub fn equivalent(&self, banding: Banding, shape: SignatureShape) -> f64 {
        match self.levels[..] {
            [(jaccard, _)] => jaccard,
            _ => similarity_at(self.candidate_rate(banding, shape), banding, shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K256: SignatureShape = SignatureShape { k: 256, bits: 8 };

    fn banding(bands: u32, rows: u32) -> Banding {
        Banding::new(bands, rows, K256).expect("fits")
    }

    #[test]
    fn equal_pairs_are_one_similarity() {
        let (one, many) = (Unrelated::alike(0.1), Unrelated::measured(&[0.1; 50]).expect("pairs"));
        for (bands, rows) in [(31, 8), (110, 2), (1, 1)] {
            let rate = candidate_probability(0.1, banding(bands, rows), K256);
            for unrelated in [&one, &many] {
                assert_eq!(unrelated.candidate_rate(banding(bands, rows), K256), rate);
                assert_eq!(unrelated.equivalent(banding(bands, rows), K256), 0.1);
                assert_eq!(unrelated.candidate_rate_error(banding(bands, rows), K256), 0.0);
            }
        }
        assert!(many.is_measured() && !one.is_measured());
        assert!((many.mean() - 0.1).abs() < 1e-12);
        assert_eq!((many.quantile(0.99), many.largest()), (0.1, 0.1));
        assert!(Unrelated::measured(&[]).is_none());
    }

    /// One pair in a thousand has a similarity of 0.5. The mean similarity hardly shows this, but this pair produces
    /// nearly all candidates.
    #[test]
    fn few_similar_pairs_make_most_candidates() {
        let mut similarities = vec![0.0; 999];
        similarities.push(0.5);
        let unrelated = Unrelated::measured(&similarities).expect("pairs");
        let banding = banding(31, 8);
        let rate = unrelated.candidate_rate(banding, K256);
        let of_one = candidate_probability(0.5, banding, K256) / 1000.0;
        assert!((rate / of_one - 1.0).abs() < 1e-9, "{rate} {of_one}");
        assert!((unrelated.mean() - 0.0005).abs() < 1e-12);
        assert_eq!((unrelated.quantile(0.999), unrelated.quantile(1.0)), (0.0, 0.5));
        assert!(rate > 1e9 * candidate_probability(unrelated.mean(), banding, K256), "the mean tells nothing");
        let error = unrelated.candidate_rate_error(banding, K256);
        assert!((error / rate - 1.0).abs() < 0.01, "it rests on one pair: {rate} ± {error}");
        let equivalent = unrelated.equivalent(banding, K256);
        assert!((candidate_probability(equivalent, banding, K256) / rate - 1.0).abs() < 1e-6, "{equivalent}");
    }

    #[test]
    fn similarities_are_rounded_up() {
        let unrelated = Unrelated::measured(&[0.123_41, 0.2, 0.999_99, 1.0]).expect("pairs");
        assert_eq!(unrelated.quantile(0.25), 0.1235);
        assert_eq!((unrelated.quantile(0.5), unrelated.quantile(0.75), unrelated.largest()), (0.2, 1.0, 1.0));
    }
}
