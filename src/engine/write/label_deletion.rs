//! Deletes all documents with a label, as one decision. After its position in the commit order, no decision sees these
//! documents. Once it is durable, no check sees them. Each document leaves its cluster at once, so that the next living
//! document represents the cluster. The removal of the documents from memory and disk follows
//! (`engine/upkeep/removals.rs`), also after a restart.
//!
//! The deletion takes no latches of ids. Therefore an operation on an id checks, under the decision lock, whether the
//! document that it found is still there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::effects::{heir_is_link, leave_cluster, rejoin_cluster};
use super::order::{DoomedDocuments, Order, Step};
use super::rules::{self, Departure, Effect};
use super::ticket::Ticket;
use super::writes::Writes;
use crate::engine::jobs::Part;
use crate::engine::long_work::beside;
use crate::engine::lookup::Lookup;
use crate::index::{LabelSet, Place};
use crate::store::{Change, DoomedPart};
use crate::types::{Job, Label, LabelDeletion, Seq, TimestampMs};
use crate::verdicts::Result;

/// Deletes all documents with a label. The deletion is durable once the ticket resolves.
pub(crate) async fn delete_labelled(writes: &Arc<Writes>, label: Label) -> Result<Ticket<LabelDeletion>> {
    beside(writes, move |writes| {
        let lookup = writes.lookup();
        let _long = writes.hold_long();
        let mut order = writes.open_order()?;
        writes.jobs().admit()?;
        let doomed = doom(lookup, &mut order, &label);
        let now = TimestampMs::now();
        let (number, documents) = (doomed.number, doomed.documents.len() as u64);
        let ended = (documents == 0).then_some(now);
        let deletion = LabelDeletion { number, label, accepted: now, ended, documents, removed: 0 };
        let parts = parts(&doomed);
        let change = Change::DeleteLabelled {
            deletion: Arc::new(deletion.clone()),
            doomed: parts.iter().map(|part| part.doomed.clone()).collect(),
            promoted: doomed.left.iter().filter_map(|left| left.promoted_seq()).collect(),
        };
        writes.jobs().decided(Job::DeleteLabel(deletion.clone()), parts);
        Ok(writes.enqueue(&mut order, deletion, (Some(change), Step::Doomed(Arc::new(doomed))), None))
    })
    .await
}

/// Hides the documents with a label from all decisions.
fn doom(lookup: &Lookup, order: &mut Order, label: &Label) -> DoomedDocuments {
    let index = lookup.index();
    let labelled = index.labelled(label, order.relabelled()).into_iter();
    let living = labelled.filter_map(|(place, labels)| {
        let occupant = index.peek(place).filter(|occupant| occupant.removed == Seq(0))?;
        Some((occupant.seq, place, labels))
    });
    let mut documents: Vec<(Seq, Place, LabelSet)> = living.collect();
    documents.sort_unstable_by_key(|&(seq, ..)| seq);
    let number = order.next();
    for &(_, place, labels) in &documents {
        index.leave(place, number);
        index.count_labels(labels, false);
    }
    // The newest documents leave first. Otherwise a document could become the representative of its cluster and then be
    // deleted itself.
    let mut left = Vec::new();
    for &(seq, ..) in documents.iter().rev() {
        if !order.clusters().has(seq) {
            continue;
        }
        let leaves = rules::of_delete(Some(heir_is_link(lookup, order, seq)));
        let promotes = matches!(leaves, Effect::Remove(Departure { promotes: true }));
        left.push(leave_cluster(lookup, order, (seq, number), Departure { promotes }));
    }
    DoomedDocuments { number, documents, left }
}

/// Undoes [`doom`]. If the deletion is in doubt, the documents that it would delete stay hidden, and the counts of
/// their labels do not include them.
pub(super) fn undo_doom(writes: &Writes, order: &mut Order, doomed: &DoomedDocuments, in_doubt: bool) {
    let lookup = writes.lookup();
    writes.jobs().undone(doomed.number);
    for &left in doomed.left.iter().rev() {
        rejoin_cluster(lookup, order, left);
    }
    for &(seq, place, labels) in &doomed.documents {
        if in_doubt {
            lookup.doubts().add(seq, place, lookup.index().id_fingerprint(place));
            lookup.index().doubt(place);
        } else {
            lookup.index().stay(place);
            lookup.index().count_labels(labels, true);
        }
    }
}

fn parts(doomed: &DoomedDocuments) -> VecDeque<Arc<Part>> {
    let mut places = doomed.documents.iter().map(|&(_, place, _)| place);
    let seqs: Vec<Seq> = doomed.documents.iter().map(|&(seq, ..)| seq).collect();
    let part = |part: DoomedPart| {
        let places = places.by_ref().take(part.seqs.len()).collect();
        Arc::new(Part { doomed: part, places })
    };
    DoomedPart::all(doomed.number, &seqs).into_iter().map(part).collect()
}
