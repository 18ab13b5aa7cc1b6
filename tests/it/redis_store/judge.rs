//! Judges the answers of a run, and the documents that are stored in the end. Each rule holds in every order of the requests that
//! their times allow, so a run that breaks one has found a bug.

use std::collections::BTreeMap;
use std::time::Duration;

use super::contents::Content;
use super::notes::{Asked, Id, Note, Stored, Told, certain, possible};

/// All documents that are stored in the end, by id.
pub type Held = BTreeMap<Id, Content>;

/// Judges a run. Returns the broken rules.
pub fn judge(notes: &[Note], held: &Held) -> Vec<String> {
    let (certain, possible) = (certain(notes), possible(notes));
    let mut broken = one_at_a_time(&certain);
    broken.extend(notes.iter().filter_map(|note| unlike(note, &certain, &possible)));
    broken.extend(at_the_end(&certain, &possible, held));
    broken
}

fn overlap(one: (Duration, Duration), other: (Duration, Duration)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Two documents of a group, or two contents of an id, must not both be stored at a time.
fn one_at_a_time(certain: &[Stored]) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, one) in certain.iter().enumerate() {
        for other in &certain[at + 1..] {
            let both = overlap((one.from, one.to), (other.from, other.to));
            let is_twin = one.content.group == other.content.group && one.id != other.id;
            if both && is_twin {
                broken.push(format!("two documents of a group are stored at a time: {one:?} and {other:?}"));
            }
            if both && one.id == other.id && one.content != other.content {
                broken.push(format!("an id holds two contents at a time: {one:?} and {other:?}"));
            }
        }
    }
    broken
}

/// Returns what is wrong with one answer.
fn unlike(note: &Note, certain: &[Stored], possible: &[Stored]) -> Option<String> {
    let within = (note.sent, note.ended);
    let could = |is_it: &dyn Fn(&Stored) -> bool| {
        possible.iter().any(|stored| is_it(stored) && stored.from <= within.1 && within.0 <= stored.to)
    };
    let surely = |is_it: &dyn Fn(&Stored) -> bool| {
        certain.iter().find(|stored| is_it(stored) && stored.from < within.0 && within.1 < stored.to).copied()
    };
    let (asked, told) = (&note.asked, &note.told);
    match (asked, told) {
        (Asked::Insert(_, content) | Asked::Check(content), Told::Duplicate(of))
            if !could(&|stored| stored.id == *of && stored.content.group == content.group) =>
        {
            Some(format!("a duplicate of a document that was not stored: {note:?}"))
        }
        (Asked::Check(content), Told::Unique) => {
            let found = surely(&|stored| stored.content.group == content.group)?;
            Some(format!("unique, but {found:?} was stored: {note:?}"))
        }
        (Asked::Insert(id, content), Told::Conflict)
            if !could(&|stored| stored.id == *id && stored.content != *content) =>
        {
            Some(format!("a conflict with nothing: {note:?}"))
        }
        (Asked::Delete(id), Told::Deleted(false)) => {
            let found = surely(&|stored| stored.id == *id)?;
            Some(format!("nothing was deleted, but {found:?} was stored: {note:?}"))
        }
        (Asked::Delete(id), Told::Deleted(true)) if !could(&|stored| stored.id == *id) => {
            Some(format!("deleted, but never stored: {note:?}"))
        }
        _ => None,
    }
}

/// Compares what is stored in the end with the notes.
fn at_the_end(certain: &[Stored], possible: &[Stored], held: &Held) -> Vec<String> {
    let mut broken = Vec::new();
    for stored in certain.iter().filter(|stored| stored.to == Duration::MAX) {
        if held.get(&stored.id) != Some(&stored.content) {
            let found = held.get(&stored.id);
            broken.push(format!("acknowledged, but missing in the end: {stored:?}; the id has {found:?}"));
        }
    }
    for (&id, &content) in held {
        let may_be = |stored: &Stored| (stored.id, stored.content, stored.to) == (id, content, Duration::MAX);
        if !possible.iter().any(may_be) {
            broken.push(format!("stored in the end, but not sent, or deleted: id {id}, {content:?}"));
        }
    }
    let mut groups: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
    held.iter().for_each(|(&id, content)| groups.entry(content.group).or_default().push(id));
    broken.extend(
        groups
            .iter()
            .filter(|(_, ids)| ids.len() > 1)
            .map(|(group, ids)| format!("group {group} has several documents in the end: {ids:?}")),
    );
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Content = Content { group: 1, variant: 0 };
    const B: Content = Content { group: 1, variant: 1 };
    const C: Content = Content { group: 2, variant: 0 };

    fn note(sent: u64, ended: u64, asked: Asked, told: Told) -> Note {
        Note { sent: Duration::from_secs(sent), ended: Duration::from_secs(ended), asked, told }
    }

    fn says(notes: &[Note], held: &[(Id, Content)]) -> String {
        judge(notes, &held.iter().copied().collect()).join("\n")
    }

    #[test]
    fn runs_that_may_be_right_are_accepted() {
        let notes = [
            note(10, 20, Asked::Insert(1, A), Told::Stored),
            note(10, 20, Asked::Insert(2, B), Told::Duplicate(1)),
            note(15, 30, Asked::Delete(1), Told::Deleted(true)),
            note(21, 25, Asked::Insert(2, B), Told::Stored),
            note(26, 27, Asked::Insert(2, C), Told::Conflict),
            note(26, 27, Asked::Check(A), Told::Duplicate(2)),
            note(30, 31, Asked::Insert(3, C), Told::Unclear),
        ];
        assert_eq!(says(&notes, &[(2, B)]), "");
        assert_eq!(says(&notes, &[(2, B), (3, C)]), "");
    }

    #[test]
    fn each_broken_rule_is_found() {
        let stored = note(10, 20, Asked::Insert(1, A), Told::Stored);
        for (more, held, said) in [
            (note(21, 22, Asked::Insert(2, B), Told::Stored), &[(1, A), (2, B)][..], "two documents of a group"),
            (note(21, 22, Asked::Insert(1, C), Told::Stored), &[(1, A)], "two contents"),
            (note(21, 22, Asked::Insert(2, C), Told::Duplicate(1)), &[(1, A)], "that was not stored"),
            (note(21, 22, Asked::Check(B), Told::Unique), &[(1, A)], "unique, but"),
            (note(21, 22, Asked::Insert(2, C), Told::Conflict), &[(1, A)], "a conflict with nothing"),
            (note(21, 22, Asked::Delete(1), Told::Deleted(false)), &[(1, A)], "nothing was deleted"),
            (note(21, 22, Asked::Delete(2), Told::Deleted(true)), &[(1, A)], "never stored"),
            (note(21, 22, Asked::Check(C), Told::Unique), &[], "missing in the end"),
            (note(21, 22, Asked::Delete(1), Told::Deleted(true)), &[(1, A)], "not sent, or deleted"),
            (note(21, 22, Asked::Insert(2, B), Told::Unclear), &[(1, A), (2, B)], "several documents in the end"),
        ] {
            let found = says(&[stored.clone(), more], held);
            assert!(found.contains(said), "{said}: {found}");
        }
    }
}
