//! The history of a round: each call with its answer and the times of both, by one clock. It is judged cell by cell.
//!
//! PROMISES.md does not promise that everything is linearizable. This is what the judge leaves out, or judges less
//! strictly:
//!
//! - *A check or a deletion that finds nothing, and a read by an id, are not confirmed*: a primary that was just replaced
//!   may answer them, and a failover may undo what they have shown. They are judged only if they were sent in the quiet
//!   time at the end of a round, when all nodes are well and no failover can follow.
//! - *A primary that was cut off answers until it notices that it is alone.* So a check or an insertion that names a
//!   document, or an insertion that is refused because of another one, may tell of a document that was deleted
//!   meanwhile. The same is true for a primary that was paused. If such an answer arrived when a primary may have been
//!   cut off or paused, the document must have been stored at some time since this began, and not during the call.
//! - *An insertion that removes the document of its id (`removed`) takes two steps*: it finds the document of which it is
//!   a duplicate, and then it deletes the one of its id.
//! - An operation without a certain answer may take effect at any time after it was sent, or never. It may also be the
//!   reason for the answer to a later one.
//!
//! An operation that was refused (`store_unavailable`, `memory_budget_reached`) must have had no effect.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calls::{Call, CellNumber, Named, Said};
use super::cell::{Cell, Event, State};
use crate::support::orders::{Operation, has_order, told};

/// A call and its answer. Times are counted from the beginning of the run.
#[derive(Clone, Debug)]
pub struct Record {
    pub cell: CellNumber,
    pub call: Call,
    pub said: Said,
    pub begin: Duration,
    pub end: Duration,
}

/// What must be known of a round to judge its answers.
#[derive(Clone, Debug)]
pub struct Times {
    /// When a primary may have been cut off or paused.
    pub stale: Vec<(Duration, Duration)>,
    /// Since when all nodes are well.
    pub quiet: Duration,
}

impl Times {
    /// Returns since when a document that an answer names may have been stored.
    fn since(&self, Record { begin, end, .. }: &Record) -> Duration {
        let stale = self.stale.iter().filter(|(from, to)| from <= end && begin <= to);
        stale.map(|&(from, _)| from).chain([*begin]).min().expect("it has a beginning")
    }
}

/// Returns what a cell has done in a call. Nothing: it is not known. An error: the answer names a document of another
/// cell.
fn operations(record: &Record, times: &Times) -> Result<Vec<Operation<Event>>, String> {
    let Record { cell, call, said, begin, end } = record;
    let own = |&(of, id): &Named| {
        if of == *cell { Ok(id) } else { Err(format!("it names a document that is not similar: {record:?}")) }
    };
    let is_quiet = *begin >= times.quiet;
    let certain = |event| Operation { event, begin: *begin, end: Some(*end) };
    let uncertain = |event| Operation { event, begin: *begin, end: None };
    let since = |event| Operation { event, begin: times.since(record), end: Some(*end) };
    Ok(match (*call, said) {
        (Call::Insert { id, doc, .. }, Said::Stored) => vec![certain(Event::Stored(id, doc))],
        (Call::Insert { id, doc, .. }, Said::Repeated) => vec![certain(Event::Repeated(id, doc))],
        (Call::Insert { id, doc, .. }, Said::Replaced) => vec![certain(Event::Replaced(id, doc))],
        (Call::Insert { id, doc, .. }, Said::Removed(by)) => {
            vec![since(Event::Named(own(by)?, doc.group)), certain(Event::Deleted(id))]
        }
        (Call::Insert { id, doc, replaces: false }, Said::Uncertain(_)) => vec![uncertain(Event::Stored(id, doc))],
        (Call::Insert { id, doc, replaces: true }, Said::Uncertain(_)) => {
            vec![uncertain(Event::Put(id, doc)), uncertain(Event::Deleted(id))]
        }
        (Call::Insert { doc, .. } | Call::Check(doc), Said::Named(named)) => {
            vec![since(Event::Named(own(named)?, doc.group))]
        }
        (Call::Insert { id, doc, .. }, Said::Conflict) => vec![since(Event::Conflicted(id, doc))],
        (Call::Delete(id), Said::Deleted) => vec![certain(Event::Deleted(id))],
        (Call::Delete(id), Said::Uncertain(_)) => vec![uncertain(Event::Deleted(id))],
        (Call::Delete(id), Said::NotFound) if is_quiet => vec![certain(Event::Shown(id, None))],
        (Call::Check(doc), Said::Unique) if is_quiet => vec![certain(Event::Unique(doc.group))],
        (Call::Get(id), Said::Shown(doc)) if is_quiet => vec![certain(Event::Shown(id, *doc))],
        _ => Vec::new(),
    })
}

/// Judges the history of all cells that were empty before it. Returns the violations.
pub fn judge(records: &[Record], times: &Times) -> Vec<String> {
    let (mut cells, mut broken) = (BTreeMap::<CellNumber, Vec<_>>::new(), Vec::new());
    for record in records {
        match operations(record, times) {
            Ok(operations) => cells.entry(record.cell).or_default().extend(operations),
            Err(said) => broken.push(said),
        }
    }
    broken.extend(cells.iter().filter_map(|(cell, operations)| {
        let stuck = has_order(&Cell, &State::default(), operations).err()?;
        let what = if stuck.is_too_hard { "cannot be decided" } else { "has no order" };
        let states = stuck.states;
        let told = told(operations, stuck.at);
        Some(format!("the history of cell {cell} {what}. Possible before the operation: {states:?}\n{told}"))
    }));
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_store::faults::cell::Doc;

    const DOC: Doc = Doc { group: 0, variant: 0 };
    const INSERT: Call = Call::Insert { id: 0, doc: DOC, replaces: false };

    fn record(begin: u64, call: Call, said: Said) -> Record {
        let begin = Duration::from_secs(begin);
        Record { cell: 7, call, said, begin, end: begin + Duration::from_millis(500) }
    }

    fn broken(more: &[Record], stale: &[(u64, u64)], quiet: u64) -> usize {
        let before = [record(0, INSERT, Said::Stored), record(1, Call::Delete(0), Said::Deleted)];
        let stale = stale.iter().map(|&(from, to)| (Duration::from_secs(from), Duration::from_secs(to))).collect();
        judge(&[&before[..], more].concat(), &Times { stale, quiet: Duration::from_secs(quiet) }).len()
    }

    #[test]
    fn what_a_stale_primary_may_say_is_judged_by_the_time_of_the_fault() {
        for (call, said) in [(Call::Check(DOC), Said::Named((7, 0))), (INSERT, Said::Named((7, 0)))] {
            let answer = [record(5, call, said)];
            assert_eq!(broken(&answer, &[], 100), 1);
            assert_eq!(broken(&answer, &[(1, 6)], 100), 0);
            // The fault began after the deletion, or was over before the answer.
            assert_eq!(broken(&answer, &[(2, 6)], 100), 1);
            assert_eq!(broken(&answer, &[(1, 4)], 100), 1);
        }
        // What changes something is certain.
        assert_eq!(broken(&[record(5, Call::Delete(0), Said::Deleted)], &[(1, 6)], 100), 1);
    }

    #[test]
    fn what_finds_nothing_is_judged_only_in_the_quiet_time() {
        for (call, said) in
            [(Call::Check(DOC), Said::Unique), (Call::Delete(1), Said::NotFound), (Call::Get(1), Said::Shown(None))]
        {
            let stored = record(3, Call::Insert { id: 1, doc: DOC, replaces: false }, Said::Stored);
            let answer = [stored, record(5, call, said)];
            assert_eq!(broken(&answer, &[], 100), 0);
            assert_eq!(broken(&answer, &[], 5), 1);
        }
    }

    #[test]
    fn a_refused_insertion_and_a_document_of_another_cell_are_never_named() {
        let refused = record(2, INSERT, Said::Refused { code: "store_unavailable".to_owned(), detail: String::new() });
        assert_eq!(broken(&[refused, record(5, Call::Check(DOC), Said::Named((7, 0)))], &[], 100), 1);
        assert_eq!(broken(&[record(5, Call::Check(DOC), Said::Named((8, 0)))], &[(0, 9)], 100), 1);
        let uncertain = record(2, INSERT, Said::Uncertain("no answer"));
        assert_eq!(broken(&[uncertain, record(5, Call::Check(DOC), Said::Named((7, 0)))], &[], 100), 0);
    }
}
