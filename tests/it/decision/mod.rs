//! Every decision of a write, compared with `table.tsv`. The table has one line for each combination of the facts that
//! a decision depends on, with the answer and the state afterwards. The table is recorded from a binary over HTTP, and
//! never made by the rules that it checks: `HAPAX_BINARY=… HAPAX_RECORD=… cargo test --test it decision::` writes it.
//! The first lines of the table name the commit of that binary.

mod combinations;
mod scenes;
mod world;

use std::collections::BTreeSet;

use self::combinations::{COLUMNS, Combination, IMPOSSIBLE, all, columns};
use self::world::{Case, OBSERVED, observe};
use crate::support::library;

const TABLE: &str = include_str!("table.tsv");

fn recorded() -> Vec<&'static str> {
    let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(&*header()));
    lines.collect()
}

fn header() -> String {
    columns().iter().chain(&OBSERVED).copied().collect::<Vec<_>>().join("\t")
}

fn possible() -> Vec<Combination> {
    all().into_iter().filter(|combination| combination.impossible().is_none()).collect()
}

#[test]
fn each_combination_is_recorded_or_impossible() {
    let keys: BTreeSet<String> =
        recorded().iter().map(|line| line.split('\t').take(COLUMNS).collect::<Vec<_>>().join("\t")).collect();
    assert_eq!(keys.len(), recorded().len(), "a combination is recorded twice");
    let (impossible, possible): (Vec<_>, Vec<_>) =
        all().into_iter().partition(|combination| combination.impossible().is_some());
    assert_eq!(keys.len() + impossible.len(), all().len());
    for combination in &possible {
        assert!(keys.contains(&combination.key()), "neither recorded nor impossible: {combination:?}");
    }
    let reasons: BTreeSet<_> = impossible.iter().filter_map(Combination::impossible).collect();
    assert_eq!(reasons.len(), IMPOSSIBLE.len(), "a reason is given for nothing");
}

#[test]
fn every_decision_is_the_recorded_one() {
    let dir = library::dir();
    let cases: Vec<Case> = possible().into_iter().enumerate().map(|(number, one)| Case::new(number, one)).collect();
    let seen = observe(&dir.path().join("data"), &cases);
    if let Some(path) = std::env::var_os("HAPAX_RECORD") {
        assert!(std::env::var_os("HAPAX_BINARY").is_some(), "the table is recorded from a binary of its own");
        std::fs::write(path, format!("{}\n{}\n", header(), seen.join("\n"))).unwrap();
        return;
    }
    let recorded = recorded();
    let differing: Vec<_> = recorded.iter().zip(&seen).filter(|(recorded, seen)| *recorded != seen).collect();
    for (recorded, seen) in differing.iter().take(10) {
        println!("recorded {recorded}\nseen     {seen}\n");
    }
    assert_eq!((differing.len(), seen.len()), (0, recorded.len()), "{}", header());
}
