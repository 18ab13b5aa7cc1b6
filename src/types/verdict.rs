//! The answer to a lookup or an insertion, and the same in so many bytes of JSON.
//! A thousand matches with 16 KiB of metadata each are 16 MB, and a batch asks for a thousand such verdicts. What does
//! not fit is left out and counted; the best match always stays. Knows nothing of how the JSON is written, only of how
//! long it can get: `http/dto/verdict.rs` tests that it gets no longer.

use super::ids::{DocId, ID_JSON_BYTES_MAX, METADATA_BYTES_MAX, Metadata};
use super::places::TimestampMs;
use super::similarity::{Overlap, Similarity};

/// A verdict without its ids and matches, and what a bulk line adds, in bytes of JSON.
const VERDICT_BYTES: usize = 1024;
/// A match without its id and metadata.
const MATCH_BYTES: usize = 288;

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// No document at or above the threshold.
    Unique,
    /// At least one document at or above the threshold.
    NearDuplicate,
    /// A document with equal canonical text (or equal set).
    ExactDuplicate,
    /// Nothing to compare: no token, no shingle.
    Empty,
}

impl VerdictKind {
    /// All kinds, for labels.
    pub const ALL: [Self; 4] = [Self::Unique, Self::NearDuplicate, Self::ExactDuplicate, Self::Empty];

    /// The name on the wire and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::NearDuplicate => "near_duplicate",
            Self::ExactDuplicate => "exact_duplicate",
            Self::Empty => "empty",
        }
    }

    /// Whether another document was found.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::NearDuplicate | Self::ExactDuplicate)
    }
}

/// What was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Checked,
    /// Stored under a new id.
    Inserted,
    /// Stored in place of the id's earlier content.
    Replaced,
    /// The id already holds this content; the verdict is the one of its first insertion.
    Unchanged,
    /// The id already holds this content and has other metadata now; the verdict is the one of its first insertion.
    Updated,
    /// The id was stored as a link to the original, without postings.
    Linked,
    Skipped,
    /// The id held other content, which is deleted; the new content is not stored.
    Removed,
}

impl Outcome {
    /// The name on the wire.
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
    pub id: DocId,
    /// Whether its content is equal.
    pub same_content: bool,
    pub similarity: Similarity,
    /// How many shingles they share, where they were compared exactly.
    pub overlap: Option<Overlap>,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Its metadata, where asked for.
    pub metadata: Option<Metadata>,
    /// It has metadata that was asked for and is not here.
    pub metadata_omitted: bool,
}

/// What was left out of an answer that would have been too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Matches, the last ones.
    pub matches: u64,
    /// The metadata of so many of the matches that are there.
    pub metadata: u64,
}

/// The earlier content of a replaced or conflicting id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Previous {
    /// How alike the old and the new content are.
    pub similarity: Similarity,
    /// When that content was first stored under the id.
    pub first_seen: TimestampMs,
}

/// The answer to "have we seen this, or nearly this?".
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub kind: VerdictKind,
    pub outcome: Outcome,
    /// Whether this content is durably held under this id now.
    pub stored: bool,
    /// The id asked about, where one was given.
    pub id: Option<DocId>,
    /// The best match's id.
    pub duplicate_of: Option<DocId>,
    /// The best match's similarity.
    pub similarity: Option<f64>,
    /// The first-seen document of the cluster it was stored in; absent if it is that itself. If it was not stored, that of
    /// the cluster of its best match, if this is a link.
    pub representative: Option<DocId>,
    /// The threshold judged by.
    pub threshold: f64,
    /// Best first; at most the limit asked for.
    pub matches: Vec<Match>,
    /// How many more there would be if the answer had no bound.
    pub omitted_matches: u64,
    /// Distinct documents compared; those with equal signatures are compared as one.
    pub candidates: u32,
    /// Postings and candidates that a cap kept from being looked at: where there are any, one may be a match. A
    /// document may be counted once for each band.
    pub unread: u64,
    /// Shingles in the document, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The id's earlier content, where there is one and it differs.
    pub previous: Option<Previous>,
    /// Chance that a document exactly at a lowered threshold is proposed at all.
    pub expected_recall: Option<f64>,
}

impl Match {
    /// Most bytes of it in JSON, without its metadata.
    fn bytes(&self) -> usize {
        MATCH_BYTES + self.id.json_bytes()
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }
}

impl Verdict {
    /// Most bytes of the JSON of a verdict with so many matches, with their metadata if asked for.
    pub fn bytes_max(matches: usize, with_metadata: bool) -> usize {
        let metadata = if with_metadata { METADATA_BYTES_MAX } else { 0 };
        let found = MATCH_BYTES + ID_JSON_BYTES_MAX + metadata;
        VERDICT_BYTES + 3 * ID_JSON_BYTES_MAX + matches.saturating_mul(found)
    }

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + self.matches.iter().map(|found| found.bytes() + found.metadata_bytes()).sum::<usize>()
    }

    /// Without its matches.
    fn own_bytes(&self) -> usize {
        let ids = [&self.id, &self.duplicate_of, &self.representative];
        VERDICT_BYTES + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>()
    }

    /// Leaves out what takes it beyond `bytes_max`: the metadata of matches, from the end, and then matches, from the
    /// end. All but the best match can go. Twice with two bounds is once with the smaller.
    pub fn fit(&mut self, bytes_max: usize) {
        let mut left = bytes_max.saturating_sub(self.own_bytes());
        let mut stay = 0;
        for found in &self.matches {
            let bytes = found.bytes();
            if stay > 0 && bytes > left {
                break;
            }
            left = left.saturating_sub(bytes);
            stay += 1;
        }
        let whole = stay == self.matches.len();
        self.omitted_matches += (self.matches.len() - stay) as u64;
        self.matches.truncate(stay);
        let mut fits = whole && self.omitted_matches == 0;
        for found in &mut self.matches {
            let bytes = found.metadata_bytes();
            fits &= bytes <= left && !found.metadata_omitted;
            match fits {
                true => left -= bytes,
                false => found.metadata_omitted |= found.metadata.take().is_some(),
            }
        }
    }

    /// What was left out, if anything was.
    pub fn omitted(&self) -> Option<Omitted> {
        let metadata = self.matches.iter().filter(|found| found.metadata_omitted).count() as u64;
        let omitted = Omitted { matches: self.omitted_matches, metadata };
        (omitted != Omitted::default()).then_some(omitted)
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
