//! If the disk refuses a write, undoes all decisions that are not durable. The newest decision is undone first. So when
//! a decision is undone, the index is in the state in which the decision left it.

use super::effects::{rejoin_cluster, withdraw};
use super::label_deletion::undo_doom;
use super::order::{Order, QueuedWrite, Step, Work};
use super::writes::Writes;
use crate::engine::lookup::Lookup;
use crate::index::Place;
use crate::store::StoreError;
use crate::verdicts::{CollectionError, WriteFailure};

/// Undoes these decisions and all in the queue. The lock is held throughout, so no later decision sees anything that is
/// undone.
pub(super) fn undo(writes: &Writes, failed: Vec<QueuedWrite>, error: &StoreError) {
    let lookup = writes.lookup();
    // Only these decisions were sent to the disk; those still in the queue were not.
    let (tried, uncertain) = (failed.len(), error.is_uncertain());
    let mut decisions = failed;
    let mut order = writes.order();
    for work in std::mem::take(order.queue()) {
        match work {
            Work::Write(decision) => decisions.push(decision),
            // Other entries depend on no decision.
            other @ (Work::Alone { .. } | Work::LastSeen(_)) => order.queue().push_back(other),
        }
    }
    refuse_if_uncertain(&mut order, error);
    for (at, decision) in decisions.iter().enumerate().rev() {
        undo_step(writes, &mut order, &decision.step, uncertain && at < tried);
    }
    // This count changes last. Other threads may have looked for documents without the lock while some decisions were
    // undone. They see that the count has changed, and look again.
    writes.note_undone();
    // Every decision up to here is settled. The numbers of these decisions are not assigned again.
    lookup.set_durable(order.last());
    drop(order);
    for (at, decision) in decisions.into_iter().enumerate() {
        let failed = if at < tried && tried == 1 { alone_failed(error) } else { write_failed(error) };
        drop(decision.answer.send(Err(failed)));
    }
}

fn undo_step(writes: &Writes, order: &mut Order, step: &Step, in_doubt: bool) {
    let lookup = writes.lookup();
    match *step {
        Step::None => {}
        Step::Updated { seq, labels } => {
            lookup.records().not_updated(seq);
            if let Some(labels) = labels {
                labels.undone(lookup, order);
            }
        }
        Step::BegunMerge(number) => writes.jobs().undone(number),
        Step::Doomed(ref doomed) => undo_doom(writes, order, doomed, in_doubt),
        Step::Added { place, replaced, .. } => {
            withdraw(lookup, order, place);
            if let Some((replaced, left)) = replaced {
                stay(lookup, replaced, in_doubt);
                rejoin_cluster(lookup, order, left);
            }
        }
        Step::Removed { place, left } => {
            stay(lookup, place, in_doubt);
            rejoin_cluster(lookup, order, left);
        }
    }
}

/// Undoes a deletion or replacement, or marks the document as being in doubt if the outcome on disk is unknown.
fn stay(lookup: &Lookup, place: Place, in_doubt: bool) {
    let occupant = lookup.index().peek(place).expect("a leaving document keeps its place until its removal is durable");
    let record = lookup.records().stays(occupant.seq);
    if in_doubt {
        lookup.doubts().add(occupant.seq, place, record.id_fingerprint);
        lookup.index().doubt(place);
    } else {
        lookup.index().stay(place);
        lookup.index().count_labels(lookup.index().known_labels(record.labels.as_ref()), true);
    }
}

/// Refuses writes until the file is opened again, if the failed write may be on disk. No answer may depend on such a
/// write.
pub(super) fn refuse_if_uncertain(order: &mut Order, error: &StoreError) {
    if error.is_uncertain() {
        order.refuse(format!(
            "an earlier write failed and may or may not be on disk; restart the server to write again ({error})"
        ));
    }
}

/// Returns the error for the client of a write that was the only one in a failed transaction. If the transaction failed
/// on damaged data, this write needs that data, and would fail again.
pub(super) fn alone_failed(error: &StoreError) -> CollectionError {
    match error {
        StoreError::Damaged { collection, record, detail } => {
            CollectionError::Damaged { collection: collection.clone(), record: *record, detail: detail.clone() }
        }
        _ => write_failed(error),
    }
}

/// Returns the error for the client whose write the disk refused.
pub(super) fn write_failed(error: &StoreError) -> CollectionError {
    // If the writer is poisoned, the write with the unknown outcome was an earlier one.
    let uncertain = error.is_uncertain() || matches!(error, StoreError::Poisoned { .. });
    let why = if uncertain { WriteFailure::Uncertain } else { WriteFailure::NothingKept };
    CollectionError::write_failed(why, error)
}
