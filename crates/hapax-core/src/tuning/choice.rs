//! Targets -> banding. The one place that chooses: a new collection's banding, `tune` on the command line and
//! `/v1/tune` all come from [`choose`], so they cannot disagree.

use super::probability::candidate_probability;
use crate::band::Banding;
use crate::spec::SignatureShape;

/// What is asked of a banding. An absent target has the default that its field names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Least P(candidate) at `s_hi`; 0.99.
    pub recall: Option<f64>,
    /// Jaccard similarity of pairs that must be found; the threshold, but at most 0.8. A request may ask for less than
    /// the collection's threshold, and bands made for 0.8 cost little as it is.
    pub s_hi: Option<f64>,
    /// Jaccard similarity of pairs that are wasted work: their candidate rate is made least; `s_hi` less 0.2.
    pub s_lo: Option<f64>,
    /// Bands to have if the slots allow, even if `recall` needs fewer; 31.
    pub bands_wanted: Option<u32>,
    /// Most candidates that documents of similarity `s_bg` may add to one lookup; no limit.
    pub candidates_max: Option<f64>,
    /// Documents held; 10 million.
    pub documents: Option<f64>,
    /// Jaccard similarity of unrelated documents; 0.1.
    pub s_bg: Option<f64>,
}

impl Asked {
    /// With the defaults for this threshold in place of what is absent.
    pub fn targets(self, threshold: f64) -> Targets {
        let s_hi = self.s_hi.unwrap_or_else(|| threshold.min(0.8));
        Targets {
            recall: self.recall.unwrap_or(0.99),
            s_hi,
            // Rounded, so that 0.6 spelled out is the same as 0.8 less 0.2.
            s_lo: self.s_lo.unwrap_or_else(|| ((s_hi - 0.2) * 1e9).round().max(0.0) / 1e9),
            bands_wanted: self.bands_wanted.unwrap_or(31),
            candidates_max: self.candidates_max.unwrap_or(f64::INFINITY),
            documents: self.documents.unwrap_or(1e7),
            s_bg: self.s_bg.unwrap_or(0.1),
        }
    }

    /// Whether something is asked for that there may be no banding for.
    fn is_binding(self) -> bool {
        self.recall.is_some() || self.s_hi.is_some() || self.candidates_max.is_some()
    }
}

/// What a banding must do.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// Least P(candidate) at `s_hi`.
    pub recall: f64,
    /// Jaccard similarity of pairs that must be found.
    pub s_hi: f64,
    /// Jaccard similarity of pairs that are wasted work: their candidate rate is made least.
    pub s_lo: f64,
    /// Bands to have if the slots and `candidates_max` allow, even if `recall` needs fewer. Each finds more, and costs
    /// every document an entry in the index.
    pub bands_wanted: u32,
    /// Most candidates that documents of similarity `s_bg` may add to one lookup.
    pub candidates_max: f64,
    /// Documents held.
    pub documents: f64,
    /// Jaccard similarity of unrelated documents.
    pub s_bg: f64,
}

/// A banding and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The banding.
    pub banding: Banding,
    /// What it was chosen for.
    pub targets: Targets,
    /// P(candidate) at `s_hi`.
    pub recall_at_s_hi: f64,
    /// P(candidate) at `s_lo`.
    pub candidate_rate_at_s_lo: f64,
    /// Candidates of similarity `s_bg` in one lookup.
    pub background_candidates: f64,
}

impl Choice {
    fn of(banding: Banding, targets: Targets, shape: SignatureShape) -> Self {
        let rate = |jaccard| candidate_probability(jaccard, banding, shape);
        Self {
            banding,
            targets,
            recall_at_s_hi: rate(targets.s_hi),
            candidate_rate_at_s_lo: rate(targets.s_lo),
            background_candidates: targets.documents * rate(targets.s_bg),
        }
    }

    fn finds(&self) -> bool {
        self.recall_at_s_hi >= self.targets.recall
    }

    fn is_affordable(&self) -> bool {
        self.background_candidates <= self.targets.candidates_max
    }
}

/// Which target cannot be met, and what can be had instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoBanding(pub String);

/// The banding for signatures of this shape, compared at this threshold.
///
/// Of the bandings that meet the targets, the rows of the one with the fewest candidates at `s_lo`; then as many bands
/// of these rows as are wanted. If nothing is asked for and the defaults cannot be met (at very low thresholds), the
/// banding that finds the most.
pub fn choose(asked: Asked, threshold: f64, shape: SignatureShape) -> Result<Choice, NoBanding> {
    let targets = asked.targets(threshold);
    check(&targets)?;
    match cheapest(targets, shape) {
        Some(least) => Ok(with_bands_wanted(least, shape)),
        // One row a band proposes the most.
        None if !asked.is_binding() => Ok(Choice::of(banding(shape.k, 1, shape), targets, shape)),
        None => Err(unmet(targets, shape)),
    }
}

/// The banding that meets the targets with the fewest candidates at `s_lo`; of equals the one with fewer bands.
pub(super) fn cheapest(targets: Targets, shape: SignatureShape) -> Option<Choice> {
    let work = |choice: &Choice| (choice.candidate_rate_at_s_lo, choice.banding.bands());
    // More bands of the same rows propose more of everything, so only the fewest that find enough count. To try all
    // would take milliseconds for the largest signatures, on the thread that answers a PUT.
    (1..=shape.k)
        .filter_map(|rows| fewest_bands(rows, targets, shape))
        .filter(Choice::is_affordable)
        .min_by(|a, b| work(a).partial_cmp(&work(b)).expect("probabilities are numbers"))
}

fn fewest_bands(rows: u32, targets: Targets, shape: SignatureShape) -> Option<Choice> {
    let choice = |bands| Choice::of(banding(bands, rows, shape), targets, shape);
    let (mut short, mut enough) = (0, shape.k / rows);
    if !choice(enough).finds() {
        return None;
    }
    while short + 1 < enough {
        let middle = short.midpoint(enough);
        if choice(middle).finds() { enough = middle } else { short = middle }
    }
    Some(choice(enough))
}

fn with_bands_wanted(least: Choice, shape: SignatureShape) -> Choice {
    let (bands, rows) = (least.banding.bands(), least.banding.rows());
    let most = least.targets.bands_wanted.min(shape.k / rows);
    (bands + 1..=most)
        .rev()
        .map(|bands| Choice::of(banding(bands, rows, shape), least.targets, shape))
        .find(Choice::is_affordable)
        .unwrap_or(least)
}

fn all(targets: Targets, shape: SignatureShape) -> impl Iterator<Item = Choice> {
    (1..=shape.k)
        .flat_map(move |rows| (1..=shape.k / rows).map(move |bands| (bands, rows)))
        .map(move |(bands, rows)| Choice::of(banding(bands, rows, shape), targets, shape))
}

fn banding(bands: u32, rows: u32, shape: SignatureShape) -> Banding {
    Banding::new(bands, rows, shape).expect("bands times rows is at most k")
}

fn unmet(targets: Targets, shape: SignatureShape) -> NoBanding {
    let most_recall = |choices: &mut dyn Iterator<Item = Choice>| {
        choices.max_by(|a, b| a.recall_at_s_hi.total_cmp(&b.recall_at_s_hi))
    };
    let name = |choice: &Choice| format!("{}x{}", choice.banding.bands(), choice.banding.rows());
    let Targets { recall, s_hi, s_bg, candidates_max, documents, .. } = targets;
    let fewest = all(targets, shape)
        .filter(Choice::finds)
        .min_by(|a, b| a.background_candidates.total_cmp(&b.background_candidates));
    let Some(fewest) = fewest else {
        let best = most_recall(&mut all(targets, shape)).expect("k is at least 1");
        return NoBanding(format!(
            "recall {recall} at similarity {s_hi} cannot be reached with k={}: the most is {:.4}, by {}",
            shape.k,
            best.recall_at_s_hi,
            name(&best)
        ));
    };
    let most = most_recall(&mut all(targets, shape).filter(Choice::is_affordable)).map_or(String::new(), |most| {
        format!(", or the most recall within {candidates_max} is {:.4}, by {}", most.recall_at_s_hi, name(&most))
    });
    NoBanding(format!(
        "candidates_max {candidates_max} cannot be kept with recall {recall} at similarity {s_hi}: {documents} documents \
         at background similarity {s_bg} propose at least {:.4} a lookup, by {}{most}",
        fewest.background_candidates,
        name(&fewest)
    ))
}

fn check(targets: &Targets) -> Result<(), NoBanding> {
    let Targets { recall, s_hi, s_lo, bands_wanted: _, candidates_max, documents, s_bg } = *targets;
    for (name, value) in [("recall", recall), ("s_hi", s_hi), ("s_lo", s_lo), ("s_bg", s_bg)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(NoBanding(format!("{name} must be from 0 to 1, not {value}")));
        }
    }
    if s_lo > s_hi {
        return Err(NoBanding(format!("s_lo ({s_lo}) must be at most s_hi ({s_hi})")));
    }
    if !(documents.is_finite() && documents >= 0.0) {
        return Err(NoBanding(format!("documents must be a number from 0, not {documents}")));
    }
    if candidates_max.is_nan() || candidates_max < 0.0 {
        return Err(NoBanding(format!("candidates_max must be a number from 0, not {candidates_max}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const K256: SignatureShape = SignatureShape { k: 256, bits: 8 };

    const ASKED: Asked = Asked {
        recall: Some(0.99),
        s_hi: Some(0.8),
        s_lo: Some(0.5),
        bands_wanted: Some(0),
        candidates_max: Some(100.0),
        documents: Some(1e6),
        s_bg: Some(0.1),
    };

    fn chosen(asked: Asked, shape: SignatureShape) -> Choice {
        choose(asked, 0.8, shape).expect("reachable")
    }

    #[test]
    fn the_choice_meets_its_targets_with_the_least_work() {
        for k in [128, 256] {
            let shape = SignatureShape { k, bits: 8 };
            let choice = chosen(ASKED, shape);
            assert!(choice.recall_at_s_hi >= 0.99 && choice.background_candidates <= 100.0);
            for rows in 1..=k {
                for bands in 1..=k / rows {
                    let other = banding(bands, rows, shape);
                    if candidate_probability(0.8, other, shape) >= 0.99
                        && 1e6 * candidate_probability(0.1, other, shape) <= 100.0
                    {
                        let work = candidate_probability(0.5, other, shape);
                        assert!(work >= choice.candidate_rate_at_s_lo, "{bands}x{rows} is better at k={k}");
                    }
                }
            }
        }
        // At s_lo = s_hi = 1 every banding has rate 1: the fewest bands win.
        let equal = chosen(Asked { s_hi: Some(1.0), s_lo: Some(1.0), ..ASKED }, K256);
        assert_eq!(equal.banding.bands(), 1);
    }

    #[test]
    fn bands_beyond_those_that_recall_needs_are_added_while_there_is_room() {
        let bands = |asked: Asked, k| {
            let banding = chosen(asked, SignatureShape { k, bits: 8 }).banding;
            (banding.bands(), banding.rows())
        };
        assert_eq!(bands(ASKED, 256), (25, 8), "what recall needs");
        assert_eq!(bands(Asked { bands_wanted: Some(31), ..ASKED }, 256), (31, 8));
        assert_eq!(bands(Asked { bands_wanted: Some(1000), ..ASKED }, 256), (32, 8), "as many as the slots allow");
        let costly = |documents| Asked { documents: Some(documents), bands_wanted: Some(31), ..ASKED };
        let dear = chosen(costly(260e6), K256);
        assert!((25..31).contains(&dear.banding.bands()) && dear.is_affordable(), "{dear:?}");
        let all_targets_are_defaults = Asked { candidates_max: None, documents: None, s_lo: None, ..Asked::default() };
        assert_eq!(bands(all_targets_are_defaults, 256), (31, 8));
    }

    #[test]
    fn an_unreachable_target_is_named_with_what_is_reachable() {
        let shape = SignatureShape { k: 64, bits: 8 };
        let message = |asked| choose(asked, 0.8, shape).expect_err("unreachable").0;
        let recall = message(Asked { s_hi: Some(0.01), s_lo: Some(0.0), ..ASKED });
        assert!(
            recall.contains("recall 0.99") && recall.contains("the most is 0.59") && recall.contains("64x1"),
            "{recall}"
        );
        let candidates = message(Asked { documents: Some(1e12), candidates_max: Some(0.5), ..ASKED });
        assert!(candidates.contains("candidates_max 0.5") && candidates.contains("at least"), "{candidates}");
        assert!(candidates.contains("the most recall within 0.5 is 0."), "{candidates}");
        for (wrong, name) in [
            (Asked { recall: Some(1.5), ..ASKED }, "recall"),
            (Asked { s_hi: Some(f64::NAN), ..ASKED }, "s_hi"),
            (Asked { s_lo: Some(0.9), ..ASKED }, "s_lo"),
            (Asked { s_bg: Some(-0.1), ..ASKED }, "s_bg"),
            (Asked { documents: Some(f64::INFINITY), ..ASKED }, "documents"),
            (Asked { candidates_max: Some(f64::NAN), ..ASKED }, "candidates_max"),
        ] {
            assert!(message(wrong).contains(name));
        }
        assert!(choose(Asked::default(), 0.01, shape).is_ok(), "defaults always have an answer");
    }
}
