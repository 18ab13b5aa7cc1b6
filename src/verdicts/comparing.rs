//! The similarity of two documents, computed from their signatures, or from their shingles if the shingles decide. This
//! file knows nothing of where documents are stored.

use std::cmp::Reverse;

use hapax_core::{ShingleSet, SignatureShape, Spec, tuning, verify};

use crate::types::{Method, Overlap, Similarity, Verify};

/// The numbers that decide whether a candidate is a match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Terms {
    /// The least similarity of two documents that count as duplicates.
    pub threshold: f64,
    /// A candidate with at least this number of equal slots is a match, or its shingles must be compared.
    pub matching_min: u32,
    /// A candidate with at least this number of equal slots is a match, without a comparison of shingles.
    pub certain_min: u32,
    verify: Verify,
    shape: SignatureShape,
}

impl Terms {
    pub(crate) fn new(verify: Verify, threshold: f64, spec: &Spec) -> Self {
        let (shape, sketch) = (spec.shape(), spec.sketch());
        let matching_min = match verify {
            Verify::Estimate => verify::matching_min(threshold, shape),
            Verify::Borderline | Verify::Exact => tuning::survivor_min(threshold, shape, sketch),
        };
        let certain_min = match verify {
            Verify::Estimate => matching_min,
            Verify::Borderline => tuning::certain_min(threshold, shape, sketch),
            Verify::Exact => u32::MAX,
        };
        Self { threshold, matching_min, certain_min, verify, shape }
    }

    /// Returns terms that every candidate meets.
    pub(crate) fn unverified(spec: &Spec) -> Self {
        Self { threshold: 0.0, matching_min: 0, certain_min: 0, verify: Verify::Estimate, shape: spec.shape() }
    }

    /// Whether shingles are compared, always or sometimes.
    pub(crate) fn compares_shingles(&self) -> bool {
        self.verify.compares_shingles()
    }

    /// Returns the similarity of a candidate, computed from the shingles if they have been compared.
    fn value(&self, matching: u32, overlap: Option<Overlap>) -> f64 {
        overlap.map_or_else(|| verify::similarity(matching, self.shape), |overlap| overlap.similarity().value)
    }

    /// Returns the rank of a match: the best one has the least rank. Matches of equal rank have the order of insertion.
    pub(crate) fn rank(&self, same_content: bool, matching: u32, overlap: Option<Overlap>) -> impl Ord + use<> {
        // A similarity is not negative, so its bits have the order of the values. Different fractions of shingles differ
        // as floating-point numbers, too: documents have far fewer than 2^26 shingles.
        (Reverse(same_content), Reverse(self.value(matching, overlap).to_bits()))
    }

    /// Whether two documents with this overlap are duplicates.
    pub(crate) fn reached_by(&self, overlap: Overlap) -> bool {
        verify::reaches(overlap.both, overlap.either(), self.threshold)
    }
}

/// The shingles of a document that is looked up, and the terms by which candidates are compared with it.
#[derive(Clone, Copy)]
pub(crate) struct ShingleQuery<'a> {
    set: &'a ShingleSet,
    terms: Terms,
}

impl<'a> ShingleQuery<'a> {
    /// Returns a query for a document with these shingles.
    pub(crate) fn new(set: &'a ShingleSet, terms: Terms) -> Self {
        Self { set, terms }
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the number of distinct shingles.
    pub(crate) fn len(&self) -> u64 {
        self.set.len()
    }

    /// Whether a document with `shingles` shingles can reach the threshold. `J <= min / max`, so documents of very
    /// different sizes need not be compared.
    pub(crate) fn fits(&self, shingles: u64) -> bool {
        let len = self.set.len();
        verify::reaches(len.min(shingles), len.max(shingles), self.terms.threshold)
    }

    /// Counts the shared shingles. `None`: the sizes alone show that the threshold cannot be reached.
    pub(crate) fn compare(&self, other: &ShingleSet) -> Option<Overlap> {
        self.fits(other.len()).then(|| self.overlap(other))
    }

    /// Counts the shared shingles.
    pub(crate) fn overlap(&self, other: &ShingleSet) -> Overlap {
        let both = self.set.compare(other).intersection;
        Overlap { both, query: self.set.len(), found: other.len() }
    }
}

/// Returns the similarity of a pair. All answers use this function, so their similarities agree.
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
