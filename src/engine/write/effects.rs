//! What a decision does to index, records and clusters. The caller holds the decision lock.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::ContentHash;

use super::clusters::Left;
use super::decision::{Departure, Held};
use super::insertion::Insertion;
use super::order::{Order, Step};
use crate::engine::lookup::{Existing, Lookup, Ranked};
use crate::index::{Entry, PLACES_MAX, Place};
use crate::store::{Change, Record, StoredMatch, StoredVerdict, id_fingerprint};
use crate::types::{Seq, TimestampMs};
use crate::verdicts::{CollectionError, Findings, Result};

/// A document that is to be stored.
pub(super) struct NewDocument<'a> {
    pub insertion: &'a Insertion,
    /// The document that it replaces, and how that leaves.
    pub replaces: Option<(&'a Existing, Departure)>,
    /// Its verdict, to be told again.
    pub verdict: StoredVerdict,
    /// Whether it is stored as a link.
    pub linked: bool,
    /// The representative of the cluster that it joins.
    pub joins: Option<(Seq, Place)>,
}

/// Stores a document, in place of the one that held its id.
pub(super) fn store(lookup: &Lookup, order: &mut Order, new: NewDocument<'_>) -> Result<(Change, Step)> {
    let NewDocument { insertion, replaces, linked, joins, .. } = new;
    let existing = replaces.map(|(existing, _)| existing);
    let (now, seq, made) = (TimestampMs::now(), order.upcoming(), &insertion.made);
    let entry = Entry {
        seq,
        id_fingerprint: id_fingerprint(&insertion.id),
        content: made.content_prefix(),
        linked,
        signature: &made.signature,
        last_seen: now,
    };
    let place = lookup.index().enter(entry).ok_or_else(full)?;
    order.next();
    let left = replaces.map(|(existing, departure)| leave_cluster(lookup, order, existing.record.seq, departure));
    let cluster = joins.map(|found| order.clusters_mut().join(seq, place, found));
    let record = Arc::new(record(new, entry, cluster.unwrap_or_default()));
    let kept = insertion.made.kept.clone();
    lookup.records().decided(Arc::clone(&record), kept, insertion.room.clone());
    let change = match existing {
        Some(existing) => {
            lookup.records().leaves(Arc::clone(&existing.record));
            lookup.index().leave(existing.place, seq);
            let promoted = left.and_then(Left::promoted_seq);
            Change::Replace { record, target: existing.record.seq, promoted }
        }
        None => Change::Insert(record),
    };
    let replaced = existing.map(|existing| existing.place).zip(left);
    Ok((change, Step::Added { place, linked, replaced }))
}

/// What is stored of a document that has entered the index.
fn record(new: NewDocument<'_>, entry: Entry<'_>, cluster: Seq) -> Record {
    let Entry { seq, id_fingerprint, last_seen: now, .. } = entry;
    let NewDocument { insertion, replaces, verdict, linked, .. } = new;
    let made = &insertion.made;
    Record {
        seq,
        id: insertion.id.clone(),
        id_fingerprint,
        signature: made.signature.clone(),
        content: made.content.unwrap_or(ContentHash(0)),
        given: made.content.is_none(),
        linked,
        metadata: insertion.metadata.clone().filter(|metadata| !metadata.is_empty()),
        first_seen: now,
        id_first_seen: replaces.map_or(now, |(existing, _)| existing.record.id_first_seen),
        seen: now,
        cluster,
        shingles: insertion.shingles,
        verdict,
        payload: made.kept.as_ref().and_then(|kept| kept.payload.clone()),
    }
}

fn full() -> CollectionError {
    CollectionError::Overloaded {
        detail: format!("the collection holds {PLACES_MAX} documents, the most it can"),
        retry_after: Duration::from_secs(60),
    }
}

/// A document goes, and nothing takes its place.
pub(super) fn remove(lookup: &Lookup, order: &mut Order, existing: &Existing, departure: Departure) -> (Change, Step) {
    let Existing { place, ref record } = *existing;
    let seq = order.next();
    lookup.index().leave(place, seq);
    let left = leave_cluster(lookup, order, record.seq, departure);
    lookup.records().leaves(Arc::clone(record));
    (Change::Delete { seq, target: record.seq, promoted: left.promoted_seq() }, Step::Removed { place, left })
}

/// What the rules know of a document that holds an id, whose content is not the one that was sent.
pub(super) fn held(lookup: &Lookup, order: &Order, existing: Option<&Existing>) -> Held {
    existing.map_or(Held::Nothing, |existing| Held::Other { heir_is_link: heir_is_link(lookup, order, existing) })
}

/// Whether a document represents a cluster whose next document is a link.
pub(super) fn heir_is_link(lookup: &Lookup, order: &Order, existing: &Existing) -> bool {
    let heir = order.clusters().heir(existing.record.seq);
    heir.and_then(|(_, place)| lookup.index().peek(place)).is_some_and(|occupant| occupant.linked)
}

/// Takes a document out of its cluster. A link that is the first after it gets postings at once: nothing else of the
/// cluster might be found any more. Checks pass over it, as over what is not durable, until it is none on disk.
fn leave_cluster(lookup: &Lookup, order: &mut Order, seq: Seq, departure: Departure) -> Left {
    let (left, next) = order.clusters_mut().leave(seq);
    let promoted = next.filter(|_| departure.promotes);
    if let Some((_, place)) = promoted {
        lookup.index().set_findable(place, true);
    }
    left.promoting(promoted)
}

/// Takes that back, if the decision is undone.
pub(super) fn rejoin_cluster(lookup: &Lookup, order: &mut Order, left: Left) {
    if let Some((_, place)) = left.promoted() {
        lookup.index().set_findable(place, false);
    }
    order.clusters_mut().rejoin(left);
}

/// Takes a document that was never durable out of its cluster, the index and the records. What joined it later is
/// undone already.
pub(super) fn withdraw(lookup: &Lookup, order: &mut Order, place: Place) {
    let seq = lookup.index().withdraw(place);
    order.clusters_mut().leave(seq);
    lookup.records().forget(seq);
}

/// The promotion is on disk: what was a link is an ordinary document for everybody.
pub(super) fn promote(lookup: &Lookup, left: Left) {
    let Some((seq, place)) = left.promoted() else { return };
    lookup.index().set_linked(place, false);
    lookup.records().unlink(seq);
}

/// A document was seen. The caller knows that it stays at its place meanwhile, by its id's latch or the decision lock.
pub(super) fn touch(lookup: &Lookup, place: Place) {
    let ttl = lookup.policy().settings.ttl;
    let touched = match (lookup.index().last_seen(), ttl) {
        (Some(times), Some(ttl)) => times.touch(place, TimestampMs::now(), ttl),
        _ => false,
    };
    if touched {
        lookup.meters().touched.increment(1);
    }
}

/// A verdict as it is told again.
pub(super) fn stored_verdict(
    findings: &Findings,
    threshold: f64,
    (candidates, unread): (u32, u64),
    cited: &[Ranked],
) -> StoredVerdict {
    let exact = |at: usize| findings.matches().get(at).is_some_and(|found| found.same_content);
    let matches = cited.iter().enumerate().map(|(at, &Ranked { found, overlap })| StoredMatch {
        seq: found.seq,
        matching: found.matching,
        exact: exact(at),
        overlap,
    });
    StoredVerdict {
        kind: findings.kind(),
        duplicate_of: findings.duplicate_of().cloned(),
        threshold,
        candidates,
        unread,
        matches: matches.collect(),
    }
}
