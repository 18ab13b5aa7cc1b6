//! The verdicts of several collections on one document -> one answer. For a check, the matches of all collections are
//! in one list, the best first. For an insertion, the answer has the verdict of the document's own collection, and the
//! matches in other collections are a second list. The opinion of a collection is its verdict without the matches.
//! Knows nothing of collections except their names.

use std::iter::Peekable;

use super::error::{CollectionError, Result};
use crate::types::{
    CollectionName, Explanation, LookupTimes, Match, Omitted, Revisit, Verdict, VerdictKind, fit_matches,
};

/// The most bytes of JSON that the opinion of one collection takes. Its error and its explanation are not counted.
const SAID_BYTES: usize = 320;
/// The most bytes of JSON that an error takes, without its text.
const ERROR_BYTES: usize = 640;
/// The longest text of an error that always fits into an answer, in bytes.
const ERROR_TEXT_BYTES: usize = 1024;

/// A verdict, and the opinion of each collection if several were asked.
#[derive(Clone, Debug)]
pub struct JointVerdict {
    verdict: Verdict,
    several: Option<Box<Several>>,
}

/// The opinions of several collections.
#[derive(Clone, Debug)]
struct Several {
    /// The opinions, in the order in which the collections were asked. The first is that of the collection of the path.
    said: Vec<Said>,
    /// The matches in other collections, for an insertion. For a check, the verdict has these matches.
    elsewhere: Option<Found>,
}

/// The opinion of one collection, or the reason why it could not be asked. Its matches are in the list of all matches.
#[derive(Clone, Debug)]
pub struct Said {
    collection: CollectionName,
    opinion: Result<Opinion>,
}

/// A verdict without its matches.
#[derive(Clone, Debug)]
pub struct Opinion {
    pub kind: VerdictKind,
    pub threshold: f64,
    pub candidates: u32,
    pub unread: u64,
    pub expected_recall: Option<f64>,
    /// The explanation; absent for the collection of the path, because the verdict has it.
    pub explanation: Option<Box<Explanation>>,
}

/// Matches, best first.
#[derive(Clone, Debug, Default)]
struct Found {
    matches: Vec<Match>,
    /// The number of matches that were left out at the end.
    omitted: u64,
}

/// The opinions and the matches of other collections about a document that is inserted.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    said: Vec<Said>,
    found: Found,
    /// See [`Verdict::revisit`].
    revisit: Option<Box<Revisit>>,
}

/// The parts of a joint verdict, for an answer.
#[derive(Debug)]
pub struct JointParts {
    pub verdict: Verdict,
    /// Empty if only one collection was asked.
    pub said: Vec<Said>,
    /// The matches in other collections, for an insertion.
    pub elsewhere: Option<Vec<Match>>,
    /// The numbers of matches and metadata left out of both lists.
    pub omitted: Option<Omitted>,
    /// Whether all collections were asked, and no limit may have hidden a match.
    pub complete: bool,
}

impl From<Verdict> for JointVerdict {
    /// Makes an answer of the verdict of the only collection that was asked.
    fn from(verdict: Verdict) -> Self {
        Self { verdict, several: None }
    }
}

impl JointVerdict {
    /// Begins the answer to a check with the verdict of the collection of the path.
    pub(crate) fn begin(collection: &CollectionName, mut verdict: Verdict) -> Self {
        let said = vec![Said::of(collection, &verdict)];
        place(&mut verdict.matches, collection);
        Self { verdict, several: Some(Box::new(Several { said, elsewhere: None })) }
    }

    /// Adds the verdict of the next collection that is asked. At most `limit` matches stay.
    pub(crate) fn join(&mut self, collection: &CollectionName, mut next: Verdict, limit: usize) {
        let Some(several) = &mut self.several else { return };
        several.said.push(Said::of(collection, &next).explained(next.explanation.take()));
        place(&mut next.matches, collection);
        let all = &mut self.verdict;
        let better = match (all.matches.first(), next.matches.first()) {
            (Some(best), Some(other)) => is_before(other, best),
            (None, Some(_)) => true,
            // A text can be empty in one collection and have shingles in another one.
            (_, None) => all.kind == VerdictKind::Empty,
        };
        if better {
            all.kind = next.kind;
            all.duplicate_of = next.duplicate_of.take();
            all.similarity = next.similarity;
            all.representative = next.representative.take();
        }
        let mut found = Found { matches: std::mem::take(&mut all.matches), omitted: all.omitted_matches };
        found.join(Found { matches: next.matches, omitted: next.omitted_matches }, limit);
        all.matches = found.matches;
        all.omitted_matches = found.omitted;
        all.candidates = all.candidates.saturating_add(next.candidates);
        all.unread = all.unread.saturating_add(next.unread);
        all.expected_recall = least(all.expected_recall, next.expected_recall);
        all.revisit = better_revisit(all.revisit.take(), next.revisit);
        all.times = LookupTimes::new(all.times.probe() + next.times.probe(), all.times.verify() + next.times.verify());
    }

    /// Makes the answer for an insertion into `collection`, with the opinions of other collections. The opinions change
    /// two fields of the verdict. `unread` becomes the sum over all collections. `revisit` becomes the best one of all
    /// collections.
    pub(crate) fn inserted(collection: &CollectionName, mut verdict: Verdict, elsewhere: Elsewhere) -> Self {
        let Elsewhere { said: others, found, revisit } = elsewhere;
        verdict.revisit = better_revisit(verdict.revisit.take(), revisit);
        let own = Said::of(collection, &verdict);
        let unread = others.iter().filter_map(|said| said.opinion.as_ref().ok()).map(|opinion| opinion.unread);
        verdict.unread = unread.fold(verdict.unread, u64::saturating_add);
        let said = std::iter::once(own).chain(others).collect();
        Self { verdict, several: Some(Box::new(Several { said, elsewhere: Some(found) })) }
    }

    /// The verdict on the document: of all collections for a check, of its own collection for an insertion.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the verdict, so that a caller can add facts to it.
    pub fn verdict_mut(&mut self) -> &mut Verdict {
        &mut self.verdict
    }

    /// Returns the largest size that `others` other collections can add to an answer as JSON, in bytes.
    pub fn bytes_max(others: usize, limit: usize, with_metadata: bool, explain: bool) -> usize {
        let explanation = if explain { Explanation::BYTES_MAX } else { 0 };
        let said = SAID_BYTES + ERROR_BYTES + ERROR_TEXT_BYTES + explanation;
        (others + 1) * said + limit.saturating_mul(Match::bytes_max(with_metadata))
    }

    /// Returns the largest possible size of this answer as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        self.verdict.bytes() + self.said_bytes() + self.found_elsewhere().map_or(0, Found::bytes)
    }

    /// Leaves out as much as needed to fit into `bytes_max`: first the matches elsewhere, then the lists of
    /// explanations, then parts of the verdict, as [`Verdict::fit`] does.
    pub fn fit(&mut self, bytes_max: usize) {
        let Some(several) = &mut self.several else { return self.verdict.fit(bytes_max) };
        let said = said_bytes(&several.said);
        if said + self.verdict.bytes() > bytes_max {
            several.said.iter_mut().for_each(Said::shorten);
        }
        let left = bytes_max.saturating_sub(said_bytes(&several.said));
        self.verdict.fit(left);
        if let Some(found) = &mut several.elsewhere {
            found.fit(left.saturating_sub(self.verdict.bytes()));
        }
    }

    /// Returns the parts.
    pub fn into_parts(self) -> JointParts {
        let Self { verdict, several } = self;
        let Several { said, elsewhere } = several.map_or_else(Several::none, |several| *several);
        let Omitted { mut matches, mut metadata } = verdict.omitted().unwrap_or_default();
        if let Some(found) = &elsewhere {
            matches += found.omitted;
            metadata += found.matches.iter().filter(|found| found.metadata_omitted).count() as u64;
        }
        let omitted = Omitted { matches, metadata };
        JointParts {
            complete: verdict.unread == 0 && said.iter().all(|said| said.opinion.is_ok()),
            omitted: (omitted != Omitted::default()).then_some(omitted),
            elsewhere: elsewhere.map(|found| found.matches),
            verdict,
            said,
        }
    }

    fn found_elsewhere(&self) -> Option<&Found> {
        self.several.as_ref().and_then(|several| several.elsewhere.as_ref())
    }

    fn said_bytes(&self) -> usize {
        self.several.as_ref().map_or(0, |several| said_bytes(&several.said))
    }
}

impl Several {
    fn none() -> Self {
        Self { said: Vec::new(), elsewhere: None }
    }
}

impl Elsewhere {
    /// Adds the verdict of the next collection, or the reason why it could not be asked. At most `limit` matches stay.
    pub(crate) fn add(&mut self, collection: &CollectionName, verdict: Result<Verdict>, limit: usize) {
        let said = match verdict {
            Ok(mut verdict) => {
                place(&mut verdict.matches, collection);
                let said = Said::of(collection, &verdict).explained(verdict.explanation.take());
                self.found.join(Found { matches: verdict.matches, omitted: verdict.omitted_matches }, limit);
                self.revisit = better_revisit(self.revisit.take(), verdict.revisit);
                said
            }
            Err(error) => Said { collection: collection.clone(), opinion: Err(error) },
        };
        self.said.push(said);
    }

    /// Leaves out matches that do not fit into `bytes_max`, and explanations if they alone are too long.
    pub(crate) fn fit(&mut self, bytes_max: usize) {
        if said_bytes(&self.said) > bytes_max {
            self.said.iter_mut().for_each(Said::shorten);
        }
        self.found.fit(bytes_max.saturating_sub(said_bytes(&self.said) + self.revisit_bytes()));
    }

    /// Returns the largest size that this part adds to an answer as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        SAID_BYTES + said_bytes(&self.said) + self.found.bytes() + self.revisit_bytes()
    }

    fn revisit_bytes(&self) -> usize {
        self.revisit.as_ref().map_or(0, |revisit| revisit.json_bytes())
    }

    /// Returns the collections that could not be asked, with their errors.
    pub fn failures(&self) -> impl Iterator<Item = (&CollectionName, &CollectionError)> {
        self.said.iter().filter_map(|said| Some((&said.collection, said.opinion.as_ref().err()?)))
    }
}

impl Said {
    /// Returns the collection, and its opinion or the reason why it could not be asked.
    pub fn into_parts(self) -> (CollectionName, Result<Opinion>) {
        (self.collection, self.opinion)
    }

    fn of(collection: &CollectionName, verdict: &Verdict) -> Self {
        let &Verdict { kind, threshold, candidates, unread, expected_recall, .. } = verdict;
        let opinion = Opinion { kind, threshold, candidates, unread, expected_recall, explanation: None };
        Self { collection: collection.clone(), opinion: Ok(opinion) }
    }

    fn explained(self, explanation: Option<Box<Explanation>>) -> Self {
        Self { opinion: self.opinion.map(|opinion| Opinion { explanation, ..opinion }), ..self }
    }

    /// Leaves out the lists of its explanation.
    fn shorten(&mut self) {
        if let Ok(Opinion { explanation: Some(explanation), .. }) = &mut self.opinion {
            explanation.shorten();
        }
    }

    fn bytes(&self) -> usize {
        let more = match &self.opinion {
            Ok(opinion) => opinion.explanation.as_ref().map_or(0, |explanation| explanation.bytes()),
            Err(error) => ERROR_BYTES + error.to_string().len(),
        };
        SAID_BYTES + more
    }
}

impl Found {
    /// Adds the matches of a later collection. At most `limit` stay. If a list has matches left out at its end, nothing
    /// is added after the last match of this list, because a better match may have been left out.
    fn join(&mut self, next: Self, limit: usize) {
        let all = (self.matches.len() + next.matches.len()) as u64 + self.omitted + next.omitted;
        let cut = [self.omitted > 0, next.omitted > 0];
        let mut lists = [std::mem::take(&mut self.matches), next.matches].map(|list| list.into_iter().peekable());
        while self.matches.len() < limit
            && let Some(found) = best_of(&mut lists, cut)
        {
            self.matches.push(found);
        }
        self.omitted = all.min(limit as u64) - self.matches.len() as u64;
    }

    fn fit(&mut self, bytes_max: usize) {
        fit_matches(&mut self.matches, &mut self.omitted, bytes_max, 0);
    }

    fn bytes(&self) -> usize {
        self.matches.iter().map(Match::whole_bytes).sum()
    }
}

/// Takes the better of the first matches of two lists. `None` if both are empty, or if the best match may be one that
/// was left out at the end of a list.
fn best_of(lists: &mut [Peekable<impl Iterator<Item = Match>>; 2], cut: [bool; 2]) -> Option<Match> {
    let [first, second] = lists;
    match (first.peek(), second.peek()) {
        (None, _) if cut[0] => None,
        (_, None) if cut[1] => None,
        (Some(one), Some(other)) if is_before(other, one) => second.next(),
        (Some(_), _) => first.next(),
        (None, _) => second.next(),
    }
}

/// Whether `one`, of a later collection, goes before `other`. Equal contents go first, then the more similar documents.
/// Ties keep the order of the list.
fn is_before(one: &Match, other: &Match) -> bool {
    let by_content = one.same_content.cmp(&other.same_content);
    by_content.then_with(|| one.similarity.value.total_cmp(&other.similarity.value)).is_gt()
}

fn place(matches: &mut [Match], collection: &CollectionName) {
    for found in matches {
        found.collection = Some(collection.clone());
    }
}

fn said_bytes(said: &[Said]) -> usize {
    said.iter().map(Said::bytes).sum()
}

/// Returns the better of the revisits of two collections. In a tie, it is the one of the collection that was asked
/// first.
fn better_revisit(one: Option<Box<Revisit>>, other: Option<Box<Revisit>>) -> Option<Box<Revisit>> {
    Revisit::best([one, other].into_iter().flatten().map(|revisit| *revisit)).map(Box::new)
}

fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{DocId, Method, Similarity, TimestampMs};

    /// Makes a match of this similarity, in tenths; 10 means equal content.
    fn found(tenths: u8, id: &str) -> Match {
        let value = f64::from(tenths) / 10.0;
        Match {
            collection: None,
            id: DocId::new(id).unwrap(),
            same_content: tenths == 10,
            similarity: Similarity { value, low: value, high: value, method: Method::Estimate },
            overlap: None,
            first_seen: TimestampMs(0),
            metadata: None,
            metadata_omitted: false,
        }
    }

    /// Makes a list as a collection returns it, the best first, without its last `cut` matches.
    fn list(at: usize, mut tenths: Vec<u8>, cut: usize) -> Found {
        tenths.sort_unstable_by(|one, other| other.cmp(one));
        let mut matches: Vec<Match> =
            tenths.iter().enumerate().map(|(place, &tenths)| found(tenths, &format!("{at}-{place}"))).collect();
        let stay = matches.len() - cut.min(matches.len().saturating_sub(1));
        let omitted = (matches.len() - stay) as u64;
        matches.truncate(stay);
        Found { matches, omitted }
    }

    proptest! {
        #[test]
        fn lists_become_one_list_without_a_hole(
            lists in prop::collection::vec((prop::collection::vec(0..=10_u8, 0..12), 0..4_usize), 1..5),
            limit in 1..20_usize,
        ) {
            // The limit also applies to each list.
            let whole = |cut: bool| lists.iter().enumerate().map(move |(at, (tenths, left_out))| {
                let mut tenths = tenths.clone();
                tenths.sort_unstable_by(|one, other| other.cmp(one));
                tenths.truncate(limit);
                list(at, tenths, if cut { *left_out } else { 0 })
            });
            let mut truth: Vec<Match> = whole(false).flat_map(|list| list.matches).collect();
            truth.sort_by(|one, other| {
                other.same_content.cmp(&one.same_content).then(other.similarity.value.total_cmp(&one.similarity.value))
            });
            truth.truncate(limit);
            let joined = |cut: bool| whole(cut).reduce(|mut all, next| {
                all.join(next, limit);
                all
            }).unwrap();
            let all = joined(false);
            prop_assert_eq!((&all.matches, all.omitted), (&truth, 0));
            // The matches that stay are the beginning of the whole list, and the others are counted.
            let cut = joined(true);
            prop_assert_eq!(&cut.matches[..], &truth[..cut.matches.len()]);
            prop_assert_eq!(cut.matches.len() as u64 + cut.omitted, truth.len() as u64);
            prop_assert!(truth.is_empty() || !cut.matches.is_empty());
        }
    }
}
