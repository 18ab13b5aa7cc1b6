//! Merges: another collection's documents are inserted into this one, in order of `seq`. The decision on each is written
//! together with its report and the progress of the merge, so after a crash none is decided on twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::order::Step;
use super::ticket::Ticket;
use super::writes::Writes;
use crate::store::Change;
use crate::types::{
    CollectionName, DocId, Job, Merge, Merged, OnDuplicate, OnExisting, Seq, TimestampMs, Verdict, ratio,
};
use crate::verdicts::Result;

/// A merge to begin.
#[derive(Clone, Debug)]
pub(crate) struct MergeAsked {
    /// The other collection, and when it was created.
    pub from: CollectionName,
    pub from_created: TimestampMs,
    /// Its last document, and how many it has.
    pub through: Seq,
    pub documents: u64,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
}

/// The place of an insertion in a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergePlace {
    /// The number of the merge.
    pub merge: Seq,
    /// The document's `seq` in the other collection.
    pub source: Seq,
}

/// What a merge did with a document.
#[derive(Serialize)]
struct Report<'a> {
    /// The document's `seq` in the other collection.
    seq: u64,
    id: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    representative: Option<&'a str>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Begins a merge, or returns the running one of the same collection. It is durable once the ticket resolves.
pub(crate) fn begin_merge(writes: &Writes, asked: MergeAsked) -> Result<Ticket<Merge>> {
    let mut order = writes.open_order()?;
    if let Some(running) = writes.jobs().merge_from(&asked.from, asked.from_created) {
        return Ok(writes.enqueue(&mut order, running, (None, Step::None), None));
    }
    writes.jobs().admit()?;
    let MergeAsked { from, from_created, through, documents, on_duplicate, on_existing } = asked;
    let number = order.next();
    let merge = Merge {
        number,
        from,
        from_created,
        through,
        after: Seq(0),
        on_duplicate,
        on_existing,
        accepted: TimestampMs::now(),
        ended: None,
        aborted: None,
        documents,
        outcomes: BTreeMap::new(),
        verdicts: BTreeMap::new(),
    };
    writes.jobs().decided(Job::Merge(merge.clone()), VecDeque::new());
    let change = Change::BeginMerge(Arc::new(merge.clone()));
    Ok(writes.enqueue(&mut order, merge, (Some(change), Step::BegunMerge(number)), None))
}

/// Reports that a document of a merge was refused.
pub(crate) fn note_refused(writes: &Writes, place: MergePlace, id: &DocId, error: &str) -> Result<Ticket<()>> {
    let mut order = writes.open_order()?;
    let refused = Report {
        seq: place.source.0,
        id: id.as_str(),
        outcome: "refused",
        verdict: None,
        duplicate_of: None,
        similarity: None,
        representative: None,
        error: Some(error),
    };
    Ok(writes.enqueue_noted(&mut order, (), (None, Step::None), Some(place.merged(&refused)), None))
}

impl MergePlace {
    /// Returns the report of a decision.
    pub(super) fn decided(self, id: &DocId, verdict: &Verdict) -> Arc<Merged> {
        self.merged(&Report {
            seq: self.source.0,
            id: id.as_str(),
            outcome: verdict.outcome.as_str(),
            verdict: Some(verdict.kind.as_str()),
            duplicate_of: verdict.duplicate_of.as_ref().map(DocId::as_str),
            similarity: verdict.similarity.map(ratio),
            representative: verdict.representative.as_ref().map(DocId::as_str),
            error: None,
        })
    }

    fn merged(self, report: &Report<'_>) -> Arc<Merged> {
        let json = serde_json::to_string(report).expect("numbers and strings always serialise");
        let Report { outcome, verdict, .. } = *report;
        Arc::new(Merged { merge: self.merge, source: self.source, outcome, verdict, report: json })
    }
}
