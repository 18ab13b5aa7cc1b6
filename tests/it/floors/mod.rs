//! The floors of ARCHITECTURE.md, checked in the sources, so that a shortcut fails here before other code depends on
//! it. A file imports only from lower floors or from its own folder. Within a folder, imports go only in one direction.
//! The core only computes. Functions, files and structs stay small enough to read.

mod downward;
mod graph;
mod house;
mod imports;
mod modules;
mod one_way;
mod other_crates;
mod parts;
mod report;
mod sizes;
mod tests_only;
mod types;

use std::fs;
use std::sync::LazyLock;

use crate::support::sources::{self, root};
use house::House;
use regex::Regex;
use sizes::{Sized, Sizes};

/// Each folder or file under `src/`, and its floor. A new one must be added here and to ARCHITECTURE.md.
const FLOORS: [(&str, u8); 21] = [
    ("plain_file", 1),
    ("types", 1),
    ("telemetry", 1),
    ("audit", 2),
    ("cpu", 2),
    ("extract", 2),
    ("grams", 2),
    ("index", 2),
    ("keys", 2),
    ("store", 2),
    ("tls", 2),
    ("verdicts", 3),
    ("corpus", 4),
    ("engine", 4),
    ("load", 4),
    ("redis", 4),
    ("collections", 5),
    ("input", 5),
    ("config", 6),
    ("http", 7),
    ("cli", 8),
];

/// The dependencies of the core: tables, hashes, error types. A new dependency must also do no I/O.
const CORE_DEPENDENCIES: [&str; 6] =
    ["icu_casemap", "icu_normalizer", "icu_properties", "siphasher", "thiserror", "xxhash-rust"];

/// Folders whose functions, files and structs are measured.
const MEASURED: [&str; 5] = ["src", "crates", "tests", "loadtest", "benches"];

const FUNCTION_LINES_MAX: usize = 60;
const FILE_LINES_MAX: usize = 500;
const FIELDS_MAX: usize = 12;

const LONG_FILES: [&str; 2] = ["crates/hapax-core/src/unicode.rs", "src/telemetry/names.rs"];

/// The crates that each child of `src` may use. Most children do not use crates for disks, clients or clocks.
const OTHER_CRATES: [(&str, &str); 21] = [
    ("plain_file", "libc"),
    // The calendar, for the dates of captures; JSON, for metadata.
    ("types", "hapax_core jiff serde serde_json thiserror"),
    (
        "telemetry",
        "metrics metrics_process metrics_util parking_lot pin_project_lite thiserror tikv_jemalloc_sys tracing tracing_subscriber",
    ),
    ("audit", "hapax_core jiff metrics parking_lot serde serde_json thiserror tracing"),
    ("cpu", "libc metrics parking_lot rustix thiserror tokio tracing"),
    // Parsers and tables. `extract` reads only bytes that strangers sent.
    ("extract", "chardetng encoding_rs html5gum memchr xxhash_rust"),
    ("grams", "hapax_core slab thiserror"),
    ("index", "arc_swap bytemuck dashmap hapax_core parking_lot rayon rustix slab smallvec tracing"),
    // Hashes of keys, random keys, a file of keys, and its changes. `keys` never waits for a client.
    ("keys", "arc_swap getrandom jiff metrics serde sha2 subtle thiserror tokio_util toml_edit tracing"),
    ("store", "hapax_core jiff parking_lot rusqlite serde serde_json thiserror tracing xxhash_rust"),
    (
        "tls",
        "jiff metrics parking_lot rustls rustls_native_certs rustls_pki_types thiserror tokio tokio_rustls tracing x509_parser",
    ),
    ("verdicts", "base64 bytes hapax_core jiff metrics parking_lot smallvec thiserror zstd"),
    ("corpus", "hapax_core"),
    ("engine", "arc_swap futures hapax_core hashbrown metrics parking_lot rustix tokio tracing"),
    ("load", "arrow_array arrow_schema bytes hapax_core parking_lot parquet serde serde_json thiserror"),
    // The client of a cluster, its tasks and its clock.
    (
        "redis",
        "arc_swap bytes futures getrandom hapax_core memchr metrics parking_lot redis roaring rustls serde serde_json sha2 thiserror tokio tokio_rustls tokio_util tracing",
    ),
    ("collections", "bytes futures hapax_core metrics parking_lot thiserror tokio tracing"),
    (
        "input",
        "arrow_array arrow_json arrow_schema base64 brotli_decompressor csv_core encoding_rs flate2 memchr parquet serde serde_json thiserror zstd",
    ),
    ("config", "figment hapax_core ipnet jiff rustix serde serde_json strsim thiserror"),
    (
        "http",
        "arc_swap async_compression axum base64 bytes dashmap flate2 futures h2 hapax_core hyper hyper_util jiff memchr metrics parking_lot rust_embed \
         serde serde_json smallvec tokio tokio_rustls tokio_util tower tower_http tracing",
    ),
    (
        "cli",
        "anyhow arrow_array arrow_json arrow_schema clap csv_core flate2 glob hapax_core indicatif jiff listenfd metrics parquet plotters \
         rayon rustix rustls sd_notify serde serde_json signal_hook thiserror tokio tokio_util tracing ureq zstd",
    ),
];

/// The files that judge and decide, by the beginnings of their paths. They have pure functions of data in memory.
const DECIDING: [&str; 4] =
    ["src/index/", "src/engine/lookup/judge", "src/engine/write/rules", "src/verdicts/comparing"];

/// Crates that wait, read a disk or count.
const WAITING: [&str; 3] = ["tokio", "rusqlite", "metrics"];

/// Floors that share one vocabulary for documents. Higher floors have their own words: a page, a line, a problem.
const ONE_VOCABULARY: [&str; 8] = [
    "crates/hapax-core/src/",
    "src/types",
    "src/cpu",
    "src/index/",
    "src/store/",
    "src/verdicts/",
    "src/engine/",
    "src/collections/",
];

/// Structs with many fields that only carry values: rows, answers, settings, arguments and meters.
const WIDE: [&str; 14] = [
    "Args",
    "AuditLine",
    "DescriptionBody",
    "Document",
    "DocumentRecord",
    "HttpLimits",
    "Meters",
    "Raw",
    "RawDefaultCollection",
    "RawServer",
    "Record",
    "Report",
    "Verdict",
    "VerdictBody",
];

/// Structs with public fields: values that are counted up, or cut to fit, before they are read.
const OPEN: [&str; 12] = [
    "Chunk",
    "ClusterPage",
    "ClustersPage",
    "Examined",
    "Explanation",
    "Inspection",
    "Ledger",
    "Probed",
    "Search",
    "Summary",
    "Tally",
    "Verdict",
];

/// `src/http/dto/verdict.rs` -> `http`; `src/types/ids.rs` -> `types`.
fn child_of_src(path: &str) -> &str {
    let below = path.strip_prefix("src/").expect("below src");
    below.split('/').next().expect("not empty").trim_end_matches(".rs")
}

// The sources are parsed once for all tests.
static SERVER: LazyLock<House> = LazyLock::new(|| {
    let names = other_crates::of_the_manifest("Cargo.toml");
    assert!(names.len() > 20, "{names:?}");
    House::at("src", &names.iter().map(String::as_str).collect::<Vec<_>>())
});
static CORE: LazyLock<House> = LazyLock::new(|| House::at("crates/hapax-core/src", &[]));
static SIZES: LazyLock<Sizes> = LazyLock::new(|| Sizes::of(&MEASURED));

/// Returns the findings of a rule in both crates.
fn in_both(rule: impl Fn(&House) -> Vec<String>) -> Vec<String> {
    [&*SERVER, &*CORE].into_iter().flat_map(rule).collect()
}

/// Returns the items that are larger than allowed.
fn over(sizes: &[Sized], max: usize, unit: &str) -> Vec<String> {
    let large = sizes.iter().filter(|sized| sized.size > max);
    large.map(|large| format!("{}:{} {}: {} {unit}", large.path, large.line, large.name, large.size)).collect()
}

/// Removes the findings (`path:line name: what`) for these exceptions. An exception that no finding needs is itself a
/// finding.
fn except(mut found: Vec<String>, exceptions: &[&str]) -> Vec<String> {
    for exception in exceptions {
        let before = found.len();
        found.retain(|line| line.split([' ', ':']).nth(2) != Some(exception));
        if found.len() == before {
            found.push(format!("{exception} needs no exception: take it off the list"));
        }
    }
    found
}

#[test]
fn exceptions_are_of_what_is_found() {
    let found = || vec!["src/a.rs:1 A: b, B".to_owned(), "src/c.rs:2 B: d".to_owned()];
    assert_eq!(except(found(), &["B"]), ["src/a.rs:1 A: b, B"]);
    assert_eq!(except(found(), &["A", "B", "C"]), ["C needs no exception: take it off the list"]);
}

/// Fails with all findings.
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{} {what}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_path_of_the_crates_is_understood() {
    for house in [&*SERVER, &*CORE] {
        none("paths name nothing", &house.imports.unresolved);
        assert!(house.imports.edges.len() > 50, "{}: only {} imports", house.src, house.imports.edges.len());
        let strays = (0..house.paths.len()).filter(|file| !house.modules.of_file.contains_key(file));
        let strays: Vec<_> = strays.map(|file| &house.paths[file]).filter(|path| *path != "src/main.rs").collect();
        assert!(strays.is_empty(), "no `mod` line declares {strays:?}");
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    none("circles", &in_both(one_way::file_circles));
}

#[test]
fn imports_among_the_children_of_a_folder_run_one_way() {
    none("circles", &in_both(one_way::sibling_circles));
}

#[test]
fn methods_of_a_type_are_in_one_file() {
    none("types", &in_both(types::scattered));
}

#[test]
fn one_name_is_of_one_type() {
    none("names", &types::twins(&[&SERVER, &CORE], &ONE_VOCABULARY));
}

#[test]
fn parts_keep_their_fields_to_themselves() {
    none("structs", &except(in_both(parts::open), &OPEN));
}

#[test]
fn each_use_of_unsafe_says_why_itself() {
    let sources: Vec<_> = ["src", "crates"].iter().flat_map(|folder| sources::below(folder)).collect();
    let lines = sources.iter().flat_map(|source| source.text.lines().map(|line| (&source.path, line)));
    let reasons: Vec<_> = lines.filter(|(_, line)| line.contains("// SAFETY:")).collect();
    assert!(reasons.len() > 10, "{reasons:?}");
    let short = reasons.iter().filter(|(_, line)| line.to_lowercase().contains("above"));
    none("reasons", &short.map(|(path, line)| format!("{path}: {}", line.trim())).collect::<Vec<_>>());
}

#[test]
fn functions_and_files_are_short() {
    assert!(SIZES.functions.len() > 1_000 && SIZES.files.len() > 100);
    let mut files = over(&SIZES.files, FILE_LINES_MAX, "lines");
    files.retain(|line| !LONG_FILES.iter().any(|path| line.starts_with(path)));
    let long: Vec<_> = over(&SIZES.functions, FUNCTION_LINES_MAX, "lines").into_iter().chain(files).collect();
    none("functions and files", &long);
}

#[test]
fn structs_have_few_fields() {
    none("structs", &except(over(&SIZES.structs, FIELDS_MAX, "fields"), &WIDE));
}

#[test]
fn imports_go_down_only() {
    none("upward imports", &downward::upward(&SERVER, &FLOORS));
}

#[test]
fn http_and_cli_see_collections_through_the_facade_alone() {
    none("imports", &downward::past_the_facade(&SERVER, &["http", "cli"], &["index", "store", "engine", "redis"]));
}

#[test]
fn each_floor_is_built_on_the_crates_of_its_line() {
    none("differences", &other_crates::differing(&SERVER, &OTHER_CRATES));
}

#[test]
fn what_decides_neither_waits_nor_reads_nor_counts() {
    let uses = other_crates::used_where_nothing_waits(&SERVER, &DECIDING, &WAITING);
    none("uses", &uses);
}

#[test]
fn no_import_climbs_out_of_its_folder_by_super() {
    none("paths climb to the root; name it by crate::", &SERVER.imports.climbing);
}

#[test]
fn lib_lists_the_modules_in_floor_order() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("UTF-8");
    let pattern = Regex::new(r"pub mod (\w+);").expect("a pattern");
    let floors: Vec<_> = pattern
        .captures_iter(&lib)
        .map(|found| FLOORS.iter().find(|(name, _)| *name == &found[1]).expect("on a floor").1)
        .collect();
    assert!(floors.len() > 5 && floors.is_sorted(), "{floors:?}");
}

#[test]
fn anyhow_stays_on_the_top_floor() {
    let anyhow: Vec<_> = SERVER.imports.externals.iter().filter(|external| external.name == "anyhow").collect();
    assert!(!anyhow.is_empty());
    for external in anyhow {
        let path = &SERVER.paths[external.from];
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
