//! `hapax contain` finds the same items as a join of the words themselves, in every format, and it names what it cannot
//! find.

pub(crate) mod join;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cli::{row, run_with_input, text};
use crate::quality::{corpora, read_zst};
use crate::support::client::gzip;
use crate::support::command::hapax;
use crate::support::jsonl::{lines, parsed, read};
use join::{Contained, Join, words};

fn contain(dir: &Path, arguments: &[&str]) -> Output {
    let arguments = [&["contain"], arguments].concat();
    hapax(&arguments).current_dir(dir).output().expect("the binary runs")
}

/// Runs the verb on `in.jsonl`, and returns the lines of the three outputs.
fn outputs(dir: &Path, arguments: &[&str]) -> [Vec<Value>; 3] {
    let all = ["-o", "kept", "--dropped", "dropped", "--items", "items"];
    let output = contain(dir, &[arguments, &all].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    ["kept", "dropped", "items"].map(|name| parsed(&read(&dir.join(name))))
}

/// Texts of words, of which some are rare and some are in every text.
fn prose(random: &mut ChaCha8Rng, words: usize) -> Vec<String> {
    let word = |_| match random.random_range(0..3) {
        0 => format!("The{}", random.random_range(0..5)),
        1 => format!("word{}", random.random_range(0..300)),
        _ => format!("Rare{}", random.random_range(0..100_000)),
    };
    (0..words).map(word).collect()
}

fn joined(random: &mut ChaCha8Rng, words: &[String]) -> String {
    let between = [" ", ", ", "\n", ".\n\n", " \"", " \u{2014} ", "-"];
    let parts = words.iter().flat_map(|word| [word.as_str(), between.choose(random).expect("some")]);
    parts.collect()
}

/// Puts an item into a text: whole, cut, or with other words in it.
fn plant(random: &mut ChaCha8Rng, item: &[String], text: &mut Vec<String>) {
    let mut part = item.to_vec();
    match random.random_range(0..3) {
        0 => {}
        1 => {
            let keep = random.random_range(part.len() / 3..=part.len());
            let from = random.random_range(0..=part.len() - keep);
            part = part[from..from + keep].to_vec();
        }
        _ => {
            for _ in 0..random.random_range(1..3) {
                let at = random.random_range(0..part.len());
                part[at] = "typo".to_owned();
            }
        }
    }
    let at = random.random_range(0..=text.len());
    text.splice(at..at, part);
}

/// Returns documents and items. Some documents have items, or parts of items.
pub(crate) fn planted(seed: u64, documents: usize, items: usize) -> (Vec<Value>, Vec<Value>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let lengths = [3, 8, 9, 12, 13, 14, 20, 40, 90];
    let items: Vec<_> = (0..items)
        .map(|_| {
            let length = *lengths.choose(&mut random).expect("some");
            prose(&mut random, length)
        })
        .collect();
    let document = |number: usize| {
        let length = random.random_range(0..300);
        let mut text = prose(&mut random, length);
        for _ in 0..*[0, 0, 0, 1, 1, 2, 5].choose(&mut random).expect("some") {
            let item = items.choose(&mut random).expect("some");
            plant(&mut random, item, &mut text);
        }
        json!({"id": format!("d/{number}"), "text": joined(&mut random, &text), "score": number, "extra": "é"})
    };
    let documents = (0..documents).map(document).collect();
    let item = |(number, item): (usize, &Vec<String>)| {
        let text = joined(&mut random, item);
        json!({"id": format!("q{number}"), "text": text})
    };
    (documents, items.iter().enumerate().map(item).collect())
}

/// Compares the outputs of a run with the exact join.
fn as_the_join(dir: &Path, documents: &[Value], items: &[Value], size: usize, min: f64) {
    std::fs::write(dir.join("in.jsonl"), lines(documents)).unwrap();
    std::fs::write(dir.join("bench.jsonl"), lines(items)).unwrap();
    let [size_given, min_given] = [size.to_string(), min.to_string()];
    let settings = ["in.jsonl", "--benchmarks", "bench.jsonl", "--ngram", &size_given, "--min-containment", &min_given];
    let [kept, dropped, of_items] = outputs(dir, &settings);

    let join = Join::new(size, items);
    let expected = join.of(documents, min);
    let clean = documents.iter().zip(&expected).filter(|(_, contained)| contained.is_empty());
    assert_eq!(kept, clean.map(|(document, _)| document.clone()).collect::<Vec<_>>());
    let contaminated: Vec<_> = documents.iter().zip(&expected).filter(|(_, contained)| !contained.is_empty()).collect();
    assert_eq!(dropped.len(), contaminated.len());
    // The corpora have whole items and parts of items.
    let parts = |contained: &&Contained| contained.values().any(|(shared, all, _)| shared < all);
    let parts = contaminated.iter().map(|(_, contained)| *contained).filter(parts).count();
    assert!(!kept.is_empty() && contaminated.len() > 50 && (parts > 5 || min == 1.0), "{} {parts}", contaminated.len());
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for (line, (document, contained)) in dropped.iter().zip(contaminated) {
        assert_eq!(
            (&line["kind"], &line["complete"], &line["id"]),
            (&json!("contaminated"), &json!(true), &document["id"])
        );
        let overlaps = line["overlaps"].as_array().expect("an array");
        assert_eq!(&told(overlaps, contained, document), contained, "{line}");
        contained.keys().for_each(|item| *found.entry(item).or_default() += 1);
    }
    let short = join.too_short();
    let expected_items = items.iter().enumerate().map(|(number, item)| {
        let id = item["id"].as_str().expect("an id");
        let documents = found.get(id).copied().unwrap_or_default();
        let status = if short.contains(&id) { "too_short" } else { ["not_found", "found"][usize::from(documents > 0)] };
        json!({"kind": "item", "file": "bench.jsonl", "line": number + 1, "id": id, "status": status, "documents": documents})
    });
    assert_eq!(of_items, expected_items.collect::<Vec<_>>());
}

/// Returns what a line says, and checks the order of its items.
pub(crate) fn told(overlaps: &[Value], contained: &Contained, document: &Value) -> Contained {
    let text = document["text"].as_str().expect("a text");
    let mut last = f64::INFINITY;
    let one = |overlap: &Value| {
        let id = overlap["id"].as_str().expect("an id");
        let all = contained.get(id).unwrap_or_else(|| panic!("{id} is not in {document}")).1;
        let shared = overlap["shared"].as_u64().expect("a number") as usize;
        let share = shared as f64 / all as f64;
        assert!((overlap["containment"].as_f64().expect("a number") - share).abs() < 1e-6 && share <= last);
        last = share;
        let spans = overlap["spans"].as_array().expect("an array").iter().map(|span| {
            let [from, to] = [0, 1].map(|end| span[end].as_u64().expect("a number") as usize);
            words(text.get(from..to).expect("at characters")).len()
        });
        (id.to_owned(), (shared, all, spans.sum()))
    };
    overlaps.iter().map(one).collect()
}

#[test]
fn contaminated_documents_are_those_of_the_exact_join() {
    for (seed, size, min) in [(1, 13, 0.5), (2, 13, 1.0), (3, 8, 0.3), (4, 20, 0.01)] {
        let dir = tempfile::tempdir().unwrap();
        let (documents, items) = planted(seed, 600, 80);
        as_the_join(dir.path(), &documents, &items, size, min);
    }
}

/// Returns items that are parts of documents, cut at words.
fn cut_from(documents: &[Value], random: &mut ChaCha8Rng) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    while items.len() < 200 {
        let source = documents.choose(random).expect("some")["text"].as_str().expect("a text");
        let starts: Vec<_> = source.char_indices().map(|(at, _)| at).collect();
        let length = random.random_range(20..600);
        if starts.len() > length {
            let from = random.random_range(0..starts.len() - length);
            let text = &source[starts[from]..starts[from + length]];
            items.push(json!({"id": format!("q{}", items.len()), "text": text}));
        }
    }
    items
}

#[test]
fn items_planted_in_the_given_corpora_are_found() {
    let Some(corpora) = corpora() else { return };
    for (name, seed) in
        [("licences", 5), ("django_docs_5_versions", 6), ("tldr_cjk_and_others", 7), ("chinese_poems", 8)]
    {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut documents = parsed(read_zst(&corpora.join(format!("{name}.jsonl.zst"))).as_bytes());
        let keep = |document: &Value| document["text"].as_str().is_some_and(|text| !text.is_empty());
        documents.retain(keep);
        let mut documents: Vec<_> = documents.sample(&mut random, 600).cloned().collect();
        let items = cut_from(&documents, &mut random);
        for document in documents.iter_mut().step_by(3) {
            let item = items.choose(&mut random).expect("some")["text"].as_str().expect("a text");
            let item: Vec<_> = item.split(' ').map(str::to_owned).collect();
            let mut words: Vec<_> = document["text"].as_str().expect("a text").split(' ').map(str::to_owned).collect();
            plant(&mut random, &item, &mut words);
            document["text"] = json!(words.join(" "));
        }
        let dir = tempfile::tempdir().unwrap();
        as_the_join(dir.path(), &documents, &items, 13, 0.5);
    }
}

fn write_parquet(path: &Path, documents: &[Value]) {
    let fields = [("id", DataType::Utf8), ("text", DataType::Utf8), ("score", DataType::Int64)];
    let fields: Vec<_> = fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let texts = |name: &str| StringArray::from_iter(documents.iter().map(|document| document[name].as_str()));
    let scores = Int64Array::from_iter(documents.iter().map(|document| document["score"].as_i64()));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![Arc::new(texts("id")), Arc::new(texts("text")), Arc::new(scores)],
    );
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.write(&batch.unwrap()).unwrap();
    std::fs::write(path, writer.into_inner().unwrap()).unwrap();
}

fn scores(path: &Path) -> Vec<i64> {
    let rows = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let batches = rows.build().unwrap().map(|batch| batch.unwrap());
    batches.flat_map(|batch| batch.column(2).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn the_result_depends_on_the_documents_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // More than one chunk.
    let (documents, items) = planted(9, 2_500, 50);
    std::fs::write(file("in.jsonl"), lines(&documents)).unwrap();
    std::fs::write(file("bench.jsonl"), lines(&items)).unwrap();
    let [kept, dropped, of_items] = outputs(dir.path(), &["in.jsonl", "--benchmarks", "bench.jsonl"]);
    assert!(dropped.len() > 300 && kept.len() > 300, "{} {}", dropped.len(), kept.len());
    let without_place = |line: &Value| (line["id"].clone(), line["overlaps"].clone());
    let found: Vec<_> = dropped.iter().map(without_place).collect();

    std::fs::write(file("in.jsonl.gz"), gzip(lines(&documents).as_bytes())).unwrap();
    std::fs::write(file("in.zst"), zstd::encode_all(lines(&documents).as_bytes(), 1).unwrap()).unwrap();
    for name in ["in.jsonl.gz", "in.zst"] {
        let [other_kept, other_dropped, other_items] = outputs(dir.path(), &[name, "--benchmarks", "bench.jsonl"]);
        assert!(other_kept == kept && other_items == of_items);
        assert_eq!(other_dropped.iter().map(without_place).collect::<Vec<_>>(), found);
    }
    for threads in ["1", "5"] {
        let arguments = ["contain", "in.jsonl", "--benchmarks", "bench.jsonl", "--dropped", "threads"];
        let run = hapax(&arguments).current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(run.status.success() && parsed(&read(&file("threads"))) == dropped, "{run:?}");
    }
    let bench = file("bench.jsonl").display().to_string();
    let piped = run_with_input(&["contain", "-", "--benchmarks", &bench, "-o", "-"], lines(&documents).as_bytes());
    assert!(parsed(&piped.stdout) == kept, "{piped:?}");
    assert!(text(&piped.stderr).contains("\ncontaminated"), "{piped:?}");

    write_parquet(&file("1.parquet"), &documents[..1_000]);
    write_parquet(&file("2.parquet"), &documents[1_000..]);
    write_parquet(&file("bench.parquet"), &items);
    let arguments = ["1.parquet", "2.parquet", "--benchmarks", "bench.parquet", "-o", "rows", "--dropped", "dropped"];
    assert!(contain(dir.path(), &arguments).status.success());
    let expected: Vec<_> = kept.iter().map(|document| document["score"].as_i64().expect("a number")).collect();
    assert_eq!(scores(&file("rows")), expected);
    let of_rows = parsed(&read(&file("dropped")));
    assert_eq!(of_rows.len(), found.len());
    assert!(of_rows.iter().zip(&dropped).all(|(row, line)| row["id"] == line["id"] && row["row"].is_u64()));
}

const ITEM: &str =
    "Four sailors carry nine crates up the narrow stairs, and each crate weighs as much as two of the sailors.";

#[test]
fn places_are_in_the_text_that_was_given() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bench.jsonl"), lines(&[json!({"id": "q", "text": ITEM})])).unwrap();
    let shouted = ITEM.to_uppercase().replace(' ', "\u{a0}\n");
    let before = "Ein Cafe\u{301} am Stra\u{df}enrand \u{2014} ";
    let page = format!("<html><body><nav>Menu</nav><p>Caf&eacute;</p><p>{ITEM} Yes.</p></body></html>");
    let documents = [
        json!({"id": "text", "text": format!("{before}\"{shouted}\" \u{fb01}n")}),
        json!({"id": "page", "html": page}),
        json!({"id": "twice", "text": format!("{ITEM} And again: {ITEM}")}),
    ];
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let arguments = ["in.jsonl", "--benchmarks", "bench.jsonl", "--extract", "visible"];
    let [kept, dropped, items] = outputs(dir.path(), &arguments);
    assert!(kept.is_empty() && items[0]["documents"] == 3);
    let spans = |line: &Value| -> Vec<[usize; 2]> {
        assert_eq!((line["overlaps"].as_array().unwrap().len(), &line["overlaps"][0]["containment"]), (1, &json!(1.0)));
        serde_json::from_value(line["overlaps"][0]["spans"].clone()).unwrap()
    };
    // The full stop belongs to no word.
    let (item, upper) = (ITEM.trim_end_matches('.'), shouted.trim_end_matches('.'));
    let from = before.len() + 1;
    assert_eq!(spans(&dropped[0]), [[from, from + upper.len()]]);
    let html = hapax::types::Html::untyped(page);
    let extracted = hapax::extract::extract(&html, hapax::types::Extract::Visible).text;
    let from = extracted.find("Four").unwrap();
    assert_eq!(spans(&dropped[1]), [[from, from + item.len()]]);
    let second = ITEM.len() + " And again: ".len();
    assert_eq!(spans(&dropped[2]), [[0, item.len()], [second, second + item.len()]]);
}

#[test]
fn items_may_have_several_texts_and_short_ones_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let answer = "They need thirty six trips because every sailor can carry only half of one crate at a time";
    let items = [
        json!({"key": "a", "question": ITEM, "answer": "thirty six"}),
        json!({"key": "b", "answer": answer}),
        json!({"key": "c", "question": 5, "answer": answer}),
        json!({"key": "d", "hint": "none"}),
    ];
    std::fs::write(dir.path().join("bench.jsonl"), lines(&items)).unwrap();
    let documents = [json!({"id": 1, "text": format!("{ITEM} {answer}")}), json!({"id": 2, "text": answer})];
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let fields =
        ["--benchmark-id-field", "key", "--benchmark-text-field", "question", "--benchmark-text-field", "answer"];
    let all = ["in.jsonl", "--benchmarks", "bench.jsonl", "--dropped", "dropped", "--items", "items"];
    let output = contain(dir.path(), &[&all[..], &fields].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = text(&output.stderr);
    assert!(
        told.contains("failed: bench.jsonl:3 at byte ") && told.contains(": question: must be a string, but is 5"),
        "{told}"
    );
    assert!(told.contains(": no field \"question\""), "{told}");
    assert!(
        told.contains("not looked for: bench.jsonl:1 at byte 0 (a#answer): has 2 words; an item needs at least 8"),
        "{told}"
    );
    let counted = ["documents", "kept", "contaminated", "failed"].map(|name| row(&output, name));
    assert_eq!(counted, [2, 0, 2, 0]);
    let items: Vec<_> = parsed(&read(&dir.path().join("items")));
    let items: Vec<_> =
        items.iter().map(|item| (item["id"].as_str(), item["status"].as_str(), &item["documents"])).collect();
    let (one, two, none) = (json!(1), json!(2), json!(0));
    assert_eq!(
        items,
        [
            (Some("a#question"), Some("found"), &one),
            (Some("a#answer"), Some("too_short"), &none),
            (Some("b#answer"), Some("found"), &two),
            (Some("c#answer"), Some("found"), &two)
        ]
    );
    assert!(text(&output.stdout).contains("           4           3           1  bench.jsonl\n"), "{output:?}");
}

#[test]
fn a_gram_in_too_many_items_makes_a_lookup_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let items: Vec<_> = (0..150).map(|number| json!({"id": format!("q{number}"), "text": ITEM})).collect();
    std::fs::write(dir.path().join("bench.jsonl"), lines(&items)).unwrap();
    let part = ITEM.split(' ').take(15).collect::<Vec<_>>().join(" ");
    let documents = [
        json!({"id": "whole", "text": ITEM}),
        json!({"id": "part", "text": part}),
        json!({"id": "other", "text": "a"}),
    ];
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let arguments = ["in.jsonl", "--benchmarks", "bench.jsonl"];
    let [_, dropped, _] = outputs(dir.path(), &arguments);
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0]["overlaps"].as_array().unwrap().len(), &dropped[0]["more"]), (100, &json!(50)));
    assert_eq!(dropped[0]["complete"], true);
    let [kept, dropped, items] = outputs(dir.path(), &[&arguments[..], &["--items-per-gram", "9"]].concat());
    let told: Vec<_> = dropped.iter().map(|line| (line["kind"].as_str(), line["complete"].as_bool())).collect();
    assert_eq!(told, [(Some("contaminated"), Some(false)), (Some("capped"), Some(false))]);
    assert_eq!(dropped[0]["overlaps"].as_array().unwrap().len(), 9);
    assert_eq!((kept.len(), items.iter().filter(|item| item["status"] == "found").count()), (2, 9));
    let output = contain(dir.path(), &[&arguments[..], &["--items-per-gram", "9", "--dropped", "-"]].concat());
    assert!(text(&output.stderr).contains("\ncapped                     2\n"), "{output:?}");
}

#[test]
fn unusable_files_and_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&[json!({"id": 1, "text": "a b"})])).unwrap();
    std::fs::write(dir.path().join("bench.jsonl"), lines(&[json!({"id": 1, "text": ITEM})])).unwrap();
    let refused = |arguments: &[&str]| {
        let output = contain(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty() && !dir.path().join("out").exists());
        text(&output.stderr).to_owned()
    };
    let with =
        |more: &[&str]| refused(&[&["in.jsonl", "--benchmarks", "bench.jsonl", "--dropped", "out"], more].concat());
    assert!(refused(&["in.jsonl", "--dropped", "out"]).contains("--benchmarks"));
    assert!(
        refused(&["in.jsonl", "--benchmarks", "bench.jsonl"])
            .contains("--output <FILE>|--dropped <FILE>|--items <FILE>")
    );
    assert!(with(&["--ngram", "7"]).contains("must be a whole number from 8 to 32"));
    assert!(with(&["--min-containment", "0"]).contains("must be a number above 0 and at most 1"));
    assert!(with(&["--items-per-gram", "0"]).contains("must be a whole number of at least 1"));
    assert!(with(&["--extract", "all"]).contains("must be article or visible"));
    assert!(with(&["-o", "out"]).contains("--output and --dropped out: they must be two different files"));
    assert!(with(&["-o", "bench.jsonl"]).contains("--output bench.jsonl: this file is also an input"));
    assert!(
        with(&["--benchmark-text-field", "q"])
            .contains("no field \"q\"; there is \"text\": use --benchmark-text-field")
    );
    let nothing = refused(&["in.jsonl", "--benchmarks", "in.jsonl", "--dropped", "out"]);
    assert!(nothing.contains("not looked for: in.jsonl:1 at byte 0 (1): has 2 words"), "{nothing}");
    assert!(nothing.contains("have no item of at least 8 words"), "{nothing}");
    let twice = refused(&["-", "--benchmarks", "-", "--dropped", "out"]);
    assert!(twice.contains("- is given twice"), "{twice}");
}
