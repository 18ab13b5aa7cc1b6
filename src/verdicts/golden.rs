//! Evaluates the golden set. Labelled pairs of texts go through signing, the bands and verification, as if one text
//! were stored and the other checked. The report says how often the verdicts agree with the labels. Knows nothing of
//! where the pairs are stored.

use hapax_core::{BandKey, Banding, verify};

use super::comparing::{Terms, similarity};
use super::prepare::{Made, PrepareOptions, Preparer, Purpose};
use super::{CollectionError, Result, Settings};
use crate::types::{Content, GoldenPair, Overlap, Verify};

/// A report of how a collection's verdicts on its golden set agree with the labels.
#[derive(Clone, Debug)]
pub struct GoldenReport {
    pub banding: Banding,
    pub threshold: f64,
    pub verify: Verify,
    /// The counts of all pairs.
    pub all: GoldenStretch,
    /// The counts of each range of exact similarities, in the order of the ranges.
    pub stretches: Vec<GoldenStretch>,
    /// The pairs whose verdict differs from the label.
    pub failed: Vec<GoldenFailure>,
}

/// Counts of the pairs whose exact similarity is in one range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GoldenStretch {
    /// The least similarity.
    pub from: f64,
    /// The similarity at which the next range begins.
    pub to: f64,
    pub pairs: u64,
    /// The pairs that are labelled as duplicates.
    pub duplicates: u64,
    /// The pairs that a band proposed.
    pub proposed: u64,
    /// The pairs that were reported as duplicates.
    pub reported: u64,
    /// The pairs that are labelled as duplicates and were reported.
    pub found: u64,
    /// The sum of the differences: estimate minus exact similarity.
    error_sum: f64,
    error_abs_sum: f64,
}

/// A pair whose verdict differs from its label.
#[derive(Clone, Debug, PartialEq)]
pub struct GoldenFailure {
    /// Its place in the set, from 1.
    pub pair: u64,
    pub name: Option<String>,
    pub reason: GoldenReason,
    /// The estimate of the similarity.
    pub estimate: f64,
    /// The exact similarity.
    pub jaccard: f64,
}

/// Why a verdict differs from the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoldenReason {
    /// A duplicate that no band proposed.
    NotProposed,
    /// A duplicate that was proposed, but found to be below the threshold.
    BelowThreshold,
    /// A pair that is not labelled as a duplicate, but was reported.
    NotADuplicate,
}

impl GoldenReason {
    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotProposed => "not_proposed",
            Self::BelowThreshold => "below_threshold",
            Self::NotADuplicate => "not_a_duplicate",
        }
    }
}

impl GoldenReport {
    /// The maximum number of pairs of a set, and the maximum number of bytes of its texts. With these limits, an
    /// evaluation takes well under a second.
    pub const PAIRS_MAX: usize = 1000;
    pub const BYTES_MAX: usize = 4 << 20;
    /// The least similarity of each range.
    const STRETCHES: [f64; 9] = [0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

    fn new(settings: &Settings, pairs: &[GoldenPair], judged: &[Judged]) -> Self {
        let both: Vec<(&GoldenPair, &Judged)> = pairs.iter().zip(judged).collect();
        let ends = Self::STRETCHES[1..].iter().copied().chain([1.0]);
        let stretches = Self::STRETCHES.iter().zip(ends).map(|(&from, to)| {
            let inside = |judged: &Judged| judged.jaccard >= from && (judged.jaccard < to || to == 1.0);
            GoldenStretch::of((from, to), both.iter().filter(|(_, judged)| inside(judged)).copied())
        });
        let failed = (1u64..).zip(&both).filter_map(|(number, (pair, judged))| {
            let reason = judged.differs_from(pair.duplicate)?;
            let &Judged { estimate, jaccard, .. } = *judged;
            Some(GoldenFailure { pair: number, name: pair.name.clone(), reason, estimate, jaccard })
        });
        Self {
            banding: settings.banding,
            threshold: settings.threshold,
            verify: settings.verify,
            all: GoldenStretch::of((0.0, 1.0), both.iter().copied()),
            stretches: stretches.collect(),
            failed: failed.collect(),
        }
    }
}

impl GoldenStretch {
    /// The share of labelled duplicates that was reported; `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        (self.duplicates > 0).then(|| self.found as f64 / self.duplicates as f64)
    }

    /// The share of reported pairs that are labelled as duplicates; `None` if none was reported.
    pub fn precision(&self) -> Option<f64> {
        (self.reported > 0).then(|| self.found as f64 / self.reported as f64)
    }

    /// The mean of the estimate minus the exact similarity; `None` without pairs.
    pub fn error_mean(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.error_sum / self.pairs as f64)
    }

    /// The mean distance between the estimate and the exact similarity; `None` without pairs.
    pub fn error_abs_mean(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.error_abs_sum / self.pairs as f64)
    }

    fn of<'a>((from, to): (f64, f64), pairs: impl Iterator<Item = (&'a GoldenPair, &'a Judged)>) -> Self {
        pairs.fold(Self { from, to, ..Self::default() }, |sum, (pair, judged)| Self {
            from,
            to,
            pairs: sum.pairs + 1,
            duplicates: sum.duplicates + u64::from(pair.duplicate),
            proposed: sum.proposed + u64::from(judged.proposed),
            reported: sum.reported + u64::from(judged.reported),
            found: sum.found + u64::from(pair.duplicate && judged.reported),
            error_sum: sum.error_sum + judged.estimate - judged.jaccard,
            error_abs_sum: sum.error_abs_sum + (judged.estimate - judged.jaccard).abs(),
        })
    }
}

/// The verdict of a collection on a pair.
struct Judged {
    proposed: bool,
    reported: bool,
    estimate: f64,
    jaccard: f64,
}

impl Judged {
    /// Returns why this verdict differs from the label, if it does.
    fn differs_from(&self, duplicate: bool) -> Option<GoldenReason> {
        match (duplicate, self.reported) {
            (true, false) if self.proposed => Some(GoldenReason::BelowThreshold),
            (true, false) => Some(GoldenReason::NotProposed),
            (false, true) => Some(GoldenReason::NotADuplicate),
            (true, true) | (false, false) => None,
        }
    }
}

/// Evaluates a golden set under these settings. Takes up to a second, so it must not run on an async thread. `pause` is
/// called after each pair.
pub(crate) fn evaluate(
    preparer: &Preparer,
    settings: &Settings,
    pairs: &[GoldenPair],
    pause: impl Fn(),
) -> Result<GoldenReport> {
    let mut judged = Vec::with_capacity(pairs.len());
    let terms = Terms::new(settings.verify, settings.threshold, &settings.spec);
    for (number, pair) in (1u64..).zip(pairs) {
        let side = |field: &str, text: &str| {
            let options = PrepareOptions { purpose: Purpose::Compare, ..PrepareOptions::default() };
            let content = Content::Text(text.to_owned());
            let prepared = preparer.prepare_here(content, options, settings.verify).map_err(of_the_pairs)?;
            prepared.into_parts().0.ok_or_else(|| CollectionError::Invalid {
                field: "pairs",
                detail: format!("`{field}` of pair {number} has no shingle to compare"),
            })
        };
        let (a, b) = (side("a", &pair.a)?, side("b", &pair.b)?);
        judged.push(judge(settings, &terms, &a, &b));
        pause();
    }
    Ok(GoldenReport::new(settings, pairs, &judged))
}

/// Changes an error to name the field that contains the pairs.
fn of_the_pairs(error: CollectionError) -> CollectionError {
    match error {
        CollectionError::Invalid { detail, .. } => CollectionError::Invalid { field: "pairs", detail },
        other => other,
    }
}

fn judge(settings: &Settings, terms: &Terms, a: &Made, b: &Made) -> Judged {
    let (spec, shape) = (&settings.spec, settings.spec.shape());
    let matching = verify::matching_slots(&a.signature, &b.signature, shape);
    let same_content = a.content.is_some() && a.content == b.content;
    let keys = |made: &Made| -> Vec<BandKey> { settings.banding.keys(&made.signature, shape).collect() };
    // Equal contents have equal signatures.
    let proposed = keys(a).into_iter().zip(keys(b)).any(|(a, b)| a == b);
    let overlap = overlap(a, b);
    let matches = matching >= terms.certain_min || matching >= terms.matching_min && terms.reached_by(overlap);
    Judged {
        proposed,
        reported: same_content || proposed && matches,
        estimate: similarity(spec, matching, same_content, None).value,
        jaccard: overlap.similarity().value,
    }
}

/// Counts the shared shingles. Both documents were prepared for a comparison, so both have shingles.
fn overlap(a: &Made, b: &Made) -> Overlap {
    let (a, b) = [a, b].map(|made| &made.kept.as_ref().expect("a comparison collects shingles").set).into();
    Overlap { both: a.compare(b).intersection, query: a.len(), found: b.len() }
}
