//! Two documents -> how alike they are: by their signatures, or by their shingles if these decide.
//! Knows nothing of where either is kept.

use hapax_core::{ShingleSet, Spec, tuning, verify};

use crate::types::{Method, Overlap, Similarity, Verify};

/// A document that others are compared with by their shingles, and from where on two are alike.
#[derive(Clone, Copy)]
pub(crate) struct ShingleQuery<'a> {
    set: &'a ShingleSet,
    threshold: f64,
}

impl<'a> ShingleQuery<'a> {
    /// Of a document with these shingles.
    pub(crate) fn new(set: &'a ShingleSet, threshold: f64) -> Self {
        Self { set, threshold }
    }

    /// From where on two are alike.
    pub(crate) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// How many distinct shingles it has.
    pub(crate) fn len(&self) -> u64 {
        self.set.len()
    }

    /// `J <= min / max`, so documents of too different sizes need not be compared.
    pub(crate) fn fits(&self, shingles: u64) -> bool {
        let len = self.set.len();
        verify::reaches(len.min(shingles), len.max(shingles), self.threshold)
    }

    /// What the two share; `None` if by their sizes alone they cannot be alike.
    pub(crate) fn compare(&self, other: &ShingleSet) -> Option<Overlap> {
        self.fits(other.len()).then(|| self.overlap(other))
    }

    /// What the two share.
    pub(crate) fn overlap(&self, other: &ShingleSet) -> Overlap {
        let both = self.set.compare(other).intersection;
        Overlap { both, query: self.set.len(), found: other.len() }
    }
}

/// Equal slots from which a candidate is a match, or survives to be compared exactly.
pub(crate) fn matching_min(verify: Verify, threshold: f64, spec: &Spec) -> u32 {
    match verify {
        Verify::Estimate => verify::matching_min(threshold, spec.shape()),
        Verify::Exact => tuning::survivor_min(threshold, spec.shape(), spec.sketch()),
    }
}

/// The one number for a pair, wherever it is asked for.
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
