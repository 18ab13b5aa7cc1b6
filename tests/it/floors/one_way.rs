//! Imports run one way: there is no circle between files, or between the children of a folder.

use std::collections::BTreeSet;

use super::graph;
use super::house::House;
use super::imports::Edge;

/// Returns each circle between files, with its imports.
pub fn file_circles(house: &House) -> Vec<String> {
    let pairs: Vec<_> = house.imports.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let circles = graph::circles(&pairs);
    circles.iter().map(|files| described(house, |edge| inside(files, edge.from, edge.to))).collect()
}

/// Returns each circle between the children of a folder, with its imports.
pub fn sibling_circles(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders(house) {
        let children: Vec<_> = house.imports.edges.iter().map(|edge| siblings(house, &folder, edge)).collect();
        let pairs: Vec<_> = children.iter().flatten().copied().collect();
        for circle in graph::circles(&pairs) {
            let text = described(house, |edge| {
                siblings(house, &folder, edge).is_some_and(|(from, to)| inside(&circle, from, to))
            });
            found.push(format!("in {folder}: {}\n{text}", circle.join(", ")));
        }
    }
    found
}

/// Returns all folders with sources in them.
pub fn folders(house: &House) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for path in &house.paths {
        let mut path = path.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            folders.insert(folder.to_owned());
            path = folder;
        }
    }
    folders.into_iter().filter(|folder| folder.starts_with(&house.src)).collect()
}

/// Returns the two children of a folder that an import connects.
pub fn siblings<'a>(house: &'a House, folder: &str, edge: &Edge) -> Option<(&'a str, &'a str)> {
    let child = |file: usize| {
        let below = house.paths[file].strip_prefix(folder)?.strip_prefix('/')?;
        Some(below.split('/').next().expect("a name"))
    };
    let (from, to) = (child(edge.from)?, child(edge.to)?);
    (from != to).then_some((from, to))
}

fn inside<T: PartialEq>(circle: &[T], from: T, to: T) -> bool {
    circle.contains(&from) && circle.contains(&to)
}

/// `crate::a::Kind::One` -> `Kind`; `super::b::run` -> `run`.
fn item(path: &str) -> &str {
    let mut names = path.split("::");
    let type_ = names.find(|name| name.starts_with(char::is_uppercase));
    type_.unwrap_or_else(|| path.rsplit("::").next().expect("not empty"))
}

/// Describes imports, one line per pair of files.
fn described(house: &House, wanted: impl Fn(&Edge) -> bool) -> String {
    let mut lines = Vec::new();
    let mut told = BTreeSet::new();
    for edge in house.imports.edges.iter().filter(|edge| wanted(edge)) {
        if told.insert((edge.from, edge.to)) {
            let [from, to] = [edge.from, edge.to].map(|file| &house.paths[file]);
            let all = house.imports.edges.iter().filter(|other| (other.from, other.to) == (edge.from, edge.to));
            let names: BTreeSet<_> = all.map(|edge| item(&edge.path)).collect();
            let names: Vec<_> = names.into_iter().collect();
            lines.push(format!("  {from}:{} -> {to}: {}", edge.line, names.join(", ")));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(files: &[(&str, &str)]) -> House {
        House::built("src", files, &["tokio"])
    }

    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let house = house(files);
        assert_eq!(house.imports.unresolved, [""; 0]);
        let name = |file: usize| house.paths[file].trim_start_matches("src/").to_owned();
        let edges = house.imports.edges.iter().map(|edge| format!("{} -> {}", name(edge.from), name(edge.to)));
        let edges: BTreeSet<_> = edges.collect();
        edges.into_iter().collect()
    }

    #[test]
    fn a_re_export_hides_no_circle() {
        let files = [
            ("src/lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("src/a.rs", "use crate::B; pub struct A(B);"),
            ("src/b.rs", "use super::A; pub struct B(Option<Box<A>>);"),
        ];
        assert_eq!(edges(&files), ["a.rs -> b.rs", "b.rs -> a.rs", "lib.rs -> a.rs", "lib.rs -> b.rs"]);
        assert_eq!(file_circles(&house(&files)).len(), 1);
    }

    #[test]
    fn globs_groups_renames_and_climbing_paths_are_followed() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "mod c; mod d; pub use c::*; pub(crate) use d::{self as deep, D as E, f};"),
            ("src/a/c.rs", "pub struct C; pub enum Kind { One, Two }"),
            ("src/a/d.rs", "use super::super::b; pub struct D; pub fn f() { b::run() }"),
            (
                "src/b.rs",
                "use crate::a::{*, deep::{D}}; pub fn run() { let _ = C; g() } fn g() { use Kind::*; let _ = One; f() }",
            ),
        ];
        let expected = ["a/d.rs -> b.rs", "a/mod.rs -> a/d.rs", "b.rs -> a/c.rs", "b.rs -> a/d.rs"];
        assert_eq!(edges(&files), expected);
    }

    #[test]
    fn paths_count_in_types_patterns_macros_and_attributes() {
        let used = [
            "fn f(x: crate::b::T) {}",
            "fn f() { let crate::b::T = x else { return }; }",
            "fn f() { assert_eq!(1, vec![crate::b::t()]); }",
            "#[serde(with = \"crate::b\", default = \"crate::b::t\")] struct S;",
            "#[derive(crate::b::T)] struct S;",
            "use crate::b; impl b::Tr for u8 {}",
            "fn f() { use super::b as c; c::t() }",
            "use super::b::*; fn f() { g(t) }",
            "mod inner { use super::super::b; fn f() -> impl Fn(b::T) {} }",
            "fn f() { made!() }",
        ];
        let b = "pub struct T; pub fn t() {} pub trait Tr {} macro_rules! made { () => {} }";
        for used in used {
            let files = [("src/lib.rs", "#[macro_use] mod b; mod a;"), ("src/a.rs", used), ("src/b.rs", b)];
            assert_eq!(edges(&files), ["a.rs -> b.rs"], "{used}");
        }
    }

    #[test]
    fn what_is_no_import_is_not_counted() {
        let unused = [
            "use crate::b;",
            "pub(in crate::b) struct S;",
            "/// [`crate::b::T`]\nstruct T; fn f(x: T) {}",
            "#[cfg(test)] mod tests { use crate::b::T; }",
            "#[cfg(all(test, unix))] use crate::b::T;",
            "fn f() { let t = 1; x.b.t() }",
        ];
        for unused in unused {
            let files = [("src/lib.rs", "mod a; mod b;"), ("src/a.rs", unused), ("src/b.rs", "pub struct T;")];
            assert_eq!(edges(&files), [""; 0], "{unused}");
        }
    }

    #[test]
    fn a_folder_and_a_file_beside_it_run_one_way() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "pub mod low; mod high;"),
            ("src/a/low.rs", "pub struct L;"),
            ("src/a/high.rs", "use crate::b::B;"),
            ("src/b.rs", "use crate::a::low::L; pub struct B(L);"),
        ];
        let house = house(&files);
        assert!(file_circles(&house).is_empty());
        let circles = sibling_circles(&house);
        assert_eq!(circles.len(), 1);
        assert!(circles[0].starts_with("in src: a, b.rs\n"), "{}", circles[0]);
    }

    #[test]
    fn a_type_of_a_folder_that_its_children_import_makes_a_circle_with_its_re_exports() {
        let files = [
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod b; pub use b::B; pub struct A;"),
            ("src/a/b.rs", "use super::A; pub struct B(A);"),
        ];
        assert_eq!(file_circles(&house(&files)).len(), 1);
        assert_eq!(sibling_circles(&house(&files)).len(), 1);
    }
}
