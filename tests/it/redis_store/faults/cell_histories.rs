//! Histories of a cell by hand, good ones and bad ones.

use std::time::Duration;

use super::cell::{Cell, Doc, Event, State};
use crate::support::orders::{Operation, has_order};

const A: Doc = Doc { group: 0, variant: 0 };
const A2: Doc = Doc { group: 0, variant: 1 };
const B: Doc = Doc { group: 1, variant: 0 };

fn operation(begin: u64, end: Option<u64>, event: Event) -> Operation<Event> {
    Operation { event, begin: Duration::from_millis(begin), end: end.map(Duration::from_millis) }
}

/// An operation with an answer.
fn at(begin: u64, end: u64, event: Event) -> Operation<Event> {
    operation(begin, Some(end), event)
}

/// An operation that may take effect later, or never.
fn unclear(begin: u64, event: Event) -> Operation<Event> {
    operation(begin, None, event)
}

/// Returns whether the history has an order, and where it has none.
fn stuck(history: &[Operation<Event>]) -> Option<Event> {
    has_order(&Cell, &State::default(), history).err().map(|stuck| {
        assert!(!stuck.is_too_hard);
        history[stuck.at].event
    })
}

fn good(history: &[Operation<Event>]) {
    assert_eq!(stuck(history), None, "{history:?}");
}

fn bad(history: &[Operation<Event>], event: Event) {
    assert_eq!(stuck(history), Some(event), "{history:?}");
}

#[test]
fn two_documents_of_a_group_are_not_stored_at_once() {
    let both = [at(0, 10, Event::Stored(0, A)), at(5, 20, Event::Stored(1, A2))];
    bad(&both, Event::Stored(1, A2));
    good(&[both[0].clone(), both[1].clone(), at(6, 19, Event::Deleted(0))]);
    good(&[both[0].clone(), both[1].clone(), unclear(6, Event::Deleted(0))]);
    // It began only after the second document was stored.
    bad(&[both[0].clone(), both[1].clone(), unclear(21, Event::Deleted(0))], Event::Stored(1, A2));
}

#[test]
fn an_id_does_not_have_two_documents_at_once() {
    bad(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Stored(0, B))], Event::Stored(0, B));
    good(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Conflicted(0, B))]);
    good(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Conflicted(0, A2))]);
    bad(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Conflicted(0, A))], Event::Conflicted(0, A));
    good(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Repeated(0, A)), at(21, 30, Event::Shown(0, Some(A)))]);
}

#[test]
fn an_acknowledged_document_is_not_lost() {
    let stored = at(0, 10, Event::Stored(0, A));
    bad(&[stored.clone(), at(11, 20, Event::Unique(0))], Event::Unique(0));
    bad(&[stored.clone(), at(11, 20, Event::Shown(0, None))], Event::Shown(0, None));
    bad(&[stored.clone(), at(11, 20, Event::Stored(1, A))], Event::Stored(1, A));
    // While it is being stored, either answer is right.
    good(&[stored.clone(), at(9, 20, Event::Unique(0))]);
    good(&[stored.clone(), at(9, 20, Event::Named(0, 0))]);
    // Once it was seen, it stays.
    let seen = [stored, at(2, 4, Event::Named(0, 0)), at(5, 7, Event::Unique(0))];
    bad(&seen, Event::Unique(0));
}

#[test]
fn a_deleted_document_does_not_come_back() {
    let deleted = [at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Deleted(0))];
    for event in [Event::Named(0, 0), Event::Shown(0, Some(A)), Event::Deleted(0), Event::Conflicted(0, B)] {
        bad(&[deleted[0].clone(), deleted[1].clone(), at(21, 30, event)], event);
    }
    good(&[deleted[0].clone(), deleted[1].clone(), at(12, 30, Event::Named(0, 0))]);
    good(&[deleted[0].clone(), deleted[1].clone(), at(21, 30, Event::Stored(1, A))]);
}

#[test]
fn nothing_is_invented() {
    bad(&[at(0, 10, Event::Shown(0, Some(A)))], Event::Shown(0, Some(A)));
    bad(&[at(0, 10, Event::Deleted(0))], Event::Deleted(0));
    bad(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Named(1, 0))], Event::Named(1, 0));
    bad(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Named(0, 1))], Event::Named(0, 1));
    bad(&[at(0, 10, Event::Stored(0, A)), at(11, 20, Event::Shown(0, Some(A2)))], Event::Shown(0, Some(A2)));
    // It was sent only later.
    bad(&[at(0, 10, Event::Named(0, 0)), at(11, 20, Event::Stored(0, A))], Event::Named(0, 0));
}

#[test]
fn an_unclear_operation_takes_effect_once_or_never() {
    let sent = unclear(0, Event::Stored(0, A));
    good(&[sent.clone(), at(100, 110, Event::Unique(0)), at(200, 210, Event::Named(0, 0))]);
    good(&[sent.clone(), at(100, 110, Event::Stored(1, A)), at(200, 210, Event::Named(1, 0))]);
    let twice = [sent, at(100, 110, Event::Deleted(0)), at(200, 210, Event::Deleted(0))];
    bad(&twice, Event::Deleted(0));
    good(&[twice.as_slice(), &[unclear(105, Event::Stored(0, A2))]].concat());
    bad(&[twice.as_slice(), &[unclear(211, Event::Stored(0, A2))]].concat(), Event::Deleted(0));
}

/// A history of the group alone has an order, and a history of each id, too. The two together have none.
#[test]
fn a_group_and_an_id_are_judged_together() {
    let history = [
        at(0, 10, Event::Stored(0, A)),
        at(11, 50, Event::Deleted(0)),
        at(11, 50, Event::Stored(1, A)),
        // For the group, the first document is deleted before this. For the first id, it is deleted at the end.
        at(20, 30, Event::Named(1, 0)),
        at(31, 40, Event::Conflicted(0, B)),
    ];
    bad(&history, Event::Conflicted(0, B));
    good(&history[..4]);
    good(&[&history[..3], &history[4..]].concat());
}

#[test]
fn a_replacement_is_one_step() {
    let stored = [at(0, 1, Event::Stored(0, A)), at(2, 3, Event::Stored(1, B))];
    let after = |more: &[Operation<Event>]| [&stored[..], more].concat();
    let in_own_group = Event::Replaced(0, A2);
    good(&after(&[at(4, 5, in_own_group), at(6, 7, Event::Shown(0, Some(A2)))]));
    bad(&after(&[at(4, 9, in_own_group), at(6, 7, Event::Unique(0))]), Event::Unique(0));
    bad(&after(&[at(4, 5, Event::Replaced(0, B))]), Event::Replaced(0, B));
    bad(&after(&[at(4, 5, Event::Replaced(2, A))]), Event::Replaced(2, A));
    for shown in [A, A2] {
        good(&after(&[unclear(4, Event::Put(0, A2)), at(6, 7, Event::Shown(0, Some(shown)))]));
    }
    bad(&after(&[unclear(4, Event::Put(0, B)), at(6, 7, Event::Shown(0, Some(B)))]), Event::Shown(0, Some(B)));
}

/// Many clients at once, and many answers that are unclear, as in an outage.
#[test]
fn long_histories_of_an_outage_are_judged() {
    let mut history = vec![at(0, 1, Event::Stored(0, A))];
    for time in 1..60 {
        for id in 0..4 {
            history.push(unclear(time, Event::Stored(id, A)));
            history.push(unclear(time, Event::Stored(id, Doc { group: 1, variant: id })));
            history.push(unclear(time, Event::Deleted(id)));
        }
        history.push(at(time, time + 30, Event::Named((time % 4) as u8, 0)));
    }
    history.push(at(200, 210, Event::Shown(3, Some(A))));
    good(&history);
    history.push(at(201, 210, Event::Unique(0)));
    history.push(at(211, 220, Event::Shown(3, Some(A2))));
    bad(&history, Event::Shown(3, Some(A2)));
}
