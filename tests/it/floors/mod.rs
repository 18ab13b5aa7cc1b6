//! The floors of ARCHITECTURE.md, read from the sources, so that a shortcut fails here before anybody builds on it.
//! A file imports only lower floors or its own folder, and there in one direction; the core does nothing but compute;
//! functions, files and structs stay small enough to be read.

mod graph;
mod house;
mod imports;
mod modules;
mod one_way;
mod sizes;
mod sources;
mod tests_only;
mod types;

use std::fs;

use house::House;
use regex::Regex;
use sources::{Source, root};

/// Folder or file under `src/`, and its floor. A new one takes its place here, and in ARCHITECTURE.md.
const FLOORS: [(&str, u8); 12] = [
    ("types", 1),
    ("telemetry", 1),
    ("extract", 1),
    ("cpu", 2),
    ("index", 2),
    ("store", 2),
    ("verdicts", 3),
    ("engine", 4),
    ("collections", 5),
    ("config", 6),
    ("http", 7),
    ("cli", 8),
];

/// What the core may be built from: tables, hashes, error types. Each new one must be as free of I/O as these.
const CORE_DEPENDENCIES: [&str; 6] =
    ["icu_casemap", "icu_normalizer", "icu_properties", "siphasher", "thiserror", "xxhash-rust"];

/// Folders of the crates whose imports are looked at.
const CRATES: [&str; 2] = ["src", "crates/hapax-core/src"];

/// Folders whose functions and files are measured.
const MEASURED: [&str; 5] = ["src", "crates", "tests", "loadtest", "benches"];

const FUNCTION_LINES_MAX: usize = 60;
const FILE_LINES_MAX: usize = 500;
const FIELDS_MAX: usize = 12;

/// Tables of data.
const LONG_FILES: [&str; 2] = ["crates/hapax-core/src/unicode.rs", "src/telemetry/names.rs"];

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

/// `src/http/dto/verdict.rs` -> `http`; `src/types/ids.rs` -> `types`.
fn child_of_src(path: &str) -> &str {
    let below = path.strip_prefix("src/").expect("below src");
    below.split('/').next().expect("not empty").trim_end_matches(".rs")
}

fn houses() -> [House; 2] {
    CRATES.map(|src| House::at(src, &[]))
}

/// Fails with all that was found.
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{} {what}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_path_of_the_crates_is_understood() {
    for house in houses() {
        none("paths name nothing", &house.imports.unresolved);
        assert!(house.imports.edges.len() > 50, "{}: only {} imports", house.src, house.imports.edges.len());
        let strays: Vec<_> =
            (0..house.sources.len()).filter(|file| !house.modules.of_file.contains_key(file)).collect();
        let strays: Vec<_> = strays.into_iter().map(|file| house.sources[file].path.as_str()).collect();
        assert!(strays.iter().all(|path| *path == "src/main.rs"), "no `mod` line declares {strays:?}");
    }
}

#[test]
#[ignore = "until the engine is apart"]
fn no_files_import_each_other_in_a_circle() {
    none("circles", &houses().iter().flat_map(one_way::file_circles).collect::<Vec<_>>());
}

#[test]
#[ignore = "until the engine is apart"]
fn imports_among_the_children_of_a_folder_run_one_way() {
    none("circles", &houses().iter().flat_map(one_way::sibling_circles).collect::<Vec<_>>());
}

#[test]
#[ignore = "until the engine is apart"]
fn methods_of_a_type_are_in_one_file() {
    none("types", &houses().iter().flat_map(types::scattered).collect::<Vec<_>>());
}

#[test]
#[ignore = "until the engine is apart"]
fn each_use_of_unsafe_says_why_itself() {
    let sources: Vec<_> = CRATES.iter().flat_map(|src| sources::below(src)).collect();
    let lines = sources.iter().flat_map(|source| source.text.lines().map(|line| (&source.path, line)));
    let reasons: Vec<_> = lines.filter(|(_, line)| line.contains("// SAFETY:")).collect();
    assert!(reasons.len() > 10, "{reasons:?}");
    let short = reasons.iter().filter(|(_, line)| line.to_lowercase().contains("above"));
    none("reasons", &short.map(|(path, line)| format!("{path}: {}", line.trim())).collect::<Vec<_>>());
}

#[test]
#[ignore = "until the engine is apart"]
fn functions_are_short() {
    none("functions", &measured(sizes::functions, FUNCTION_LINES_MAX, "lines"));
}

#[test]
#[ignore = "until the engine is apart"]
fn files_are_short() {
    let sources = MEASURED.iter().flat_map(|folder| sources::below(folder));
    let long = sources.filter(|source| source.lines() > FILE_LINES_MAX && !LONG_FILES.contains(&&*source.path));
    none("files", &long.map(|source| format!("{}: {} lines", source.path, source.lines())).collect::<Vec<_>>());
}

#[test]
#[ignore = "until the engine is apart"]
fn structs_have_few_fields() {
    none("structs", &measured(sizes::structs, FIELDS_MAX, "fields"));
}

/// What is larger than it may be.
fn measured(measure: impl Fn(&Source) -> Vec<sizes::Sized>, max: usize, unit: &str) -> Vec<String> {
    let mut found = Vec::new();
    for source in MEASURED.iter().flat_map(|folder| sources::below(folder)) {
        let large = measure(&source).into_iter().filter(|sized| sized.size > max);
        found
            .extend(large.map(|large| format!("{}:{} {}: {} {unit}", source.path, large.line, large.name, large.size)));
    }
    found
}

#[test]
#[ignore = "until the engine is apart"]
fn imports_go_down_only() {
    let house = House::at("src", &[]);
    let mut upward = Vec::new();
    for edge in &house.imports.edges {
        let [from, to] = [edge.from, edge.to].map(|file| house.sources[file].path.as_str());
        let [name, imported] = [from, to].map(child_of_src);
        // These two see all floors.
        if name == imported || name == "lib" || name == "main" {
            continue;
        }
        let [own, floor] =
            [name, imported].map(|name| floor(name).unwrap_or_else(|| panic!("{name} has no floor; give it one")));
        if floor >= own {
            upward.push(format!("{from}:{} (floor {own}) imports {} of {to} (floor {floor})", edge.line, edge.path));
        }
    }
    none("upward imports", &upward);
}

#[test]
fn no_import_climbs_out_of_its_folder_by_super() {
    let house = House::at("src", &[]);
    none("paths climb to the root; name it by crate::", &house.imports.climbing);
}

#[test]
fn lib_lists_the_modules_in_floor_order() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("UTF-8");
    let pattern = Regex::new(r"pub mod (\w+);").expect("a pattern");
    let floors: Vec<_> = pattern.captures_iter(&lib).map(|found| floor(&found[1]).expect("on a floor")).collect();
    assert!(floors.len() > 5 && floors.is_sorted(), "{floors:?}");
}

#[test]
fn anyhow_stays_on_the_top_floor() {
    let house = House::at("src", &["anyhow"]);
    let anyhow: Vec<_> = house.imports.externals.iter().filter(|external| external.name == "anyhow").collect();
    assert!(!anyhow.is_empty());
    for external in anyhow {
        let path = &house.sources[external.from].path;
        assert_eq!(child_of_src(path), "cli", "{path}:{}: errors below the cli are enums", external.line);
    }
}

#[test]
fn the_core_only_computes() {
    let manifest = fs::read_to_string(root().join("crates/hapax-core/Cargo.toml")).expect("the core's manifest");
    let section = manifest.split("\n[dependencies]\n").nth(1).expect("dependencies");
    let section = section.split("\n[").next().unwrap_or_default();
    for line in section.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let name = line.split([' ', '=', '.']).next().unwrap_or_default();
        assert!(CORE_DEPENDENCIES.contains(&name), "hapax-core depends on {name}; is it as pure as the core?");
    }
    for source in sources::below("crates/hapax-core/src") {
        for line in source.text.lines() {
            let code = line.split("//").next().unwrap_or_default();
            for effect in
                ["std::fs", "std::io", "std::net", "std::env", "std::time", "std::thread", "std::process", "static mut"]
            {
                assert!(!code.contains(effect), "{}: {effect} has no place in the core", source.path);
            }
        }
    }
}
