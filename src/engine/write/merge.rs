//! Merges: another collection's documents are inserted into this one, in order of `seq`. The decision on each document
//! is written together with its report and the progress of the merge, so after a crash no document is decided a second
//! time. Clusters are never merged (`clusters.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::merge_place::MergePlace;
use super::order::Step;
use super::ticket::Ticket;
use super::writes::Writes;
use crate::store::Change;
use crate::types::{DocId, Job, Merge, MergeSource, OnDuplicate, OnExisting, Seq, TimestampMs};
use crate::verdicts::{CollectionError, Result};

/// A merge to begin.
#[derive(Clone, Debug)]
pub(crate) struct MergeAsked {
    pub source: MergeSource,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
}

/// Begins a merge, or returns the running merge of the same collection with the same options. The merge is durable once
/// the ticket resolves.
pub(crate) fn begin_merge(writes: &Writes, asked: MergeAsked) -> Result<Ticket<Merge>> {
    let mut order = writes.open_order()?;
    if let Some(running) = writes.jobs().merge_from(&asked.source) {
        if (running.on_duplicate, running.on_existing) != (asked.on_duplicate, asked.on_existing) {
            return Err(CollectionError::MergeRunning {
                from: running.source.name,
                on_duplicate: running.on_duplicate,
                on_existing: running.on_existing,
            });
        }
        return Ok(writes.enqueue(&mut order, running, (None, Step::None), None));
    }
    writes.jobs().admit()?;
    let MergeAsked { source, on_duplicate, on_existing } = asked;
    let number = order.next();
    let merge = Merge {
        number,
        source,
        after: Seq(0),
        on_duplicate,
        on_existing,
        accepted: TimestampMs::now(),
        ended: None,
        aborted: None,
        outcomes: BTreeMap::new(),
        verdicts: BTreeMap::new(),
    };
    writes.jobs().decided(Job::Merge(merge.clone()), VecDeque::new());
    let change = Change::BeginMerge(Arc::new(merge.clone()));
    Ok(writes.enqueue(&mut order, merge, (Some(change), Step::BegunMerge(number)), None))
}

/// Reports that a document of a merge was refused.
pub(crate) fn note_refused(writes: &Writes, place: MergePlace, id: &DocId, error: &str) -> Result<Ticket<()>> {
    let mut order = writes.open_order_of(Some(place))?;
    Ok(writes.enqueue_noted(&mut order, (), (None, Step::None), (Some(place.refused(id, error)), false), None))
}
