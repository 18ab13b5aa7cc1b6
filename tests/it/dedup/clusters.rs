//! Connected components are those of all pairs of duplicates, and without verification all documents that share a band are
//! duplicates.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::Path;

use arrow_json::LineDelimitedWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::{corpus, dedup, ids, lines, parsed, read, refused};
use crate::cli::text;
use crate::support::command::hapax;

/// Returns the word shingles of a generated text. Its words need no folding.
fn shingles(document: &Value) -> HashSet<String> {
    let words: Vec<_> = document["text"].as_str().expect("a text").split_whitespace().collect();
    words.windows(5).map(|window| window.join(" ")).collect()
}

/// Returns the component of each document: the number of its first document. All pairs are compared.
fn components_of_all_pairs(documents: &[Value], threshold: f64) -> Vec<usize> {
    let sets: Vec<_> = documents.iter().map(shingles).collect();
    let mut components: Vec<usize> = (0..documents.len()).collect();
    for (one, set) in sets.iter().enumerate() {
        for (other, earlier) in sets[..one].iter().enumerate() {
            let both = set.intersection(earlier).count() as f64;
            if both > 0.0 && both >= threshold * (set.len() + earlier.len()) as f64 - threshold * both {
                let [from, to] = [components[one], components[other]];
                let (from, to) = (from.max(to), from.min(to));
                components.iter_mut().filter(|component| **component == from).for_each(|component| *component = to);
            }
        }
    }
    components
}

/// With so many bands of one row, every pair at the threshold shares a band.
const ALL_PAIRS: [&str; 10] =
    ["in.jsonl", "--clusters", "components", "--verify", "exact", "--threshold", "0.5", "--bands", "256", "--rows"];

fn components(dir: &Path, more: &[&str]) -> (Vec<u8>, Vec<Value>) {
    dedup(dir, &[&ALL_PAIRS[..], &["1"], more].concat())
}

#[test]
fn components_are_those_of_all_pairs() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(900, 21);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let truth = components_of_all_pairs(&documents, 0.5);
    let is_empty = |number: usize| shingles(&documents[number]).is_empty();
    let length = |number: usize| documents[number]["text"].as_str().expect("a text").len();
    for order in ["first", "longest"] {
        let (kept, report) = components(dir.path(), &["--keep", order]);
        let mut best: BTreeMap<usize, usize> = BTreeMap::new();
        for number in (0..documents.len()).filter(|&number| !is_empty(number)) {
            let of = best.entry(truth[number]).or_insert(number);
            if order == "longest" && length(number) > length(*of) {
                *of = number;
            }
        }
        let mut expected: Vec<_> = best.values().copied().collect();
        expected.sort_unstable();
        let expected: Vec<_> = expected.into_iter().map(|number| format!("d/{number}")).collect();
        assert_eq!(ids(&parsed(&kept)), expected, "{order}");
        let mut chained = 0;
        for line in report.iter().filter(|line| line["verdict"] != "empty") {
            let number = |field: &str| line[field].as_str().expect("an id")[2..].parse::<usize>().expect("a number");
            let [own, original, similar] = ["id", "duplicate_of", "similar_to"].map(number);
            assert_eq!(original, best[&truth[own]], "{line}");
            assert_eq!(truth[similar], truth[own], "{line}");
            let [one, other] = [own, similar].map(|number| shingles(&documents[number]));
            let both = one.intersection(&other).count() as f64;
            let jaccard =
                both / (one.len() + other.len()) as f64 * (1.0 + both / ((one.len() + other.len()) as f64 - both));
            assert!((line["similarity"].as_f64().expect("a number") - jaccard).abs() < 1e-5, "{line} {jaccard}");
            chained += usize::from(similar != original);
        }
        assert!(chained > 10, "chains join documents that are not compared with the kept one: {chained}");
    }
}

#[test]
fn components_depend_on_the_documents_only_and_a_large_one_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(600, 22);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (whole, report) = components(dir.path(), &[]);
    for threads in ["1", "7"] {
        let arguments = [&["dedup"], &ALL_PAIRS[..], &["1", "-o", "threads"]].concat();
        let run = hapax(&arguments).current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(run.status.success() && read(&dir.path().join("threads")) == whole, "{run:?}");
        let summary = text(&run.stdout);
        let number = |row: &str| -> u64 {
            let line = summary.lines().find(|line| line.starts_with(row)).expect("a row");
            line.rsplit(' ').next().expect("a number").replace(',', "").parse().expect("a number")
        };
        assert!(number("clusters") > 10 && number("largest") > 6, "{summary}");
        // Tiny clusters are no reason for a warning, even if they are a large share.
        assert!(run.stderr.is_empty(), "{run:?}");
    }
    let (_, again) = components(dir.path(), &[]);
    assert_eq!(report, again);
    let chain = |n: usize| json!({"text": (n..n + 30).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")});
    std::fs::write(dir.path().join("in.jsonl"), lines(&(0..120).map(chain).collect::<Vec<_>>())).unwrap();
    let run = hapax(&["dedup", "in.jsonl", "-o", "o", "--clusters", "components"]).current_dir(dir.path()).output();
    let told = text(&run.unwrap().stderr);
    assert!(told.starts_with("warning: the largest component has 1"), "{told}");
}

#[test]
fn documents_that_share_a_band_are_duplicates_without_verification() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(900, 23);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let bands = ["in.jsonl", "--bands", "20", "--rows", "3"];
    let run = |more: &[&str]| {
        let (kept, report) = dedup(dir.path(), &[&bands, more].concat());
        let similarities = report.iter().filter_map(|line| line["similarity"].as_f64());
        (parsed(&kept).len(), similarities.fold(1.0, f64::min))
    };
    let (verified, lowest) = run(&["--threshold", "0.8"]);
    let (unverified, lowest_unverified) = run(&["--verify", "none"]);
    assert!(unverified < verified && lowest >= 0.8 && lowest_unverified < 0.6, "{lowest} {lowest_unverified}");
    let (joined, _) = run(&["--verify", "none", "--clusters", "components"]);
    assert!(joined < unverified, "{joined} {unverified}");
}

#[test]
fn a_preset_is_short_for_options() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(900, 24))).unwrap();
    let run = |options: &[&str]| dedup(dir.path(), &[&["in.jsonl", "--sketch", "fss128x16"], options].concat());
    let fineweb =
        ["--shingle", "word5", "--bands", "14", "--rows", "8", "--verify", "none", "--clusters", "components"];
    assert_eq!(run(&["--preset", "fineweb"]), run(&fineweb));
    assert_eq!(run(&["--preset", "fineweb", "--clusters", "star"]), run(&fineweb[..8]));
    // datasketch 1.6.5: MinHashLSH(threshold=t, num_perm=128).b and .r
    for (threshold, bands, rows) in [("0.9", "5", "25"), ("0.8", "9", "13"), ("0.5", "25", "5")] {
        let preset = run(&["--preset", "datasketch", "--threshold", threshold]);
        assert_eq!(preset, run(&["--bands", bands, "--rows", rows, "--verify", "none"]), "{threshold}");
        if threshold == "0.9" {
            assert_eq!(preset, run(&["--preset", "datasketch"]));
        }
    }
    // One number is replaced, and the other one is that of the preset.
    let one = run(&["--preset", "fineweb", "--clusters", "star", "--rows", "6"]);
    assert_eq!(one, run(&["--shingle", "word5", "--bands", "14", "--rows", "6", "--verify", "none"]));
    assert_eq!(
        run(&["--preset", "datasketch", "--bands", "3"]),
        run(&["--bands", "3", "--rows", "25", "--verify", "none"])
    );
    let refused_with = |options: &[&str]| refused(dir.path(), &[&["in.jsonl"], options].concat());
    let wide = refused_with(&["--preset", "fineweb", "--rows", "20"]);
    assert!(wide.contains("bands and rows (--bands, --rows): "), "{wide}");
    assert!(refused_with(&["--bands", "9"]).contains("--bands is given without --rows; give both"));
    let spec = "hapax1;unicode=17;fold=nfkc;marks=keep;digits=keep;shingle=word3;sketch=fss256x8;key=none";
    let whole = ["in.jsonl", "--preset", "fineweb", "--spec", spec];
    assert_ne!(dedup(dir.path(), &whole).0, run(&["--preset", "fineweb"]).0);
    assert!(refused(dir.path(), &["in.jsonl", "--preset", "other"]).contains("possible values: fineweb, datasketch"));
}

#[test]
fn a_report_of_parquet_has_the_fields_of_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let input = format!("broken\n{}", lines(&corpus(4500, 25)));
    std::fs::write(dir.path().join("in.jsonl"), input).unwrap();
    let run = |report: &str, clusters: &str| {
        let arguments = ["dedup", "in.jsonl", "-o", "out", "--report", report, "--clusters", clusters];
        let run = hapax(&arguments).current_dir(dir.path()).output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        dir.path().join(report)
    };
    for clusters in ["star", "components"] {
        let expected = parsed(&read(&run("report.jsonl", clusters)));
        let file = File::open(run("report.parquet", clusters)).unwrap();
        let mut rows = LineDelimitedWriter::new(Vec::new());
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            rows.write(&batch.unwrap()).unwrap();
        }
        rows.finish().unwrap();
        let rows = parsed(&rows.into_inner());
        // More rows than are converted at once.
        assert!(rows.len() > 1024, "{}", rows.len());
        assert_eq!(rows, expected, "{clusters}");
    }
}
