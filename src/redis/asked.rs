//! What operations have in common: what a client asks of an answer, what this kind of store refuses, and operations that
//! go on although the client leaves.

use hapax_core::Spec;

use super::protocol::{Body, Checked};
use super::record::{Judged, candidates, ranked};
use crate::types::{DocId, IndexKind, Keep, LookupTimes, Outcome, Overlap, Previous, Verdict};
use crate::verdicts::{Cited, CollectionError, Findings, Result, Settings, VerdictContext, similarity};

/// Runs an operation in a task of its own, so that it ends although the client leaves.
pub(super) async fn to_its_end<T: Send + 'static>(
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(operation).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CollectionError::closed()),
        },
    }
}

/// What a client asks of an answer.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub limit: usize,
    pub with_metadata: bool,
    /// Whether the request has metadata, if only `{}`.
    pub sends_metadata: bool,
    pub threshold: f64,
}

impl Asked {
    pub(super) fn cited(self, found: &Judged, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Cited {
        Cited {
            id: found.stored.id.clone(),
            first_seen: found.stored.first_seen,
            matching,
            same_content,
            overlap,
            metadata: found.stored.metadata.clone().filter(|_| self.with_metadata),
            metadata_omitted: false,
        }
    }

    /// Makes a verdict of a lookup. The document `held`, which holds the id, is no match of its own.
    pub(super) fn verdict(
        self,
        (spec, query): (&Spec, &Judged),
        (Checked { found, met }, unread): (Checked<Judged>, u64),
        id: Option<DocId>,
        shingles: Option<u64>,
        held: Option<&Judged>,
    ) -> Verdict {
        let is_other = |other: &Judged| held.is_none_or(|held| held.stored.id != other.stored.id);
        let others = found.iter().filter(|(_, other)| is_other(other)).map(|(at, other)| (*at, other));
        let ranked = ranked(query, others);
        let cited = ranked
            .iter()
            .map(|(_, other)| self.cited(other, query.matching(other), query.is_same(other), query.overlap(other)));
        let findings = Findings::of(spec, cited, self.limit);
        let same = held.is_some_and(|held| query.repeats(held));
        let previous = held.filter(|_| !same).map(|held| Previous {
            similarity: similarity(spec, query.matching(held), false, query.compared(held)),
            first_seen: held.stored.first_seen,
        });
        findings.verdict(VerdictContext {
            outcome: Outcome::Checked,
            stored: same,
            id,
            representative: None,
            threshold: self.threshold,
            candidates: candidates(met.stored.iter().map(|(_, other)| other).filter(|other| is_other(other))),
            unread: unread + met.left_out,
            shingles,
            previous,
            expected_recall: None,
            times: LookupTimes::default(),
            explanation: None,
        })
    }
}

/// Refuses what this kind of store cannot do.
pub(super) fn refuse(is_asked: bool, what: &'static str) -> Result<()> {
    if is_asked { Err(CollectionError::NotInThisStore { what }) } else { Ok(()) }
}

/// Returns the settings if a collection in a cluster can have them.
pub(super) fn storable(settings: Settings) -> Result<Settings> {
    let settings = settings.checked()?;
    refuse(settings.index() == IndexKind::Containment, "`\"index\": \"containment\"`")?;
    refuse(settings.keep == Keep::Text, "`keep=text`")?;
    refuse(settings.touch, "`touch`")?;
    Ok(settings)
}
