//! What was found -> a verdict. The only place where one is made, and it is made whole.
//! Knows nothing of how it was found, or of where documents are kept.

use hapax_core::Spec;

use super::comparing::similarity;
use crate::types::{
    DocId, Match, Metadata, Method, Outcome, Overlap, Previous, Similarity, TimestampMs, Verdict, VerdictKind,
};

/// A document that a verdict cites.
#[derive(Clone, Debug)]
pub(crate) struct Cited {
    pub id: DocId,
    /// When it was first stored.
    pub first_seen: TimestampMs,
    /// Equal slots.
    pub matching: u32,
    /// Whether it has just the same content.
    pub same_content: bool,
    /// Shared shingles, if they were compared.
    pub overlap: Option<Overlap>,
    /// Its metadata, if it was asked for.
    pub metadata: Option<Metadata>,
    /// Whether it has some that was asked for and left out.
    pub metadata_omitted: bool,
}

/// What was found, in the words of a verdict.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    kind: VerdictKind,
    duplicate_of: Option<DocId>,
    similarity: Option<f64>,
    matches: Vec<Match>,
}

/// What else a verdict says.
#[derive(Clone, Debug)]
pub(crate) struct VerdictContext {
    pub outcome: Outcome,
    /// Whether this content is durably held under this id now.
    pub stored: bool,
    /// The id asked about, if one was given.
    pub id: Option<DocId>,
    /// See [`Verdict::representative`].
    pub representative: Option<DocId>,
    /// The threshold judged by.
    pub threshold: f64,
    pub candidates: u32,
    /// Postings and candidates that a limit kept from being looked at.
    pub unread: u64,
    /// Shingles in the document.
    pub shingles: Option<u64>,
    /// The id's earlier content, if there is one and it differs.
    pub previous: Option<Previous>,
    /// Chance that a document exactly at a lowered threshold is proposed at all.
    pub expected_recall: Option<f64>,
}

impl Findings {
    /// Of the documents found, the best first: at most `limit` of them are listed, but the best one says what the document
    /// is even if none is.
    pub(crate) fn of(spec: &Spec, cited: impl Iterator<Item = Cited>, limit: usize) -> Self {
        let mut matches: Vec<Match> = cited.map(|cited| worded(spec, cited)).collect();
        let (kind, duplicate_of, similarity) = match matches.first() {
            None => (VerdictKind::Unique, None, None),
            Some(best) => {
                let kind = if best.same_content { VerdictKind::ExactDuplicate } else { VerdictKind::NearDuplicate };
                (kind, Some(best.id.clone()), Some(best.similarity.value))
            }
        };
        matches.truncate(limit);
        Self { kind, duplicate_of, similarity, matches }
    }

    /// Of an earlier verdict that is given again: `cited` are those of its matches that are still there.
    pub(crate) fn again(
        spec: &Spec,
        (kind, duplicate_of, similarity): (VerdictKind, Option<DocId>, Option<f64>),
        cited: impl Iterator<Item = Cited>,
    ) -> Self {
        Self { kind, duplicate_of, similarity, matches: cited.map(|cited| worded(spec, cited)).collect() }
    }

    /// Of a document without a token.
    pub(crate) fn of_nothing() -> Self {
        Self { kind: VerdictKind::Empty, duplicate_of: None, similarity: None, matches: Vec::new() }
    }

    /// What the document is.
    pub(crate) fn kind(&self) -> VerdictKind {
        self.kind
    }

    /// The best match's id.
    pub(crate) fn duplicate_of(&self) -> Option<&DocId> {
        self.duplicate_of.as_ref()
    }

    /// Those that are listed.
    pub(crate) fn matches(&self) -> &[Match] {
        &self.matches
    }

    pub(crate) fn verdict(self, context: VerdictContext) -> Verdict {
        let Self { kind, duplicate_of, similarity, matches } = self;
        let VerdictContext { outcome, stored, id, representative, threshold, .. } = context;
        let VerdictContext { candidates, unread, shingles, previous, expected_recall, .. } = context;
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
        }
    }
}

/// The verdict on a document without a token, which is never stored. `replaced`: when the content was first stored that
/// it takes the place of.
pub(crate) fn empty_verdict(
    id: Option<DocId>,
    outcome: Outcome,
    threshold: f64,
    replaced: Option<TimestampMs>,
) -> Verdict {
    // Nothing has no shingle in common with anything.
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
    })
}

fn worded(spec: &Spec, cited: Cited) -> Match {
    let Cited { id, first_seen, matching, same_content, overlap, metadata, metadata_omitted } = cited;
    let similarity = similarity(spec, matching, same_content, overlap);
    Match { id, same_content, similarity, overlap, first_seen, metadata, metadata_omitted }
}
