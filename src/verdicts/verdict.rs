//! Makes verdicts from findings. No other code makes verdicts. Knows nothing of lookups or of storage.

use hapax_core::Spec;

use super::comparing::similarity;
use crate::types::{
    DocId, Explanation, LookupTimes, Match, Metadata, Method, Outcome, Overlap, Previous, Revisit, Similarity,
    TimestampMs, Verdict, VerdictKind,
};

/// A document that a verdict lists.
#[derive(Clone, Debug)]
pub(crate) struct Cited {
    pub id: DocId,
    /// The time when it was first stored.
    pub first_seen: TimestampMs,
    /// The number of equal slots.
    pub matching: u32,
    /// Whether it has the same content.
    pub same_content: bool,
    /// The shared shingles, if they were compared.
    pub overlap: Option<Overlap>,
    /// Its metadata, if it was requested.
    pub metadata: Option<Metadata>,
    /// Whether requested metadata was left out.
    pub metadata_omitted: bool,
}

/// The findings of a lookup, in the terms of a verdict.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    kind: VerdictKind,
    duplicate_of: Option<DocId>,
    similarity: Option<f64>,
    matches: Vec<Match>,
    /// See [`Verdict::revisit`].
    revisit: Option<Revisit>,
}

/// The parts of a verdict that are not findings.
#[derive(Clone, Debug)]
pub(crate) struct VerdictContext {
    pub outcome: Outcome,
    /// Whether this content is now durably stored under this id.
    pub stored: bool,
    /// The id in the request, if there was one.
    pub id: Option<DocId>,
    /// See [`Verdict::representative`].
    pub representative: Option<DocId>,
    /// The threshold that was used.
    pub threshold: f64,
    pub candidates: u32,
    /// Postings and candidates that were not read because of a limit.
    pub unread: u64,
    /// The number of shingles of the document.
    pub shingles: Option<u64>,
    /// The earlier content of the id, if there is one and it differs.
    pub previous: Option<Previous>,
    /// The probability that a document exactly at a lowered threshold is proposed.
    pub expected_recall: Option<f64>,
    pub times: LookupTimes,
    pub explanation: Option<Box<Explanation>>,
}

impl Findings {
    /// Makes findings from the documents that were found, the best first. At most `limit` of them are listed. The best
    /// one decides the verdict, even if no document is listed.
    pub(crate) fn of(spec: &Spec, cited: impl Iterator<Item = Cited>, limit: usize) -> Self {
        let mut matches = Vec::with_capacity(cited.size_hint().1.unwrap_or(0));
        matches.extend(cited.map(|cited| worded(spec, cited)));
        let (kind, duplicate_of, similarity) = match matches.first() {
            None => (VerdictKind::Unique, None, None),
            Some(best) => {
                let kind = VerdictKind::of_match(best.same_content);
                (kind, Some(best.id.clone()), Some(best.similarity.value))
            }
        };
        matches.truncate(limit);
        Self { kind, duplicate_of, similarity, matches, revisit: None }
    }

    /// Makes findings that repeat an earlier verdict. `cited` has the matches that are still stored.
    pub(crate) fn again(
        spec: &Spec,
        (kind, duplicate_of, similarity): (VerdictKind, Option<DocId>, Option<f64>),
        cited: impl Iterator<Item = Cited>,
    ) -> Self {
        Self {
            kind,
            duplicate_of,
            similarity,
            matches: cited.map(|cited| worded(spec, cited)).collect(),
            revisit: None,
        }
    }

    /// Makes findings for a document without a token.
    pub(crate) fn of_nothing() -> Self {
        Self { kind: VerdictKind::Empty, duplicate_of: None, similarity: None, matches: Vec::new(), revisit: None }
    }

    /// Adds an earlier capture of the same payload.
    pub(crate) fn with_revisit(self, revisit: Option<Revisit>) -> Self {
        Self { revisit, ..self }
    }

    /// The kind of the verdict.
    pub(crate) fn kind(&self) -> VerdictKind {
        self.kind
    }

    /// The id of the best match.
    pub(crate) fn duplicate_of(&self) -> Option<&DocId> {
        self.duplicate_of.as_ref()
    }

    /// The matches that are listed.
    pub(crate) fn matches(&self) -> &[Match] {
        &self.matches
    }

    pub(crate) fn verdict(self, context: VerdictContext) -> Verdict {
        let Self { kind, duplicate_of, similarity, matches, revisit } = self;
        let VerdictContext { outcome, stored, id, representative, threshold, .. } = context;
        let VerdictContext { candidates, unread, shingles, previous, expected_recall, times, explanation, .. } =
            context;
        Verdict {
            kind,
            outcome,
            stored,
            id,
            duplicate_of,
            similarity,
            representative,
            threshold,
            matches,
            omitted_matches: 0,
            candidates,
            unread,
            shingles,
            previous,
            expected_recall,
            is_too_short: false,
            times,
            explanation,
            page: None,
            revisit: revisit.map(Box::new),
        }
    }
}

/// Returns the verdict on a document without a token. Such a document is never stored. If it replaces earlier content
/// of its id, `replaced` is the time at which the earlier content was first stored.
pub(crate) fn empty_verdict(
    id: Option<DocId>,
    outcome: Outcome,
    threshold: f64,
    replaced: Option<TimestampMs>,
) -> Verdict {
    // An empty document shares no shingle with any other.
    let similarity = Similarity { value: 0.0, low: 0.0, high: 0.0, method: Method::Exact };
    Findings::of_nothing().verdict(VerdictContext {
        outcome,
        stored: false,
        id,
        representative: None,
        threshold,
        candidates: 0,
        unread: 0,
        shingles: Some(0),
        previous: replaced.map(|first_seen| Previous { similarity, first_seen }),
        expected_recall: None,
        times: LookupTimes::default(),
        explanation: None,
    })
}

fn worded(spec: &Spec, cited: Cited) -> Match {
    let Cited { id, first_seen, matching, same_content, overlap, metadata, metadata_omitted } = cited;
    let similarity = similarity(spec, matching, same_content, overlap);
    Match { collection: None, id, same_content, similarity, overlap, first_seen, metadata, metadata_omitted }
}
