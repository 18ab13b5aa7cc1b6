//! What the disk refused is undone: every decision that is not durable, newest first, so that each finds the index as
//! it left it.

use super::effects::{rejoin_cluster, withdraw};
use super::order::{Order, QueuedWrite, Step, Work};
use super::state::Writes;
use crate::engine::lookup::Lookup;
use crate::index::Place;
use crate::store::StoreError;
use crate::verdicts::{CollectionError, WriteFailure};

/// Undoes these decisions and all in the queue. The lock is held throughout: no later decision sees any of what is
/// undone.
pub(super) fn undo(writes: &Writes, failed: Vec<QueuedWrite>, error: &StoreError) {
    let lookup = writes.lookup();
    // What was still in the queue has not been near the disk.
    let (tried, uncertain) = (failed.len(), error.is_uncertain());
    let mut decisions = failed;
    let mut order = writes.order();
    for work in std::mem::take(order.queue()) {
        match work {
            Work::Write(decision) => decisions.push(decision),
            // New settings and last-seen times rest on no decision.
            other @ (Work::Settings { .. } | Work::LastSeen(_)) => order.queue().push_back(other),
        }
    }
    refuse_if_uncertain(&mut order, error);
    for (at, decision) in decisions.iter().enumerate().rev() {
        undo_step(lookup, &mut order, decision.step, uncertain && at < tried);
    }
    // Nothing up to here is undecided any more. The numbers are not given out again.
    lookup.set_durable(order.last());
    drop(order);
    for decision in decisions {
        drop(decision.answer.send(Err(write_failed(error))));
    }
}

fn undo_step(lookup: &Lookup, order: &mut Order, step: Step, in_doubt: bool) {
    match step {
        Step::None => {}
        Step::Updated { seq } => lookup.records().not_updated(seq),
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

/// Takes a deletion or replacement back, or notes that it is unclear what became of it.
fn stay(lookup: &Lookup, place: Place, in_doubt: bool) {
    let occupant = lookup.index().peek(place).expect("what leaves keeps its place until that is durable");
    let record = lookup.records().stays(occupant.seq);
    if in_doubt {
        lookup.doubts().add(occupant.seq, place, record.id.clone());
        lookup.index().doubt(place);
    } else {
        lookup.index().stay(place);
    }
}

/// What was undone or refused may be on disk all the same. No answer may rest on either before the file is opened again.
pub(super) fn refuse_if_uncertain(order: &mut Order, error: &StoreError) {
    if error.is_uncertain() {
        order.refuse(format!(
            "an earlier write failed so that nobody can tell what is on disk; restart to write again ({error})"
        ));
    }
}

/// What a client is told whose write the disk refused.
pub(super) fn write_failed(error: &StoreError) -> CollectionError {
    // If the writer is poisoned, an earlier write was the uncertain one.
    let uncertain = error.is_uncertain() || matches!(error, StoreError::Poisoned { .. });
    let why = if uncertain { WriteFailure::Uncertain } else { WriteFailure::NothingKept };
    CollectionError::write_failed(why, error)
}
