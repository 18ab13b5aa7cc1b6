//! `hapax pairs` lists the pairs of the exact truth, whatever the files, the threads and the format of the output.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cli::{row, run_with_input, text};
use crate::quality::{corpora, ordered, pairs as truth_of, read_zst};
use crate::support::client::gzip;
use crate::support::command::hapax;
use crate::support::jsonl::lines;

/// Bands that propose nearly every pair with a similarity of 0.5 and more.
const BANDING: [&str; 4] = ["--bands", "60", "--rows", "3"];

/// Returns documents of which many repeat another one, exactly or with a few other words. Some are empty.
fn corpus(count: usize, seed: u64) -> Vec<Value> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut texts: Vec<Vec<u32>> = Vec::new();
    (0..count)
        .map(|number| {
            let mut words = match texts.choose(&mut random) {
                Some(text) if random.random_bool(0.7) => text.clone(),
                _ => (0..80).map(|_| random.random_range(0..5000)).collect(),
            };
            for _ in 0..*[0, 0, 1, 3, 8].choose(&mut random).expect("numbers") {
                let at = random.random_range(0..words.len());
                words[at] = random.random_range(0..5000);
            }
            let spelt: Vec<_> = words.iter().map(|word| format!("w{word}")).collect();
            texts.push(words);
            let text = if random.random_bool(0.02) { String::new() } else { spelt.join(" ") };
            json!({"id": format!("d{number}"), "text": text})
        })
        .collect()
}

type Pairs = BTreeMap<(String, String), f64>;

/// Computes the similarities of these pairs of documents as they are defined, and keeps those that reach the threshold.
fn truth<'a>(of: impl Iterator<Item = (&'a Value, &'a Value)>, threshold: f64) -> Pairs {
    let mut sets: HashMap<&str, HashSet<Vec<&str>>> = HashMap::new();
    let mut pairs = Pairs::new();
    for documents in of {
        let [(a, a_text), (b, b_text)] = [documents.0, documents.1]
            .map(|document| (document["id"].as_str().unwrap(), document["text"].as_str().unwrap()));
        for (id, text) in [(a, a_text), (b, b_text)] {
            let words = || text.split_whitespace().collect::<Vec<_>>();
            sets.entry(id).or_insert_with(|| words().windows(5).map(<[&str]>::to_vec).collect());
        }
        let (a_set, b_set) = (&sets[a], &sets[b]);
        let both = a_set.intersection(b_set).count();
        let jaccard = both as f64 / (a_set.len() + b_set.len() - both).max(1) as f64;
        if jaccard >= threshold {
            pairs.insert((a.to_owned(), b.to_owned()), (jaccard * 1e6).round() / 1e6);
        }
    }
    pairs
}

fn of_one_corpus(documents: &[Value]) -> impl Iterator<Item = (&Value, &Value)> {
    documents.iter().enumerate().flat_map(|(at, a)| documents[at + 1..].iter().map(move |b| (a, b)))
}

fn parsed(lines: &[u8]) -> Pairs {
    let listed: Vec<Value> = text(lines).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |pair: &Value, field: &str| pair[field].as_str().expect("an id").to_owned();
    let pairs: Pairs =
        listed.iter().map(|pair| ((of(pair, "a"), of(pair, "b")), pair["similarity"].as_f64().unwrap())).collect();
    assert_eq!(pairs.len(), listed.len(), "each pair is listed once");
    pairs
}

/// Runs `hapax pairs` in a folder, and returns its output and its summary.
fn pairs(dir: &Path, arguments: &[&str]) -> (Vec<u8>, std::process::Output) {
    let arguments = [&["pairs"], arguments, &["-o", "out.jsonl"]].concat();
    let output = hapax(&arguments).current_dir(dir).output().expect("the binary runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    (std::fs::read(dir.join("out.jsonl")).unwrap(), output)
}

/// Compares pairs with the truth: exact similarities, nothing else, and at most one pair in a hundred is missed.
fn agree(found: &Pairs, truth: &Pairs) {
    for (ids, similarity) in found {
        assert_eq!(truth.get(ids), Some(similarity), "{ids:?}");
    }
    let missed = truth.keys().filter(|ids| !found.contains_key(*ids)).count();
    assert!(truth.len() > 500 && missed * 100 <= truth.len(), "{missed} of {} are missed", truth.len());
}

#[test]
fn the_pairs_of_a_corpus_are_those_of_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(500, 21);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let settings = [&["in.jsonl", "--verify", "exact", "--threshold", "0.5"], &BANDING[..]].concat();
    let (found, output) = pairs(dir.path(), &settings);
    let truth = truth(of_one_corpus(&documents), 0.5);
    let found = parsed(&found);
    agree(&found, &truth);
    let equal = |pairs: &Pairs| pairs.values().filter(|similarity| **similarity == 1.0).count();
    assert_eq!(equal(&found), equal(&truth), "equal documents share all bands");

    let [documents, pairs, all, compared, saved, wrong] =
        ["documents ", "pairs ", "all pairs", "compared", "saved", "false"].map(|name| row(&output, name));
    assert_eq!(documents + row(&output, "empty"), 500);
    assert_eq!((pairs, all), (found.len() as u64, documents * (documents - 1) / 2));
    assert_eq!(saved + compared, all);
    assert!(compared < all / 2 && wrong < compared, "{output:?}");
    assert!(row(&output, "missed") * 100 <= pairs, "{output:?}");
}

#[test]
fn an_estimate_is_near_the_truth_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(400, 22);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (found, _) = pairs(dir.path(), &["in.jsonl", "--threshold", "0.7"]);
    let truth = truth(of_one_corpus(&documents), 0.0);
    for line in text(&found).lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let exact = truth[&(pair["a"].as_str().unwrap().to_owned(), pair["b"].as_str().unwrap().to_owned())];
        let value = |field: &str| pair[field].as_f64().unwrap();
        assert!((value("similarity") - exact).abs() < 0.15, "{pair} {exact}");
        assert!(value("low") <= value("similarity") && value("similarity") <= value("high"), "{pair}");
        let method = if pair["method"] == "exact" { exact == 1.0 } else { pair["method"] == "estimate" };
        assert!(method, "{pair}");
        let number = |id: &Value| id.as_str().unwrap()[1..].parse::<u64>().unwrap() + 1;
        let [a, b] = ["a", "b"].map(|side| json!({"file": "in.jsonl", "line": number(&pair[side])}));
        assert_eq!((&pair["a_place"], &pair["b_place"]), (&a, &b));
    }
    assert!(parsed(&found).len() > 200);
}

#[test]
fn two_corpora_are_compared_with_each_other_only() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(500, 23);
    let (old, new) = documents.split_at(300);
    std::fs::write(dir.path().join("old.jsonl"), lines(old)).unwrap();
    std::fs::write(dir.path().join("new.jsonl"), lines(new)).unwrap();
    let settings = [&["new.jsonl", "--against", "old.jsonl", "--verify", "exact", "--threshold", "0.5"], &BANDING[..]];
    let (found, output) = pairs(dir.path(), &settings.concat());
    let across = old.iter().flat_map(|a| new.iter().map(move |b| (a, b)));
    agree(&parsed(&found), &truth(across, 0.5));
    assert_eq!(row(&output, "all pairs"), row(&output, "documents ") * row(&output, "against"));
}

#[test]
fn the_pairs_depend_on_the_documents_and_their_order_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // More than one chunk.
    let documents = corpus(2600, 24);
    std::fs::write(file("in.jsonl"), lines(&documents)).unwrap();
    std::fs::write(file("in.jsonl.gz"), gzip(lines(&documents).as_bytes())).unwrap();
    let ids = |bytes: &[u8]| parsed(bytes);
    let (whole, output) = pairs(dir.path(), &["in.jsonl"]);
    let whole_pairs = ids(&whole);
    assert!(ids(&pairs(dir.path(), &["in.jsonl.gz"]).0) == whole_pairs);
    std::fs::create_dir(file("parts")).unwrap();
    std::fs::write(file("parts/a.jsonl"), lines(&documents[..1111])).unwrap();
    std::fs::write(file("parts/b.jsonl"), lines(&documents[1111..])).unwrap();
    let (of_parts, summary) = pairs(dir.path(), &["parts"]);
    assert!(ids(&of_parts) == whole_pairs);
    for name in ["pairs ", "all pairs", "compared", "false", "missed"] {
        assert_eq!(row(&summary, name), row(&output, name), "{name}");
    }
    for threads in ["1", "7"] {
        let arguments = ["pairs", "in.jsonl", "-o", "threads"];
        let run = hapax(&arguments).current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(run.status.success() && std::fs::read(file("threads")).unwrap() == whole, "{run:?}");
    }
    let piped = run_with_input(&["pairs", "-", "-o", "-"], lines(&documents).as_bytes());
    assert!(ids(&piped.stdout) == whole_pairs);
    assert!(text(&piped.stderr).starts_with("documents "), "{}", text(&piped.stderr));
}

#[test]
fn rows_of_parquet_are_the_lines() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(900, 25))).unwrap();
    let (listed, _) = pairs(dir.path(), &["in.jsonl"]);
    let run = hapax(&["pairs", "in.jsonl", "-o", "out.parquet", "--plot", "plot.svg"]).current_dir(dir.path()).output();
    assert!(run.as_ref().is_ok_and(|run| run.status.success()), "{run:?}");
    let file = std::fs::File::open(dir.path().join("out.parquet")).unwrap();
    let mut rows = String::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap_or_else(|| panic!("{name}"));
        for at in 0..batch.num_rows() {
            let word = |name: &str| column(name).as_string::<i32>().value(at).to_owned();
            let number = |name: &str| column(name).as_primitive::<UInt64Type>().value(at);
            let share = |name: &str| column(name).as_primitive::<Float64Type>().value(at);
            let place =
                |side: &str| json!({"file": word(&format!("{side}_file")), "line": number(&format!("{side}_number"))});
            let row = json!({
                "a": word("a"), "b": word("b"), "similarity": share("similarity"), "low": share("low"),
                "high": share("high"), "method": word("method"), "a_place": place("a"), "b_place": place("b"),
            });
            rows.push_str(&format!("{row}\n"));
        }
    }
    let lines: Vec<Value> = text(&listed).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 100 && rows == lines);
    let plot = std::fs::read_to_string(dir.path().join("plot.svg")).unwrap();
    assert!(plot.contains("pairs that were found; the highest bar has"), "{plot}");
}

#[test]
fn a_document_without_an_id_has_its_place_as_its_id() {
    let input = "{\"text\": \"one two three four five six seven\"}\nbroken\n\
        {\"text\": \"one two three four five six seven\"}\n{\"text\": \"\"}\n{\"id\": \"x\", \"text\": \"One two three four five six seven\"}\n";
    let run = run_with_input(&["pairs", "-", "-o", "-"], input.as_bytes());
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(text(&run.stderr).contains("failed: -:2 at byte 46: not a JSON object"), "{run:?}");
    let ids: Vec<_> = parsed(&run.stdout).into_iter().collect();
    let pair = |a: &str, b: &str| ((a.to_owned(), b.to_owned()), 1.0);
    assert_eq!(ids, [pair("-:1", "-:3"), pair("-:1", "x"), pair("-:3", "x")]);
}

#[test]
fn unusable_arguments_leave_no_output() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(10, 26))).unwrap();
    std::fs::write(dir.path().join("broken.jsonl"), "broken\n").unwrap();
    let refused = |arguments: &[&str]| {
        let arguments = [&["pairs", "-o", "out"], arguments].concat();
        let output = hapax(&arguments).current_dir(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "{output:?}");
        text(&output.stderr)
    };
    assert!(refused(&["-", "--against", "-"]).contains("stdin can be read only once"));
    assert!(refused(&["in.jsonl", "--against", "missing"]).contains("cannot read missing"));
    assert!(refused(&["in.jsonl", "--plot", "in.jsonl"]).contains("--plot in.jsonl: this file is also an input"));
    assert!(refused(&["in.jsonl", "--plot", "out"]).contains("they must be two different files"));
    assert!(refused(&["in.jsonl", "--threshold", "0"]).contains("--threshold: must be a number above 0"));
    assert!(refused(&["broken.jsonl"]).contains("no line is a document; there is no output"));
}

/// Compares the pairs of a corpus with its file of exact pairs.
fn judge(corpora: &Path, name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = corpora.join(format!("{name}.jsonl.zst")).display().to_string();
    let settings = ["--shingle", "word3", "--verify", "exact", "--threshold", "0.5", "--bands", "42", "--rows", "3"];
    let (found, _) = pairs(dir.path(), &[&[&*file], &settings[..]].concat());
    let found: Pairs = parsed(&found).into_iter().map(|((a, b), similarity)| (ordered(&a, &b), similarity)).collect();
    let truth: Pairs = truth_of(&read_zst(&corpora.join(format!("{name}.w3.j50.tsv.zst"))))
        .into_iter()
        .map(|pair| (pair.ids, pair.jaccard))
        .collect();
    // The truth was computed without NFKC, so texts with ligatures have a few other shingles there.
    let differ = |(ids, similarity): &(&(String, String), &f64)| {
        truth.get(*ids).is_none_or(|jaccard| (jaccard - **similarity).abs() > 1.5e-6)
    };
    let differ = found.iter().filter(differ).count();
    assert!(differ * 100 <= found.len(), "{name}: {differ} of {} similarities differ", found.len());
    for least in [0.85, 0.5] {
        let expected: Vec<_> = truth.iter().filter(|(_, jaccard)| **jaccard >= least).collect();
        let hits = expected.iter().filter(|(ids, _)| found.contains_key(*ids)).count();
        println!("{name}: J >= {least}: {hits} of {} pairs", expected.len());
        assert!(hits * 100 >= expected.len() * 99, "{name}: {hits} of {}", expected.len());
    }
}

#[test]
fn the_pairs_of_real_texts_are_those_of_the_truth() {
    let Some(corpora) = corpora() else { return };
    judge(&corpora, "mccormick_1000");
    judge(&corpora, "licences");
    judge(&corpora, "django_docs_5_versions");
}
