//! The other crates that a file may use.

use std::collections::BTreeSet;
use std::fs;

use super::house::House;
use super::imports::External;
use crate::support::sources::root;

/// A child of `src`, and the crates that it uses.
pub type Table<'a> = [(&'a str, &'a str)];

/// Returns the dependencies of a manifest under their names in code, without those for tests.
pub fn of_the_manifest(path: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join(path)).expect("a manifest");
    let mut names = BTreeSet::new();
    let mut listed = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            listed = line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("workspace");
        } else if listed && line.starts_with(char::is_alphabetic) {
            names.insert(line.split([' ', '=', '.']).next().unwrap_or_default().replace('-', "_"));
        }
    }
    names
}

/// Returns the differences between a table and the crates that the children of `src` use.
pub fn differing(house: &House, table: &Table<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for External { from, line, name } in house.imports.externals.iter().filter(|external| external.name != "std") {
        let path = &house.paths[*from];
        let child = super::child_of_src(path);
        let allowed = table.iter().find(|(of, _)| *of == child).map_or("", |(_, names)| names);
        if !allowed.split(' ').any(|allowed| allowed == name) {
            found.push(format!("{path}:{line}: {child} uses {name}, which is not in its line of the table"));
        }
        used.insert((child, name.as_str()));
    }
    for (child, names) in table {
        let unused = names.split(' ').filter(|name| !used.contains(&(*child, *name)));
        found.extend(unused.map(|name| format!("{child} no longer uses {name}: take it out of the table")));
    }
    found
}

/// Returns the uses of these crates in files whose paths have one of these beginnings. A beginning that no file has is
/// a mistake in the rule.
pub fn used_where_nothing_waits(house: &House, beginnings: &[&str], crates: &[&str]) -> Vec<String> {
    for beginning in beginnings {
        assert!(house.paths.iter().any(|path| path.starts_with(beginning)), "no file is {beginning}*");
    }
    let uses = house.imports.externals.iter().filter(|external| {
        let path = &house.paths[external.from];
        crates.contains(&&*external.name) && beginnings.iter().any(|beginning| path.starts_with(beginning))
    });
    uses.map(|external| format!("{}:{}: {}", house.paths[external.from], external.line, external.name)).collect()
}

#[test]
fn uses_of_crates_are_found() {
    let used = [
        "use tokio::sync::Mutex;",
        "use {serde::Serialize, tokio::{sync::Mutex as M, task}};",
        "fn f() { tokio::spawn(x) }",
        "fn f() { select!(a => tokio::spawn(x)) }",
        "#[tokio::main] fn f() {}",
        "use tokio::prelude::*;",
        "use crate::b::Lock;",
    ];
    let table = [("a", "tokio"), ("b", "tokio")];
    for used in used {
        let files =
            [("src/lib.rs", "mod a; mod b;"), ("src/a.rs", used), ("src/b.rs", "pub use tokio::sync::Mutex as Lock;")];
        let house = House::built("src", &files, &["tokio", "bytes"]);
        assert_eq!(differing(&house, &table), [""; 0], "{used}");
        let found = differing(&house, &table[1..]);
        assert!(found[0].starts_with("src/a.rs:1: a uses tokio"), "{used}: {found:?}");
        assert_eq!(used_where_nothing_waits(&house, &["src/a"], &["tokio"])[0], "src/a.rs:1: tokio", "{used}");
    }
}

#[test]
fn a_variable_is_no_crate_and_a_crate_out_of_use_is_told() {
    let files = [("src/lib.rs", "mod a;"), ("src/a.rs", "fn f(bytes: u8) { g(bytes, vec![bytes]) }")];
    let house = House::built("src", &files, &["bytes"]);
    assert_eq!(differing(&house, &[]), [""; 0]);
    assert_eq!(differing(&house, &[("a", "bytes")]), ["a no longer uses bytes: take it out of the table"]);
}
