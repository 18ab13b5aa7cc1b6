//! Targets -> banding. All choices are made here: a new collection, `tune` on the command line and `/v1/tune` all use
//! [`choose_among`], so they cannot disagree.

use super::probability::candidate_probability;
use super::unrelated::Unrelated;
use crate::band::Banding;
use crate::spec::SignatureShape;

/// The requested targets for a banding. If a target is absent, the default in the comment of its field applies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The minimum of P(candidate) at `s_hi`. Default: 0.99.
    pub recall: Option<f64>,
    /// The Jaccard similarity of pairs that must be found. Default: the threshold, but at most 0.8. A request may use a
    /// lower threshold than the collection's, and bands made for 0.8 are cheap.
    pub s_hi: Option<f64>,
    /// The Jaccard similarity of pairs that are wasted work. Their candidate rate is minimised. Default: `s_hi` minus
    /// 0.2.
    pub s_lo: Option<f64>,
    /// The number of bands to use if there are enough slots, even if `recall` needs fewer. Default: 31.
    pub bands_wanted: Option<u32>,
    /// The largest number of candidates that documents of similarity `s_bg` may add to one lookup. Default: no limit.
    pub candidates_max: Option<f64>,
    /// The number of stored documents. Default: 10 million.
    pub documents: Option<f64>,
    /// The Jaccard similarity of unrelated documents. Default: 0.1.
    pub s_bg: Option<f64>,
}

impl Asked {
    /// Returns the targets, with the defaults for this threshold in place of absent ones.
    pub fn targets(self, threshold: f64) -> Targets {
        let s_hi = self.s_hi.unwrap_or_else(|| threshold.min(0.8));
        Targets {
            recall: self.recall.unwrap_or(0.99),
            s_hi,
            // The default is rounded, so that 0.8 - 0.2 is the same as an explicit 0.6.
            s_lo: self.s_lo.unwrap_or_else(|| ((s_hi - 0.2) * 1e9).round().max(0.0) / 1e9),
            bands_wanted: self.bands_wanted.unwrap_or(31),
            candidates_max: self.candidates_max.unwrap_or(f64::INFINITY),
            documents: self.documents.unwrap_or(1e7),
            s_bg: self.s_bg.unwrap_or(0.1),
        }
    }

    /// Whether the caller gave a target that may be impossible to meet.
    fn is_binding(self) -> bool {
        self.recall.is_some() || self.s_hi.is_some() || self.candidates_max.is_some()
    }
}

/// The targets that a banding must meet.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The minimum of P(candidate) at `s_hi`.
    pub recall: f64,
    /// The Jaccard similarity of pairs that must be found.
    pub s_hi: f64,
    /// The Jaccard similarity of pairs that are wasted work. Their candidate rate is minimised.
    pub s_lo: f64,
    /// The number of bands to use if the slots and `candidates_max` allow it, even if `recall` needs fewer. Each band
    /// finds more pairs, and costs every document an entry in the index.
    pub bands_wanted: u32,
    /// The largest number of candidates that documents of similarity `s_bg` may add to one lookup.
    pub candidates_max: f64,
    /// The number of stored documents.
    pub documents: f64,
    /// The Jaccard similarity of unrelated documents.
    pub s_bg: f64,
}

/// A banding and its expected results.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The banding.
    pub banding: Banding,
    /// The targets that it was chosen for.
    pub targets: Targets,
    /// P(candidate) at `s_hi`.
    pub recall_at_s_hi: f64,
    /// P(candidate) at `s_lo`.
    pub candidate_rate_at_s_lo: f64,
    /// The number of unrelated candidates in one lookup.
    pub background_candidates: f64,
}

/// The data that the choice of a banding depends on.
#[derive(Clone, Copy)]
struct Scales<'a> {
    targets: Targets,
    shape: SignatureShape,
    unrelated: &'a Unrelated,
}

impl Scales<'_> {
    fn weigh(self, bands: u32, rows: u32) -> Choice {
        let Self { targets, shape, unrelated } = self;
        let banding = Banding::new(bands, rows, shape).expect("bands times rows is at most k");
        let rate = |jaccard| candidate_probability(jaccard, banding, shape);
        Choice {
            banding,
            targets,
            recall_at_s_hi: rate(targets.s_hi),
            candidate_rate_at_s_lo: rate(targets.s_lo),
            background_candidates: targets.documents * unrelated.candidate_rate(banding, shape),
        }
    }

    fn weigh_all(self) -> impl Iterator<Item = Choice> {
        let k = self.shape.k;
        (1..=k)
            .flat_map(move |rows| (1..=k / rows).map(move |bands| (bands, rows)))
            .map(move |(bands, rows)| self.weigh(bands, rows))
    }
}

impl Choice {
    fn finds(&self) -> bool {
        self.recall_at_s_hi >= self.targets.recall
    }

    fn is_affordable(&self) -> bool {
        self.background_candidates <= self.targets.candidates_max
    }
}

/// An error that names a target that cannot be met, and the best value that is possible.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoBanding(pub String);

/// Chooses the banding for signatures of this shape, compared at this threshold.
///
/// Among the bandings that meet the targets, this finds the one with the fewest candidates at `s_lo`, and uses its
/// number of rows. Then it adds bands up to `bands_wanted`, if the slots and the limit on candidates allow them. If no
/// target is given and the defaults cannot be met (at very low thresholds), it takes the banding that finds the most
/// pairs.
pub fn choose(asked: Asked, threshold: f64, shape: SignatureShape) -> Result<Choice, NoBanding> {
    choose_among(asked, threshold, shape, &Unrelated::alike(asked.targets(threshold).s_bg))
}

/// Like [`choose`], but counts unrelated candidates with these similarities instead of `s_bg`.
pub fn choose_among(
    asked: Asked,
    threshold: f64,
    shape: SignatureShape,
    unrelated: &Unrelated,
) -> Result<Choice, NoBanding> {
    let scales = Scales { targets: asked.targets(threshold), shape, unrelated };
    check(&scales.targets)?;
    match cheapest_of(scales) {
        Some(least) => Ok(with_bands_wanted(least, scales)),
        // Bands of one row find the most pairs.
        None if !asked.is_binding() => Ok(scales.weigh(shape.k, 1)),
        None => Err(unmet(scales)),
    }
}

/// Returns what a banding achieves, measured by the targets. It need not meet them.
pub fn weigh(asked: Asked, threshold: f64, shape: SignatureShape, banding: Banding) -> Result<Choice, NoBanding> {
    let targets = asked.targets(threshold);
    check(&targets)?;
    Ok(Scales { targets, shape, unrelated: &Unrelated::alike(targets.s_bg) }.weigh(banding.bands(), banding.rows()))
}

/// Returns the banding that meets the targets with the fewest candidates at `s_lo`. If several bandings have equally
/// few candidates, it is the one with the fewest bands.
pub(super) fn cheapest(targets: Targets, shape: SignatureShape) -> Option<Choice> {
    cheapest_of(Scales { targets, shape, unrelated: &Unrelated::alike(targets.s_bg) })
}

fn cheapest_of(scales: Scales<'_>) -> Option<Choice> {
    let work = |choice: &Choice| (choice.candidate_rate_at_s_lo, choice.banding.bands());
    // With the same rows, more bands find more pairs at every similarity, so only the smallest sufficient number of
    // bands is considered. Trying all numbers would take milliseconds for the largest signatures, on the thread that
    // answers a PUT.
    (1..=scales.shape.k)
        .filter_map(|rows| fewest_bands(rows, scales))
        .filter(Choice::is_affordable)
        .min_by(|a, b| work(a).partial_cmp(&work(b)).expect("probabilities are numbers"))
}

fn fewest_bands(rows: u32, scales: Scales<'_>) -> Option<Choice> {
    let (mut short, mut enough) = (0, scales.shape.k / rows);
    if !scales.weigh(enough, rows).finds() {
        return None;
    }
    while short + 1 < enough {
        let middle = short.midpoint(enough);
        if scales.weigh(middle, rows).finds() { enough = middle } else { short = middle }
    }
    Some(scales.weigh(enough, rows))
}

fn with_bands_wanted(least: Choice, scales: Scales<'_>) -> Choice {
    let (bands, rows) = (least.banding.bands(), least.banding.rows());
    let most = scales.targets.bands_wanted.min(scales.shape.k / rows);
    (bands + 1..=most).rev().map(|bands| scales.weigh(bands, rows)).find(Choice::is_affordable).unwrap_or(least)
}

fn unmet(scales: Scales<'_>) -> NoBanding {
    let Scales { targets, shape, unrelated } = scales;
    let most_recall = |choices: &mut dyn Iterator<Item = Choice>| {
        choices.max_by(|a, b| a.recall_at_s_hi.total_cmp(&b.recall_at_s_hi))
    };
    let name = |choice: &Choice| format!("{}x{}", choice.banding.bands(), choice.banding.rows());
    let Targets { recall, s_hi, s_bg, candidates_max, documents, .. } = targets;
    let fewest = scales
        .weigh_all()
        .filter(Choice::finds)
        .min_by(|a, b| a.background_candidates.total_cmp(&b.background_candidates));
    let Some(fewest) = fewest else {
        let best = most_recall(&mut scales.weigh_all()).expect("k is at least 1");
        return NoBanding(format!(
            "no banding of k={} slots reaches recall {recall} at similarity {s_hi}: the best reaches {:.4}, with {}",
            shape.k,
            best.recall_at_s_hi,
            name(&best)
        ));
    };
    let most = most_recall(&mut scales.weigh_all().filter(Choice::is_affordable)).map_or(String::new(), |most| {
        format!("; the best recall within this limit is {:.4}, with {}", most.recall_at_s_hi, name(&most))
    });
    let alike = match unrelated.is_measured() {
        true => "as similar as those of the sample".to_owned(),
        false => format!("at background similarity {s_bg}"),
    };
    NoBanding(format!(
        "no banding with recall {recall} at similarity {s_hi} stays within candidates_max {candidates_max}: \
         {documents} documents {alike} add at least {:.4} candidates to a lookup, with {}{most}",
        fewest.background_candidates,
        name(&fewest)
    ))
}

fn check(targets: &Targets) -> Result<(), NoBanding> {
    let Targets { recall, s_hi, s_lo, bands_wanted: _, candidates_max, documents, s_bg } = *targets;
    for (name, value) in [("recall", recall), ("s_hi", s_hi), ("s_lo", s_lo), ("s_bg", s_bg)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(NoBanding(format!("{name} must be between 0 and 1, not {value}")));
        }
    }
    if s_lo > s_hi {
        return Err(NoBanding(format!("s_lo ({s_lo}) must be at most s_hi ({s_hi})")));
    }
    if !(documents.is_finite() && documents >= 0.0) {
        return Err(NoBanding(format!("documents must be 0 or more, not {documents}")));
    }
    if candidates_max.is_nan() || candidates_max < 0.0 {
        return Err(NoBanding(format!("candidates_max must be 0 or more, not {candidates_max}")));
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
                    let other = Banding::new(bands, rows, shape).expect("fits");
                    if candidate_probability(0.8, other, shape) >= 0.99
                        && 1e6 * candidate_probability(0.1, other, shape) <= 100.0
                    {
                        let work = candidate_probability(0.5, other, shape);
                        assert!(work >= choice.candidate_rate_at_s_lo, "{bands}x{rows} is better at k={k}");
                    }
                }
            }
        }
        // At s_lo = s_hi = 1 every banding has rate 1, so the choice is the banding with the fewest bands.
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

    /// With the measured pairs, the choice stays within `candidates_max`. Their mean similarity alone would allow
    /// bandings that propose many more candidates.
    #[test]
    fn measured_pairs_take_the_place_of_s_bg() {
        let mut similarities = vec![0.01; 10_000];
        similarities[..20].fill(0.45);
        let unrelated = Unrelated::measured(&similarities).expect("pairs");
        let asked = Asked { recall: Some(0.9), candidates_max: Some(16.0), documents: Some(1e6), ..Asked::default() };
        let choose = |asked| choose_among(asked, 0.8, K256, &unrelated);
        let choice = choose(asked).expect("reachable");
        let counted = 1e6 * unrelated.candidate_rate(choice.banding, K256);
        assert_eq!(choice.background_candidates, counted);
        assert!(counted <= 16.0 && choice.recall_at_s_hi >= 0.9, "{choice:?}");
        let of_the_mean = chosen(Asked { s_bg: Some(unrelated.mean()), ..asked }, K256);
        assert!(1e6 * unrelated.candidate_rate(of_the_mean.banding, K256) > 16.0, "{of_the_mean:?}");
        let impossible = choose(Asked { candidates_max: Some(0.1), ..asked }).expect_err("too few");
        assert!(impossible.0.contains("as similar as those of the sample"), "{impossible}");
        let alike = Unrelated::alike(0.1);
        let same = choose_among(Asked::default(), 0.8, K256, &alike).expect("reachable");
        assert_eq!(same.banding, chosen(Asked::default(), K256).banding);
    }

    #[test]
    fn an_unreachable_target_is_named_with_what_is_reachable() {
        let shape = SignatureShape { k: 64, bits: 8 };
        let message = |asked| choose(asked, 0.8, shape).expect_err("unreachable").0;
        let recall = message(Asked { s_hi: Some(0.01), s_lo: Some(0.0), ..ASKED });
        assert!(
            recall.contains("recall 0.99") && recall.contains("the best reaches 0.59") && recall.contains("64x1"),
            "{recall}"
        );
        let candidates = message(Asked { documents: Some(1e12), candidates_max: Some(0.5), ..ASKED });
        assert!(candidates.contains("candidates_max 0.5") && candidates.contains("at least"), "{candidates}");
        assert!(candidates.contains("the best recall within this limit is 0."), "{candidates}");
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
