//! The figures behind the rules, as a page to read: `cargo test --test it floors::report -- --ignored --nocapture`.
//! `HAPAX_FLOORS_ROOT` names another checkout; its floors are those of its own `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::house::House;
use super::sizes::Sized;
use super::{CORE, FIELDS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX, SERVER, SIZES, graph, one_way, types};
use crate::support::sources::root;

const LISTED: usize = 10;

#[test]
#[ignore = "prints; asserts nothing"]
fn report() {
    for house in [&*SERVER, &*CORE] {
        folders(house);
        scattered(house);
    }
    twins();
    upward();
    externals();
    largest("functions", &SIZES.functions, FUNCTION_LINES_MAX);
    largest("files", &SIZES.files, FILE_LINES_MAX);
    largest("structs by fields", &SIZES.structs, FIELDS_MAX);
}

fn folders(house: &House) {
    let edges: BTreeSet<_> = house.imports.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let circles = graph::circles(&edges.iter().copied().collect::<Vec<_>>());
    let largest = circles.iter().map(Vec::len).max().unwrap_or_default();
    println!("\n{}: {} files, {} imports", house.src, house.paths.len(), edges.len());
    println!("circles of files: {}, the largest of {largest} files", circles.len());
    println!("{:32} {:>8} {:>8} {:>10} {:>8}", "folder", "children", "imports", "in circles", "circles");
    for folder in one_way::folders(house) {
        let children: BTreeSet<_> = house.paths.iter().filter_map(|path| child(path, &folder)).collect();
        let imports = house.imports.edges.iter().filter_map(|edge| one_way::siblings(house, &folder, edge));
        let pairs: BTreeSet<_> = imports.collect();
        let pairs: Vec<_> = pairs.into_iter().collect();
        let circles = graph::circles(&pairs);
        let in_circle = |&(from, to): &(&str, &str)| {
            circles.iter().any(|circle: &Vec<&str>| circle.contains(&from) && circle.contains(&to))
        };
        let inside = pairs.iter().filter(|pair| in_circle(pair)).count();
        println!("{folder:32} {:>8} {:>8} {inside:>10} {:>8}", children.len(), pairs.len(), circles.len());
    }
}

fn child<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()
}

/// Prints the imports that do not go to a lower floor, by the floors that `src/lib.rs` writes above its modules.
fn upward() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("UTF-8");
    let (mut floors, mut floor) = (BTreeMap::new(), 0);
    for line in lib.lines() {
        if let Some(number) = line.strip_prefix("// F") {
            floor = number.parse().expect("a floor");
        } else if let Some(module) = line.strip_prefix("pub mod ") {
            floors.insert(module.trim_end_matches(';').to_owned(), floor);
        }
    }
    let house = &*SERVER;
    let floor = |file: usize| {
        let name = child(&house.paths[file], "src").expect("below src").trim_end_matches(".rs");
        (name, floors.get(name).copied().unwrap_or(u8::MAX))
    };
    let mut upward = BTreeMap::<_, BTreeSet<_>>::new();
    for edge in &house.imports.edges {
        let ((from, own), (to, other)) = (floor(edge.from), floor(edge.to));
        if from != to && other >= own {
            upward.entry((from, to)).or_default().insert((edge.from, edge.to));
        }
    }
    println!("\nupward imports from floor to floor: {}", upward.values().map(BTreeSet::len).sum::<usize>());
    for ((from, to), pairs) in upward {
        println!("  {from} -> {to}: {}", pairs.len());
    }
}

fn scattered(house: &House) {
    let found = types::scattered(house);
    println!("types with methods in several files: {}", found.len());
    for line in found {
        println!("  {} ({} places)", line.split(':').next().unwrap_or_default(), line.matches(".rs:").count());
    }
}

/// Prints the crates that each child of `src` uses.
fn externals() {
    let mut used = BTreeMap::<_, BTreeSet<_>>::new();
    for external in &SERVER.imports.externals {
        let child = child(&SERVER.paths[external.from], "src").expect("below src");
        used.entry(child).or_default().insert(external.name.as_str());
    }
    println!("\ncrates in use");
    for (child, names) in used {
        println!("  {child}: {}", names.into_iter().filter(|name| *name != "std").collect::<Vec<_>>().join(", "));
    }
}

/// Prints the names that several types share, without those that only their own file can name.
fn twins() {
    let twins = types::twins(&[&SERVER, &CORE], &["src/", "crates/"]);
    println!("\nnames of several types: {}", twins.len());
    twins.iter().for_each(|line| println!("  {line}"));
}

fn largest(what: &str, sizes: &[Sized], max: usize) {
    let mut all: Vec<_> = sizes.iter().map(|sized| (sized.size, &sized.path, &sized.name)).collect();
    all.sort_by(|a, b| b.cmp(a));
    let over = all.iter().filter(|(size, ..)| *size > max).count();
    println!("\n{what}: {}, of which {over} over {max}", all.len());
    for (size, path, name) in all.iter().take(LISTED) {
        println!("  {size:>5} {path} {name}");
    }
}
