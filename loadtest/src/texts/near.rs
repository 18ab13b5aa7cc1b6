//! Two texts -> their exact Jaccard similarity, over the shingles that a collection with default settings makes of them.

use hapax_core::{Pipeline, ShingleSet, SignScratch, TextSpec};

/// The number of words in a shingle.
pub(super) const WINDOW: usize = 5;

/// Compares texts by their sets of shingles.
pub(crate) struct Nearness {
    pipeline: Pipeline,
    scratch: SignScratch,
}

impl Nearness {
    pub(crate) fn new() -> Self {
        let pipeline = Pipeline::new(&TextSpec::default(), None).expect("the default spec needs no secret");
        Self { pipeline, scratch: SignScratch::default() }
    }

    /// Returns the number of distinct shingles.
    pub(crate) fn shingles(&mut self, text: &str) -> u64 {
        self.set(text).len()
    }

    pub(crate) fn jaccard(&mut self, a: &str, b: &str) -> f64 {
        let (a, b) = (self.set(a), self.set(b));
        a.compare(&b).jaccard
    }

    fn set(&mut self, text: &str) -> ShingleSet {
        ShingleSet::new(self.pipeline.shingle_set(&mut self.scratch, text))
    }
}

/// Returns how many words of a text with this many shingles must change so that its similarity falls to `jaccard`. One
/// word changes `WINDOW` shingles, so m words leave a similarity of (n - 5m) / (n + 5m).
pub(crate) fn words_to_replace(shingles: u64, jaccard: f64) -> usize {
    (shingles as f64 * (1.0 - jaccard) / ((1.0 + jaccard) * WINDOW as f64)).round() as usize
}
