//! The similarity of two documents, from their signatures or, if these decide, from their shingles. It knows nothing of
//! where documents are stored.

use hapax_core::{ShingleSet, Spec, tuning, verify};

use crate::types::{Method, Overlap, Similarity, Verify};

/// The shingles of a document that others are compared with, and the threshold.
#[derive(Clone, Copy)]
pub(crate) struct ShingleQuery<'a> {
    set: &'a ShingleSet,
    threshold: f64,
}

impl<'a> ShingleQuery<'a> {
    /// Returns a query for a document with these shingles.
    pub(crate) fn new(set: &'a ShingleSet, threshold: f64) -> Self {
        Self { set, threshold }
    }

    /// The similarity from which two documents are duplicates.
    pub(crate) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Returns the number of distinct shingles.
    pub(crate) fn len(&self) -> u64 {
        self.set.len()
    }

    /// Whether a document with so many shingles can reach the threshold: `J <= min / max`, so documents of very
    /// different sizes need not be compared.
    pub(crate) fn fits(&self, shingles: u64) -> bool {
        let len = self.set.len();
        verify::reaches(len.min(shingles), len.max(shingles), self.threshold)
    }

    /// Counts the shared shingles. `None`: the sizes alone rule out that the threshold is reached.
    pub(crate) fn compare(&self, other: &ShingleSet) -> Option<Overlap> {
        self.fits(other.len()).then(|| self.overlap(other))
    }

    /// Counts the shared shingles.
    pub(crate) fn overlap(&self, other: &ShingleSet) -> Overlap {
        let both = self.set.compare(other).intersection;
        Overlap { both, query: self.set.len(), found: other.len() }
    }
}

/// Returns the number of equal slots from which a candidate is a match, or must be compared exactly.
pub(crate) fn matching_min(verify: Verify, threshold: f64, spec: &Spec) -> u32 {
    match verify {
        Verify::Estimate => verify::matching_min(threshold, spec.shape()),
        Verify::Exact => tuning::survivor_min(threshold, spec.shape(), spec.sketch()),
    }
}

/// Returns the similarity of a pair. Every answer takes it from here, so it is the same in all of them.
pub(crate) fn similarity(spec: &Spec, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Similarity {
    if same_content {
        return Similarity { value: 1.0, low: 1.0, high: 1.0, method: Method::Exact };
    }
    if let Some(overlap) = overlap {
        return overlap.similarity();
    }
    let (low, high) = verify::interval95(matching, spec.shape(), spec.sketch());
    Similarity { value: verify::similarity(matching, spec.shape()), low, high, method: Method::Estimate }
}
