//! Inserts content that the id already holds. At most, its metadata, its labels, its capture and the page that it came
//! from change.

use super::effects::touch;
use super::holder::Holder;
use super::id_turn::WriteTurn;
use super::insertion::Insertion;
use super::order::{Relabelling, Step};
use super::rules::{self, Effect, Held, Plan, SeenAgain, SentBeside};
use super::ticket::Ticket;
use super::writes::Writes;
use crate::engine::lookup::{Existing, Lookup, Mentions, cited_again, representative_of};
use crate::index::Place;
use crate::store::{Additions, Change, Record, StoredVerdict, id_fingerprint};
use crate::types::{LookupTimes, Outcome, Revisit, Seq, Verdict};
use crate::verdicts::{Attached, Findings, Result, VerdictContext};

/// Repeats the document's first verdict. If metadata or labels are left out, they stay as they are; `{}` clears them.
/// Returns `None` if this document no longer holds the id.
pub(super) fn repeat(
    writes: &Writes,
    (holder, existing): (&Holder, &Existing),
    insertion: &Insertion,
    turn: &mut Option<WriteTurn>,
) -> Result<Option<Ticket<Verdict>>> {
    let lookup = writes.lookup();
    let (findings, context) = first_verdict(lookup, &existing.record, insertion)?;
    let (seq, held) = (existing.record.seq, existing.record.additions());
    let joined = insertion.additions(Some(held.clone()));
    let sent = sent_beside(&insertion.attached, &joined, &held);
    let Additions { labels, page, .. } = &joined;
    let was_duplicate = existing.record.verdict.duplicate_of.is_some();
    let mut order = writes.open_order_of(insertion.merge)?;
    if !holder.is_current(writes) {
        return Ok(None);
    }
    let terms = insertion.terms(lookup.policy().settings.touch);
    let plan = rules::before_lookup(terms, Held::Same { sent, was_duplicate });
    let Some(Plan { result: Ok(outcome), effect, seen_again, .. }) = plan else {
        unreachable!("content that is held is answered before the lookup")
    };
    let updates = effect == Effect::Update;
    let set = if updates && *labels != held.labels {
        Some(lookup.hold_labels(labels.as_ref(), held.labels.as_ref())?)
    } else {
        None
    };
    see(lookup, existing, seen_again);
    let verdict = findings.verdict(VerdictContext { outcome, ..context });
    // The same text may come from another page, for example with another menu. The mark of that page is stored, so that
    // the page is recognised when it is sent again.
    let is_same_page = page.zip(held.page).is_some_and(|(sent, held)| sent.hash == held.hash);
    let page = if is_same_page { held.page } else { *page };
    let (merged, patient) = (insertion.merged(&verdict), insertion.options.patient);
    if !updates && page == held.page {
        return Ok(Some(match merged {
            None => Ticket::ready(verdict, lookup.durable()),
            merged => writes.enqueue_noted(&mut order, verdict, (None, Step::None), (merged, patient), turn.take()),
        }));
    }
    let had = held.labels.clone();
    let additions = if updates { Additions { page, ..joined } } else { Additions { page, ..held } };
    let change = Change::Update { seq: order.next(), target: seq, additions: Box::new(additions.clone()) };
    lookup.records().updates(seq, additions);
    let labels = set.map(|to| {
        let relabelling = Relabelling { place: existing.place, from: lookup.index().known_labels(had.as_ref()), to };
        relabelling.decided(lookup, &mut order);
        relabelling
    });
    let step = Step::Updated { seq, labels };
    Ok(Some(writes.enqueue_noted(&mut order, verdict, (Some(change), step), (merged, patient), turn.take())))
}

/// Compares the data that was sent with the data that is held. `merged` is the combination of both.
fn sent_beside(sent: &Attached, merged: &Additions, held: &Additions) -> SentBeside {
    let Attached { metadata, labels, capture } = sent;
    if metadata.is_none() && labels.is_none() && capture.is_empty() {
        return SentBeside::Absent;
    }
    let of_held = (&held.metadata, &held.labels, &held.capture);
    if (&merged.metadata, &merged.labels, &merged.capture) == of_held { SentBeside::Equal } else { SentBeside::Other }
}

/// Returns the first verdict without the documents that no longer exist.
fn first_verdict(lookup: &Lookup, record: &Record, insertion: &Insertion) -> Result<(Findings, VerdictContext)> {
    let StoredVerdict { kind, duplicate_of, threshold, candidates, unread, matches } = &record.verdict;
    let with_metadata = insertion.options.with_metadata;
    let best = matches.first();
    let mut mentions = Mentions::default();
    let missing = lookup.records().recall(&mut mentions, matches.iter().map(|found| found.seq), false);
    let digest = insertion.payload_digest();
    lookup.records().load(&mut mentions, &missing, insertion.metadata_bytes(), digest.is_some())?;
    // Records of deleted documents may still be in memory and on disk, so a record does not prove that its document
    // still exists.
    let (_reading, view) = lookup.read();
    let lives = |seq: Seq| {
        let index = lookup.index();
        let is_it = |&place: &Place| index.peek(place).is_some_and(|held| held.seq == seq && view.sees(&held));
        mentions.get(seq).is_some_and(|mention| index.held_by(id_fingerprint(&mention.identity.id)).iter().any(is_it))
    };
    let matches: Vec<_> = matches.iter().filter(|found| lives(found.seq)).collect();
    let revisit = digest.and_then(|digest| {
        let of_matches = matches.iter().filter_map(|found| mentions.get(found.seq)?.revisit(digest));
        let own = Revisit::of(&record.capture, &record.id, digest);
        let own = own.filter(|own| !own.is_of(&record.id, &insertion.attached.capture));
        Revisit::best(own.into_iter().chain(of_matches))
    });
    let shown = matches.iter().take(insertion.options.limit);
    let cited = shown.filter_map(|found| cited_again(found, &mentions, with_metadata));
    let similarity = best.map(|best| lookup.similarity(best.matching, best.exact, best.overlap).value);
    let findings = Findings::again(lookup.preparer().spec(), (*kind, duplicate_of.clone(), similarity), cited);
    let context = VerdictContext {
        outcome: Outcome::Unchanged,
        stored: true,
        id: Some(record.id.clone()),
        representative: representative_of(lookup, record)?,
        threshold: *threshold,
        candidates: *candidates,
        unread: *unread,
        shingles: record.shingles,
        previous: None,
        expected_recall: None,
        times: LookupTimes::default(),
        explanation: None,
    };
    Ok((findings.with_revisit(revisit), context))
}

/// Notes that a document was seen because it was inserted again unchanged. If it was found to duplicate another
/// document, notes the same for the other document.
fn see(lookup: &Lookup, existing: &Existing, seen_again: SeenAgain) {
    if seen_again.held {
        touch(lookup, existing.place);
    }
    let verdict = &existing.record.verdict;
    if let (true, Some(original), Some(best)) = (seen_again.best, &verdict.duplicate_of, verdict.matches.first()) {
        let index = lookup.index();
        let places = index.held_by(id_fingerprint(original));
        // If another document takes over the place at this moment, it gets a slightly later last-seen time. That is
        // harmless.
        let holds_it = |place: &&Place| index.peek(**place).is_some_and(|held| held.seq == best.seq);
        places.iter().filter(holds_it).for_each(|&place| touch(lookup, place));
    }
}
