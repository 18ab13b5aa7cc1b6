//! The answer to a lookup or an insertion, and how the answer is shortened to fit a limit on its JSON.
//! A thousand matches with 16 KiB of metadata each are 16 MB, and a batch may ask for a thousand such verdicts. The
//! parts that do not fit are left out and counted, but the best match always stays. This file knows only the largest
//! length that the JSON can have, not how the JSON is written. `http/dto/verdict.rs` tests that length.

use super::explanation::{Explanation, LookupTimes};
use super::ids::{CollectionName, DocId, ID_JSON_BYTES_MAX, METADATA_BYTES_MAX, Metadata};
use super::page::PageFacts;
use super::places::TimestampMs;
use super::revisit::Revisit;
use super::similarity::{Overlap, Similarity};

/// The largest possible size of a verdict as JSON, in bytes. Ids and matches are not counted. The fields that a bulk
/// line adds are counted.
const VERDICT_BYTES: usize = 1024;
/// The largest possible size of a match as JSON without its id, collection and metadata, in bytes.
const MATCH_BYTES: usize = 288;
/// The largest possible size of the collection of a match as JSON without its name, in bytes.
const COLLECTION_BYTES: usize = 16;

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// No stored document is at or above the threshold.
    Unique,
    /// At least one stored document is at or above the threshold.
    NearDuplicate,
    /// A stored document has the same canonical text, or the same set.
    ExactDuplicate,
    /// There is nothing to compare, because the document has no token or no shingle.
    Empty,
}

impl VerdictKind {
    /// All kinds, for labels.
    pub const ALL: [Self; 4] = [Self::Unique, Self::NearDuplicate, Self::ExactDuplicate, Self::Empty];

    /// Returns the kind of a verdict whose best match has the same content, or not.
    pub fn of_match(same_content: bool) -> Self {
        if same_content { Self::ExactDuplicate } else { Self::NearDuplicate }
    }

    /// Returns the name in the API and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::NearDuplicate => "near_duplicate",
            Self::ExactDuplicate => "exact_duplicate",
            Self::Empty => "empty",
        }
    }

    /// Returns whether another document was found.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::NearDuplicate | Self::ExactDuplicate)
    }
}

/// The action taken on the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Checked,
    /// Stored under a new id.
    Inserted,
    /// Stored in place of the id's earlier content.
    Replaced,
    /// The id already has this content. The verdict is that of its first insertion.
    Unchanged,
    /// The id already has this content, and its metadata, labels or capture have changed. The verdict is that of its
    /// first insertion.
    Updated,
    /// The id was stored as a link to the original, without postings.
    Linked,
    Skipped,
    /// The id had other content, which was deleted. The new content is not stored.
    Removed,
}

impl Outcome {
    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Inserted => "inserted",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Updated => "updated",
            Self::Linked => "linked",
            Self::Skipped => "skipped",
            Self::Removed => "removed",
        }
    }
}

/// A stored document at or above the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The collection of the match, if several collections were searched.
    pub collection: Option<CollectionName>,
    pub id: DocId,
    /// Whether both contents are equal.
    pub same_content: bool,
    pub similarity: Similarity,
    /// The number of shared shingles, if shingles were compared.
    pub overlap: Option<Overlap>,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
    /// The metadata of the match, if it was requested.
    pub metadata: Option<Metadata>,
    /// Whether the match has metadata that was requested but left out.
    pub metadata_omitted: bool,
}

/// The parts that were left out because the answer would have been too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// The number of matches left out, from the end of the list.
    pub matches: u64,
    /// The number of remaining matches whose metadata was left out.
    pub metadata: u64,
}

/// The earlier content of an id. The new content replaced it, or is in conflict with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous {
    /// The similarity of the old and the new content.
    pub similarity: Similarity,
    /// When the old content was first stored under the id.
    pub first_seen: TimestampMs,
}

/// The answer to "have we seen this document, or nearly this one?".
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub kind: VerdictKind,
    pub outcome: Outcome,
    /// Whether this content is now stored durably under this id.
    pub stored: bool,
    /// The id in the request, if there was one.
    pub id: Option<DocId>,
    /// The id of the best match.
    pub duplicate_of: Option<DocId>,
    /// The similarity of the best match.
    pub similarity: Option<f64>,
    /// The id of the first-seen document of the cluster that the document was stored in; absent if that is the document
    /// itself. If the document was not stored and its best match is a link, this is the id of the first-seen document
    /// of that match's cluster.
    pub representative: Option<DocId>,
    /// The threshold that was used.
    pub threshold: f64,
    /// The matches, best first; at most as many as were requested.
    pub matches: Vec<Match>,
    /// The number of matches left out because of the limit on the answer's length.
    pub omitted_matches: u64,
    /// The number of distinct documents compared. Documents with equal signatures count as one.
    pub candidates: u32,
    /// The number of postings and candidates that were not read because of a limit. If the number is above 0, one of
    /// these documents may be a match. A document may be counted once for each band.
    pub unread: u64,
    /// The number of shingles of the document, repeats counted; absent if the client sent a signature without
    /// `shingles`.
    pub shingles: Option<u64>,
    /// The earlier content of the id, if there is any and it differs.
    pub previous: Option<Previous>,
    /// The probability that a document exactly at a lowered threshold becomes a candidate.
    pub expected_recall: Option<f64>,
    /// Whether the document counts as empty because it has fewer words than an item of a containment collection needs.
    pub is_too_short: bool,
    /// How long the lookup took, if there was one.
    pub times: LookupTimes,
    /// How the verdict came about, if the client asked and there was a lookup.
    pub explanation: Option<Box<Explanation>>,
    /// The facts of the page, if the document was one.
    pub page: Option<Box<PageFacts>>,
    /// The earlier capture of the same payload, if the request has the digest of its payload.
    pub revisit: Option<Box<Revisit>>,
}

impl Match {
    /// Returns the largest possible size of any match in one of several collections as JSON, in bytes. Metadata is
    /// counted if `with_metadata`.
    pub(crate) fn bytes_max(with_metadata: bool) -> usize {
        let metadata = if with_metadata { METADATA_BYTES_MAX } else { 0 };
        MATCH_BYTES + COLLECTION_BYTES + CollectionName::BYTES_MAX + ID_JSON_BYTES_MAX + metadata
    }

    /// Returns the largest possible size of this match as JSON, in bytes.
    pub(crate) fn whole_bytes(&self) -> usize {
        self.bytes() + self.metadata_bytes()
    }

    /// Returns the largest possible size of this match without its metadata, in bytes.
    fn bytes(&self) -> usize {
        let collection = self.collection.as_ref().map_or(0, |name| COLLECTION_BYTES + name.as_str().len());
        MATCH_BYTES + self.id.json_bytes() + collection
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }
}

impl Verdict {
    /// Returns the largest possible size of a verdict with `matches` matches as JSON, in bytes. Their metadata is
    /// counted if `with_metadata`.
    pub fn bytes_max(matches: usize, with_metadata: bool) -> usize {
        let metadata = if with_metadata { METADATA_BYTES_MAX } else { 0 };
        let found = MATCH_BYTES + ID_JSON_BYTES_MAX + metadata;
        VERDICT_BYTES + 3 * ID_JSON_BYTES_MAX + matches.saturating_mul(found)
    }

    /// Returns the largest possible size of this verdict as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + self.matches.iter().map(Match::whole_bytes).sum::<usize>()
    }

    /// Returns the largest possible size of this verdict without its matches, in bytes.
    fn own_bytes(&self) -> usize {
        let ids = [&self.id, &self.duplicate_of, &self.representative];
        let explanation = self.explanation.as_ref().map_or(0, |explanation| explanation.bytes());
        let page = self.page.as_ref().map_or(0, |page| page.json_bytes());
        let revisit = self.revisit.as_ref().map_or(0, |revisit| revisit.json_bytes());
        VERDICT_BYTES + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>() + explanation + page + revisit
    }

    /// Leaves out as much as needed to fit into `bytes_max`. The lists of the explanation are removed first, if the
    /// verdict is too long even without its matches. Then the metadata of the last matches is removed, and then the
    /// last matches themselves. The best match always stays. Two calls with two limits have the same result as one call
    /// with the smaller limit.
    pub fn fit(&mut self, bytes_max: usize) {
        let own_bytes = self.own_bytes();
        if let Some(explanation) = self.explanation.as_mut().filter(|_| own_bytes > bytes_max) {
            explanation.shorten();
        }
        let left = bytes_max.saturating_sub(self.own_bytes());
        fit_matches(&mut self.matches, &mut self.omitted_matches, left, 1);
    }

    /// Returns the parts that were left out; `None` if there are none.
    pub fn omitted(&self) -> Option<Omitted> {
        let metadata = self.matches.iter().filter(|found| found.metadata_omitted).count() as u64;
        let omitted = Omitted { matches: self.omitted_matches, metadata };
        (omitted != Omitted::default()).then_some(omitted)
    }
}

/// Makes matches fit into `left` bytes. Removes the metadata of the last matches first, and then the last matches
/// themselves. The first `stay_min` matches always stay. Adds the number of matches left out to `omitted`.
pub(crate) fn fit_matches(matches: &mut Vec<Match>, omitted: &mut u64, mut left: usize, stay_min: usize) {
    let mut stay = 0;
    for found in matches.iter() {
        let bytes = found.bytes();
        if stay >= stay_min && bytes > left {
            break;
        }
        left = left.saturating_sub(bytes);
        stay += 1;
    }
    *omitted += (matches.len() - stay) as u64;
    matches.truncate(stay);
    let mut fits = *omitted == 0;
    for found in matches {
        let bytes = found.metadata_bytes();
        fits &= bytes <= left && !found.metadata_omitted;
        match fits {
            true => left -= bytes,
            false => found.metadata_omitted |= found.metadata.take().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Method;

    fn verdict(matches: &[(usize, Option<usize>)]) -> Verdict {
        let similarity = Similarity { value: 1.0, low: 1.0, high: 1.0, method: Method::Estimate };
        let found = |(id, metadata): &(usize, Option<usize>)| Match {
            collection: None,
            id: DocId::new("i".repeat(*id)).unwrap(),
            same_content: false,
            similarity,
            overlap: None,
            first_seen: TimestampMs(0),
            metadata: metadata.map(|bytes| Metadata::new("m".repeat(bytes)).unwrap()),
            metadata_omitted: false,
        };
        Verdict {
            kind: VerdictKind::NearDuplicate,
            outcome: Outcome::Checked,
            stored: false,
            id: None,
            duplicate_of: matches.first().map(|(id, _)| DocId::new("i".repeat(*id)).unwrap()),
            similarity: Some(1.0),
            representative: None,
            threshold: 0.8,
            matches: matches.iter().map(found).collect(),
            omitted_matches: 0,
            candidates: 0,
            unread: 0,
            shingles: None,
            previous: None,
            expected_recall: None,
            is_too_short: false,
            times: LookupTimes::default(),
            explanation: None,
            page: None,
            revisit: None,
        }
    }

    #[test]
    fn metadata_goes_before_matches_and_the_best_match_stays() {
        let whole = verdict(&[(10, Some(1000)), (10, Some(1000)), (10, None)]);
        let fit = |bytes_max: usize| {
            let mut verdict = whole.clone();
            verdict.fit(bytes_max);
            let metadata = verdict.matches.iter().filter(|found| found.metadata.is_some()).count();
            (verdict.matches.len(), metadata, verdict.omitted())
        };
        let bytes = whole.bytes();
        assert_eq!(fit(bytes), (3, 2, None));
        assert_eq!(fit(bytes - 1), (3, 1, Some(Omitted { matches: 0, metadata: 1 })));
        assert_eq!(fit(bytes - 1001), (3, 0, Some(Omitted { matches: 0, metadata: 2 })));
        assert_eq!(fit(bytes - 2001), (2, 0, Some(Omitted { matches: 1, metadata: 2 })));
        assert_eq!(fit(0), (1, 0, Some(Omitted { matches: 2, metadata: 1 })));
    }

    proptest! {
        #[test]
        fn what_fits_is_within_the_bound_and_the_smaller_of_two_bounds_decides(
            matches in prop::collection::vec((1..300_usize, prop::option::of(2..3000_usize)), 0..8),
            first in 0..30_000_usize, second in 0..30_000_usize,
        ) {
            let mut twice = verdict(&matches);
            let best = twice.matches.first().map_or(0, Match::bytes);
            twice.fit(first);
            prop_assert!(twice.bytes() <= first.max(twice.own_bytes() + best));
            twice.fit(second);
            let mut once = verdict(&matches);
            once.fit(first.min(second));
            let shown = |verdict: &Verdict| {
                let kept: Vec<_> = verdict.matches.iter().map(|found| found.metadata.is_some()).collect();
                (kept, verdict.omitted())
            };
            prop_assert_eq!(shown(&twice), shown(&once));
        }
    }
}
