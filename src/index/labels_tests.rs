//! Sets of labels: scopes, limits and counts.

use super::labels::{AllLabels, LabelSet, LabelsFull, SETS_PER_LABEL};
use super::place::Place;
use crate::types::{Label, LabelLimits, Labels, Scope, ScopeTerm};

fn labels(text: &str) -> Labels {
    Labels::parse(text).unwrap()
}

fn scope(terms: &[&str]) -> Scope {
    Scope::new(terms.iter().map(|term| ScopeTerm::parse(term).unwrap()).collect()).unwrap()
}

fn counted(all: &AllLabels, name: Option<&str>, after: Option<&str>, limit: usize) -> Vec<(String, u64)> {
    let after = after.map(|after| Label::parse(after).unwrap());
    let counts = all.counts(name, after.as_ref(), limit);
    counts.into_iter().map(|(label, count)| (label.as_str().to_owned(), count)).collect()
}

#[test]
fn a_scope_takes_the_places_that_meet_all_its_terms() {
    let all = AllLabels::new();
    let put = |place: u32, text: &str| {
        let set = all.hold(&labels(text), None, LabelLimits::NONE).unwrap();
        all.set(Place(place), set);
        set
    };
    let (one, _, none) = (put(0, "crawl:1\nsite:a"), put(1, "crawl:2\nsite:a"), put(2, ""));
    assert_eq!(put(3, "site:a\ncrawl:1"), one, "the order does not matter");
    assert_eq!(none, LabelSet::NONE);
    let taken = |terms: &[&str]| {
        let in_scope = all.scope(&scope(terms));
        [0, 1, 2].map(|place| in_scope.takes_place(Place(place)))
    };
    assert_eq!(taken(&["site:a"]), [true, true, false]);
    assert_eq!(taken(&["site:a", "!crawl:2"]), [true, false, false]);
    assert_eq!(taken(&["!site:a"]), [false, false, true]);
    assert_eq!(taken(&["crawl:1", "crawl:2"]), [false; 3]);
    assert_eq!(taken(&["crawl:3"]), [false; 3]);
    assert_eq!(taken(&["!crawl:3"]), [true; 3]);
}

#[test]
fn labels_are_bounded_by_those_held_and_documents_are_counted() {
    let all = AllLabels::new();
    let two = LabelLimits { labels_max: 2, ..LabelLimits::NONE };
    let one = all.hold(&labels("crawl:1\nsite:a"), None, two).unwrap();
    assert_eq!((all.used(), counted(&all, None, None, 9)), (2, vec![]), "no document has them yet");
    assert_eq!(all.hold(&labels("crawl:2"), None, two), Err(LabelsFull::Labels));
    all.count(one, true);
    assert_eq!(all.hold(&labels("crawl:1\nsite:a"), None, two), Ok(one));
    all.count(one, true);
    let other = all.hold(&labels("site:a"), None, two).unwrap();
    all.count(other, true);
    assert_eq!(counted(&all, None, None, 9), [("crawl:1".into(), 2), ("site:a".into(), 3)]);
    // A label that no document has any longer makes room for another label.
    for _ in 0..2 {
        all.count(one, false);
        all.release(one);
    }
    assert_eq!((all.used(), counted(&all, None, None, 9).len()), (1, 1));
    assert!(all.hold(&labels("crawl:2"), None, two).is_ok());
}

#[test]
fn sets_that_no_document_has_make_room() {
    let all = AllLabels::new();
    let eight = LabelLimits { labels_max: 8, ..LabelLimits::NONE };
    let mut held = Vec::new();
    let text = |number: usize| -> String {
        (0..8).filter(|bit| number >> bit & 1 == 1).map(|bit| format!("n{bit}:x\n")).collect()
    };
    for number in 1..=8 * SETS_PER_LABEL {
        held.push(all.hold(&labels(&text(number)), None, eight).unwrap());
    }
    assert_eq!(all.hold(&labels(&text(255)), None, eight), Err(LabelsFull::Sets));
    let bytes = all.bytes();
    for _ in 0..1000 {
        all.release(held.pop().unwrap());
        held.push(all.hold(&labels(&text(255)), None, eight).unwrap());
    }
    assert!(all.bytes() < bytes + 1000);
    held.into_iter().for_each(|set| all.release(set));
    assert_eq!((all.used(), all.bytes()), (0, 0));
}

#[test]
fn a_source_has_a_limit_of_documents() {
    let all = AllLabels::new();
    let limits = LabelLimits { source_documents_max: Some(2), ..LabelLimits::NONE };
    let hold = |text: &str, had: Option<&str>| {
        all.hold(&labels(text), had.map(labels).as_ref(), limits).inspect(|&set| all.count(set, true))
    };
    let first = hold("n:1\nsource:a", None).unwrap();
    hold("n:2\nsource:a", None).unwrap();
    assert_eq!(hold("source:a", None), Err(LabelsFull::Source));
    assert_eq!(hold("source:a", Some("source:b")), Err(LabelsFull::Source), "it comes from another source");
    assert!(hold("source:b", None).is_ok() && hold("n:1", None).is_ok());
    // The document stays in its source.
    let other = hold("n:3\nsource:a", Some("n:1\nsource:a")).unwrap();
    all.count(first, false);
    assert_eq!(hold("source:a", None), Err(LabelsFull::Source));
    all.count(other, false);
    assert!(hold("source:a", None).is_ok());
}

#[test]
fn counts_come_in_pages_of_one_name() {
    let all = AllLabels::new();
    for text in ["a:1", "a-b:1", "a:2\nb:1", "a:3"] {
        all.count(all.hold(&labels(text), None, LabelLimits::NONE).unwrap(), true);
    }
    let page = |name, after, limit| {
        let counted = counted(&all, name, after, limit);
        counted.into_iter().map(|(label, _)| label).collect::<Vec<_>>()
    };
    assert_eq!(page(None, None, 9), ["a-b:1", "a:1", "a:2", "a:3", "b:1"]);
    assert_eq!(page(None, Some("a:1"), 2), ["a:2", "a:3"]);
    assert_eq!(page(Some("a"), None, 2), ["a:1", "a:2"]);
    assert_eq!(page(Some("a"), Some("a:2"), 2), ["a:3"]);
    assert_eq!(page(Some("a"), Some("a-b:1"), 1), ["a:1"]);
    assert!(page(Some("a"), Some("b:1"), 9).is_empty() && page(Some("c"), None, 9).is_empty());
}

#[test]
fn places_without_labels_take_no_memory() {
    let all = AllLabels::new();
    all.set(Place(7), LabelSet::NONE);
    assert_eq!((all.bytes(), all.bytes_of_place()), (0, 0));
    let set = all.hold(&labels("a:b"), None, LabelLimits::NONE).unwrap();
    all.set(Place(7), set);
    assert_eq!((all.of(Place(7)), all.of(Place(8))), (set, LabelSet::NONE));
    all.set(Place(7), LabelSet::NONE);
    assert_eq!(all.of(Place(7)), LabelSet::NONE);
    assert!(all.bytes() > 0 && all.bytes_of_place() == 8);
}
