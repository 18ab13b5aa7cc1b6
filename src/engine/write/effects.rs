//! The changes that a decision makes to index, records and clusters. The caller holds the decision lock.

use std::sync::Arc;

use hapax_core::ContentHash;

use super::clusters::Left;
use super::insertion::Insertion;
use super::order::{Order, Step};
use super::rules::{Departure, Held};
use crate::engine::lookup::{Existing, Lookup, Ranked};
use crate::index::{Entry, LabelSet, PLACES_MAX, Place};
use crate::store::{Additions, Change, Record, StoredMatch, StoredVerdict, id_fingerprint};
use crate::types::{Seq, TimestampMs, retry_after};
use crate::verdicts::{CollectionError, Findings, Result};

/// A document to store.
pub(super) struct NewDocument<'a> {
    pub insertion: &'a Insertion,
    /// The document that is replaced, and how it leaves the collection.
    pub replaces: Option<(&'a Existing, Departure)>,
    /// The verdict on the new document. It is stored so that the same verdict can be given again.
    pub verdict: StoredVerdict,
    pub linked: bool,
    pub labels: LabelSet,
    /// The representative of the cluster that the new document joins.
    pub joins: Option<(Seq, Place)>,
}

/// Stores a document, and removes the one that it replaces.
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
        labels: new.labels,
        last_seen: now,
    };
    let Some(place) = lookup.index().enter(entry) else {
        lookup.index().release_labels(new.labels);
        return Err(full());
    };
    order.next();
    lookup.index().count_labels(new.labels, true);
    if let Some(existing) = existing {
        leave_labels(lookup, &existing.record);
    }
    let left =
        replaces.map(|(existing, departure)| leave_cluster(lookup, order, (existing.record.seq, seq), departure));
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

/// Makes the record of a document that has entered the index.
fn record(new: NewDocument<'_>, entry: Entry<'_>, cluster: Seq) -> Record {
    let Entry { seq, id_fingerprint, last_seen: now, .. } = entry;
    let NewDocument { insertion, replaces, verdict, linked, .. } = new;
    let made = &insertion.made;
    let Additions { metadata, labels, capture, page } = insertion.additions(None);
    Record {
        seq,
        id: insertion.id.clone(),
        id_fingerprint,
        signature: made.signature.clone(),
        content: made.content.unwrap_or(ContentHash(0)),
        given: made.content.is_none(),
        linked,
        metadata,
        labels,
        capture,
        first_seen: now,
        id_first_seen: replaces.map_or(now, |(existing, _)| existing.record.id_first_seen),
        seen: now,
        cluster,
        shingles: insertion.shingles,
        page,
        verdict,
        payload: made.kept.as_ref().and_then(|kept| kept.payload.clone()),
    }
}

fn full() -> CollectionError {
    CollectionError::Overloaded {
        detail: format!("the collection is full: it can have at most {PLACES_MAX} documents"),
        retry_after: retry_after::OPERATOR,
    }
}

/// Stops counting a document for its labels when its removal is decided.
fn leave_labels(lookup: &Lookup, record: &Record) {
    lookup.index().count_labels(lookup.index().known_labels(record.labels.as_ref()), false);
}

/// Removes a document without replacing it.
pub(super) fn remove(lookup: &Lookup, order: &mut Order, existing: &Existing, departure: Departure) -> (Change, Step) {
    let Existing { place, ref record } = *existing;
    let seq = order.next();
    lookup.index().leave(place, seq);
    leave_labels(lookup, record);
    let left = leave_cluster(lookup, order, (record.seq, seq), departure);
    lookup.records().leaves(Arc::clone(record));
    (Change::Delete { seq, target: record.seq, promoted: left.promoted_seq() }, Step::Removed { place, left })
}

/// Returns the facts that the rules need about the document that holds an id. Call it only if the content of that
/// document differs from the content that was sent.
pub(super) fn held(lookup: &Lookup, order: &Order, existing: Option<&Existing>) -> Held {
    existing.map_or(Held::Nothing, |existing| Held::Other {
        heir_is_link: heir_is_link(lookup, order, existing.record.seq),
    })
}

/// Returns whether a document represents a cluster whose next document is a link.
pub(super) fn heir_is_link(lookup: &Lookup, order: &Order, seq: Seq) -> bool {
    let heir = order.clusters().heir(seq);
    heir.is_some_and(|(_, place)| lookup.index().is_link(place))
}

/// Removes a document from its cluster, at a position in the commit order. If the next representative of the cluster is
/// a link, it becomes an ordinary document at the same position. If it stayed a link, a lookup might find no document
/// of the cluster.
pub(super) fn leave_cluster(lookup: &Lookup, order: &mut Order, (seq, at): (Seq, Seq), departure: Departure) -> Left {
    let (left, next) = order.clusters_mut().leave(seq);
    let promoted = next.filter(|_| departure.promotes);
    if let Some((_, place)) = promoted {
        lookup.index().promote(place, at);
    }
    left.promoting(promoted)
}

/// Undoes [`leave_cluster`], if the decision is undone.
pub(super) fn rejoin_cluster(lookup: &Lookup, order: &mut Order, left: Left) {
    if let Some((_, place)) = left.promoted() {
        lookup.index().demote(place);
    }
    order.clusters_mut().rejoin(left);
}

/// Removes a document from its cluster, the index and the records. The document was never durable. Documents that
/// joined its cluster later have been undone already.
pub(super) fn withdraw(lookup: &Lookup, order: &mut Order, place: Place) {
    lookup.index().count_labels(lookup.index().labels_at(place), false);
    let seq = lookup.index().withdraw(place);
    order.clusters_mut().leave(seq);
    lookup.records().forget(seq);
}

/// Notes that a document was seen now. The caller holds its id's latch or the decision lock, so the document stays at
/// its place.
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

/// Returns the verdict in its stored form. It is stored so that the same verdict can be given again.
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
