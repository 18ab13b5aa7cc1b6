//! Documents that are removed: deleted by a client, replaced by an empty document, or expired.

use std::sync::Arc;

use super::effects::{heir_is_link, held, remove};
use super::holder::Holder;
use super::id_turn::WriteTurn;
use super::lock::OpenOrder;
use super::order::{Order, Step};
use super::rules::{self, Departure, Effect};
use super::ticket::Ticket;
use super::writes::Writes;
use crate::engine::long_work::beside;
use crate::engine::lookup::Existing;
use crate::engine::meters::Op;
use crate::types::{DocId, OnExisting, Outcome, Verdict};
use crate::verdicts::{Result, empty_verdict};

/// Deletes the document with this id. The ticket says whether there was one.
pub(crate) async fn delete(writes: &Arc<Writes>, id: DocId) -> Result<Ticket<bool>> {
    let turn = writes.turns().take(&id).await?;
    beside(writes, move |writes| {
        // The decision lock is taken even if there is nothing to delete. If writes are refused, this returns the error:
        // a failed insert of this id may be on disk.
        let (existing, mut order) = found_and_open(writes, &id)?;
        let leaves = existing.as_ref().map(|existing| heir_is_link(writes.lookup(), &order, existing.record.seq));
        Ok(match (rules::of_delete(leaves), existing) {
            (Effect::Remove(departure), Some(existing)) => {
                decide_removal(writes, &mut order, &existing, departure, turn)
            }
            // The answer waits for a deletion by label that may have removed the document.
            _ => writes.enqueue(&mut order, false, (None, Step::None), turn),
        })
    })
    .await
}

/// Inserts a document without a token. It is never stored; at most, the id's earlier content is removed.
pub(crate) async fn insert_empty(
    writes: &Arc<Writes>,
    id: DocId,
    on_existing: OnExisting,
    is_too_short: bool,
) -> Result<Ticket<Verdict>> {
    let mut ticket = match on_existing {
        OnExisting::Conflict | OnExisting::Keep => {
            let threshold = writes.lookup().policy().settings.threshold;
            let verdict = empty_verdict(Some(id), Outcome::Skipped, threshold, None);
            Ticket::ready(verdict, writes.lookup().durable())
        }
        OnExisting::Replace => {
            let turn = writes.turns().take(&id).await?;
            beside(writes, move |writes| decide_emptying(writes, id, turn)).await?
        }
    };
    ticket.value_mut().is_too_short = is_too_short;
    writes.lookup().meters().verdict(Op::Insert, ticket.value());
    Ok(ticket)
}

fn decide_emptying(writes: &Writes, id: DocId, turn: WriteTurn) -> Result<Ticket<Verdict>> {
    let lookup = writes.lookup();
    let threshold = lookup.policy().settings.threshold;
    let (existing, mut order) = found_and_open(writes, &id)?;
    let plan = rules::of_empty(OnExisting::Replace, held(lookup, &order, existing.as_ref()));
    let replaced = existing.as_ref().map(|existing| existing.record.first_seen);
    let outcome = plan.result.expect("an empty document is never refused");
    let verdict = empty_verdict(Some(id), outcome, threshold, replaced);
    match (plan.effect, existing) {
        (Effect::Remove(departure), Some(existing)) => {
            let (change, step) = remove(lookup, &mut order, &existing, departure);
            Ok(writes.enqueue(&mut order, verdict, (Some(change), step), turn))
        }
        _ => Ok(writes.enqueue(&mut order, verdict, (None, Step::None), turn)),
    }
}

/// Finds the document that holds an id, and takes the decision lock. The caller holds the id's latch.
fn found_and_open<'a>(writes: &'a Writes, id: &DocId) -> Result<(Option<Existing>, OpenOrder<'a>)> {
    loop {
        let holder = Holder::find(writes, id)?;
        let order = writes.open_order()?;
        if holder.is_current(writes) {
            return Ok((holder.existing, order));
        }
    }
}

/// Deletes an expired document. Does nothing if another operation on its id is in progress; the next round tries again.
/// `is_due` is called under the decision lock, so its answer cannot change before the delete.
pub(crate) fn expire(writes: &Writes, existing: &Existing, is_due: impl Fn() -> bool) -> Result<Option<Ticket<bool>>> {
    let Some(turn) = writes.turns().try_take(&existing.record.id) else { return Ok(None) };
    let mut order = writes.open_order()?;
    if !is_due() {
        return Ok(None);
    }
    let leaves = heir_is_link(writes.lookup(), &order, existing.record.seq);
    let Effect::Remove(departure) = rules::of_delete(Some(leaves)) else {
        unreachable!("an existing document is removed")
    };
    Ok(Some(decide_removal(writes, &mut order, existing, departure, turn)))
}

fn decide_removal(
    writes: &Writes,
    order: &mut Order,
    existing: &Existing,
    departure: Departure,
    turn: WriteTurn,
) -> Ticket<bool> {
    let (change, step) = remove(writes.lookup(), order, existing, departure);
    writes.enqueue(order, true, (Some(change), step), turn)
}
