//! Runs the server's fuzz targets on mutated inputs. Unlike a fuzzer, this test does not know which branches it has
//! reached. But it needs no nightly compiler and no separate build, so it runs with all other tests. `make fuzz-server`
//! tests more thoroughly.

#![allow(unreachable_pub)] // of the targets and their support
#![allow(clippy::new_without_default)]
#![allow(clippy::print_stderr, clippy::print_stdout)] // inputs that fail

extern crate self as hapax_fuzz;

#[path = "fuzz/fuzz_targets/bodies.rs"]
mod bodies;
#[path = "fuzz/fuzz_targets/config.rs"]
mod config;
#[path = "fuzz/fuzz_targets/keys.rs"]
mod keys;
#[path = "fuzz/fuzz_targets/lines.rs"]
mod lines;
#[path = "fuzz/fuzz_targets/load.rs"]
mod load;
#[path = "fuzz/fuzz_targets/pages.rs"]
mod pages;
#[path = "fuzz/fuzz_targets/query.rs"]
mod query;
#[path = "fuzz/fuzz_targets/records.rs"]
mod records;
#[path = "fuzz/fuzz_targets/rows.rs"]
mod rows;
#[path = "fuzz/support.rs"]
mod support;
#[path = "fuzz/fuzz_targets/tables.rs"]
mod tables;
#[path = "fuzz/fuzz_targets/texts.rs"]
mod texts;
#[path = "fuzz/fuzz_targets/warc.rs"]
mod warc;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use support::{BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, Service, comparable, pieces, read_file};

/// The longest input, as for the fuzzer.
const INPUT_BYTES_MAX: usize = 6000;
/// Pieces of input that parsers of this kind often handle wrongly.
const TROUBLE: &[&[u8]] = &[
    b"\0",
    b"\xFF",
    b"\xEF\xBB\xBF",
    b"\xED\xA0\x80",
    b"\\ud800",
    b"\"",
    b"\\",
    b"\n",
    b"[[[[[[[[",
    b"{\"a\":",
    b"-0",
    b"1e999",
    b"18446744073709551616",
    b"%",
    b"%00",
    b"&",
    b"=",
    b"null",
];

/// Every file that `seeds.py` writes, by its path. The files are written once, before the first input of any target
/// runs: a process that starts holds this process's files for a moment, and so the locks of data directories that were
/// just closed.
static SEEDS: LazyLock<BTreeMap<PathBuf, Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds.py");
    let made = Command::new("python3").arg(script).arg(folder.path()).status();
    assert!(made.is_ok_and(|status| status.success()), "seeds.py needs python3");
    let paths = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let (folders, files): (Vec<_>, Vec<_>) = paths(folder.path()).into_iter().partition(|path| path.is_dir());
    let files = folders.iter().flat_map(|dir| paths(dir)).chain(files);
    files.map(|path| (path.strip_prefix(&folder).unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
});

/// The first inputs of a target, and the words of its dictionary.
struct Seeds {
    inputs: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Seeds {
    fn of(target: &str) -> Self {
        let inputs = SEEDS.iter().filter(|(path, _)| path.starts_with(target)).map(|(_, input)| input.clone());
        let dictionary = str::from_utf8(&SEEDS[Path::new(&format!("{target}.dict"))]).unwrap();
        let words = dictionary.lines().map(|line| line.trim_matches('"').as_bytes().to_vec());
        Self { inputs: inputs.collect(), words: words.collect() }
    }

    /// Returns an input with one to eight changes.
    fn mutated(&self, random: &mut impl Rng) -> Vec<u8> {
        let mut input = self.inputs.choose(random).unwrap().clone();
        for _ in 0..random.random_range(1..=8) {
            let at = random.random_range(0..=input.len());
            let end = random.random_range(at..=input.len().min(at + 64));
            match random.random_range(0..6) {
                0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
                1 => drop(input.drain(at..end)),
                2 => drop(input.splice(at..at, TROUBLE.choose(random).unwrap().iter().copied())),
                3 => drop(input.splice(at..end, self.words.choose(random).unwrap().clone())),
                // Inserts a part of the input again, often enough to reach the limits.
                4 => {
                    let piece = input[at..end].repeat(random.random_range(1..100));
                    drop(input.splice(at..at, piece));
                }
                _ => {
                    let other = self.inputs.choose(random).unwrap();
                    drop(input.splice(at..end, other[random.random_range(0..=other.len())..].iter().copied()));
                }
            }
            input.truncate(INPUT_BYTES_MAX);
        }
        input
    }
}

/// Runs a target on its seeds and on `count` mutations of them, in CI on five times as many. An input that fails is
/// printed.
fn run(target: &str, count: usize, run: fn(&[u8])) {
    let count = if std::env::var_os("CI").is_some() { 5 * count } else { count };
    let (seeds, mut random) = (Seeds::of(target), ChaCha8Rng::seed_from_u64(5));
    assert!(seeds.inputs.len() >= 2 && seeds.words.len() >= 3, "{target} has seeds and words");
    let mutated: Vec<_> = (0..count).map(|_| seeds.mutated(&mut random)).collect();
    for input in seeds.inputs.iter().chain(&mutated) {
        if let Err(panic) = std::panic::catch_unwind(|| run(input)) {
            eprintln!("{target} failed with this input: {}", input.escape_ascii());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn bodies_get_an_answer_below_500() {
    run("bodies", 600, bodies::run);
}

#[test]
fn settings_are_the_same_after_printing_or_have_an_error() {
    run("config", 400, config::run);
}

#[test]
fn keys_are_the_same_after_printing_or_have_an_error() {
    run("keys", 4000, keys::run);
}

#[test]
fn lines_of_bulk_get_a_line_each() {
    run("lines", 600, lines::run);
}

#[test]
fn pages_have_a_text_of_their_visible_words() {
    run("pages", 4000, pages::run);
}

#[test]
fn queries_are_read_as_form_urlencoded_reads_them() {
    run("query", 10_000, query::run);
}

#[test]
fn records_are_read_as_they_were_written() {
    run("records", 400, records::run);
}

#[test]
fn pages_of_damaged_archives_are_documents() {
    run("warc", 1500, warc::run);
}

#[test]
fn files_of_signatures_make_a_sound_collection_or_none() {
    run("load", 300, load::run);
}

#[test]
fn rows_of_damaged_files_are_documents_and_so_are_their_copies() {
    run("rows", 400, rows::run);
}

#[test]
fn kept_records_of_damaged_tables_are_the_same_documents() {
    run("tables", 500, tables::run);
}

#[test]
fn texts_are_one_document_and_lines_are_the_same_with_other_ends() {
    run("texts", 500, texts::run);
}
