//! `hapax dedup` keeps the documents that a server keeps, and the result depends only on the documents and their order.

mod bounded_memory;
mod clusters;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::KeyValue;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cli::{run_with_input, text};
use crate::support::client::{Client, gzip};
use crate::support::command::{hapax, run};
use crate::support::jsonl::{lines, parsed, read};
use crate::support::server::Server;
use crate::support::until::until;

/// Returns documents of which about a half repeat another one, exactly or with a few other words. Some are empty.
pub(crate) fn corpus(count: usize, seed: u64) -> Vec<Value> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut texts: Vec<Vec<String>> = Vec::new();
    let mut documents = Vec::new();
    for number in 0..count {
        let mut words = match texts.choose(&mut random) {
            Some(text) if random.random_bool(0.5) => text.clone(),
            _ => (0..80).map(|_| format!("w{}", random.random_range(0..5000))).collect(),
        };
        for _ in 0..*[0, 0, 1, 2, 4, 8, 16].choose(&mut random).expect("numbers") {
            let at = random.random_range(0..words.len());
            words[at] = format!("c{}", random.random_range(0..5000));
        }
        let text = if random.random_bool(0.01) { " \n".to_owned() } else { words.join(" ") };
        let (score, extra) = (random.random_range(0..50), "a".repeat(random.random_range(0..9)));
        documents.push(json!({"id": format!("d/{number}"), "text": text, "score": score, "extra": extra}));
        texts.push(words);
    }
    documents
}

/// Runs `hapax dedup` in a folder, and returns its output and its report.
fn dedup(dir: &Path, arguments: &[&str]) -> (Vec<u8>, Vec<Value>) {
    let arguments = [&["dedup"], arguments, &["-o", "out", "--report", "report"]].concat();
    let output = hapax(&arguments).current_dir(dir).output().expect("the binary runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    (read(&dir.join("out")), parsed(&read(&dir.join("report"))))
}

fn ids(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["id"].as_str().expect("an id").to_owned()).collect()
}

/// Compares a run with a server that gets the same documents one after another.
fn as_a_server(settings: &[&str], collection: &Value) {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(1500, 11);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (kept, report) = dedup(dir.path(), &[&["in.jsonl"], settings].concat());

    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/c", collection).status, 201);
    let verdicts = dir.path().join("verdicts");
    let [file, url] = [dir.path().join("in.jsonl").display().to_string(), server.url("")];
    let verdicts_file = verdicts.display().to_string();
    let import = run(&[
        "import",
        "--server",
        &url,
        "--collection",
        "c",
        "--connections",
        "1",
        "--verdicts",
        &verdicts_file,
        &file,
    ]);
    assert!(import.status.success(), "{import:?}");
    let verdicts = parsed(&read(&verdicts));

    let stored: Vec<_> = verdicts.iter().filter(|verdict| verdict["stored"] == true).cloned().collect();
    assert_eq!(ids(&parsed(&kept)), ids(&stored));
    let stored_ids = ids(&stored);
    let whole: Vec<_> = documents.iter().filter(|one| stored_ids.iter().any(|id| one["id"] == *id)).cloned().collect();
    assert_eq!(parsed(&kept), whole);
    let told: BTreeMap<_, _> = report.iter().map(|line| (line["line"].as_u64(), line)).collect();
    assert_eq!(told.len(), verdicts.len() - stored.len());
    let mut methods = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| verdict["stored"] == false) {
        let line = told[&verdict["line"].as_u64()];
        for field in ["id", "verdict", "duplicate_of"] {
            assert_eq!(line[field], verdict[field], "{line} {verdict}");
        }
        for field in ["similarity", "low", "high", "method"] {
            let best = &verdict["matches"][0];
            let value = if best.is_null() { &Value::Null } else { &best[field] };
            assert_eq!(&line[field], value, "{line} {verdict}");
        }
        *methods.entry(format!("{} {}", verdict["verdict"], line["method"])).or_insert(0) += 1;
    }
    assert!(methods.values().all(|count| *count > 3), "{methods:?}");
}

#[test]
fn a_run_keeps_what_a_server_keeps() {
    as_a_server(&[], &json!({}));
}

#[test]
fn a_run_keeps_what_a_server_keeps_that_compares_shingles() {
    as_a_server(&["--verify", "exact", "--threshold", "0.7"], &json!({"verify": "exact", "threshold": 0.7}));
    as_a_server(
        &["--verify", "borderline", "--shingle", "char7", "--bands", "20", "--rows", "5"],
        &json!({"verify": "borderline", "shingle": "char7", "banding": {"bands": 20, "rows": 5}}),
    );
}

#[test]
fn the_result_depends_on_the_documents_and_their_order_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    // More than two chunks.
    let documents = corpus(5000, 12);
    std::fs::write(file("in.jsonl"), lines(&documents)).unwrap();
    let (whole, report) = dedup(dir.path(), &["in.jsonl"]);
    assert!((2000..4000).contains(&parsed(&whole).len()));

    std::fs::write(file("in.jsonl.gz"), gzip(lines(&documents).as_bytes())).unwrap();
    let frames = documents.chunks(700).map(|part| zstd::encode_all(lines(part).as_bytes(), 1).unwrap());
    std::fs::write(file("in.zst"), frames.collect::<Vec<_>>().concat()).unwrap();
    for name in ["in.jsonl.gz", "in.zst"] {
        assert!(dedup(dir.path(), &[name]).0 == whole, "{name}");
    }

    // The files are written in another order than that of their paths.
    std::fs::create_dir_all(file("parts/b/deep")).unwrap();
    let parts = ["parts/b/deep/z.jsonl", "parts/a.jsonl", "parts/c.jsonl", "parts/b/2.jsonl"];
    for (name, part) in parts.iter().zip([2, 0, 3, 1]) {
        std::fs::write(file(name), lines(&documents[part * 1250..][..1250])).unwrap();
    }
    std::fs::write(file("parts/.hidden"), "not JSON\n").unwrap();
    let (of_folder, of_parts) = dedup(dir.path(), &["parts"]);
    assert!(of_folder == whole);
    let of_file = |line: &Value| (line["id"].clone(), line["duplicate_of"].clone(), line["similarity"].clone());
    assert!(report.iter().map(of_file).eq(of_parts.iter().map(of_file)));

    for threads in ["1", "7"] {
        let arguments = ["dedup", "in.jsonl", "-o", "threads"];
        let run = hapax(&arguments).current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(run.status.success() && read(&file("threads")) == whole, "{run:?}");
    }

    let piped = run_with_input(&["dedup", "-", "-o", "-"], lines(&documents).as_bytes());
    assert!(piped.stdout == whole, "{}", text(&piped.stderr));
    assert!(text(&piped.stderr).starts_with("documents              5,000\nkept"), "{}", text(&piped.stderr));
}

#[test]
fn of_several_duplicates_the_longest_or_the_best_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(800, 13);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let length = |document: &Value| document["text"].as_str().expect("a text").len() as i64;
    let score = |document: &Value| document["score"].as_i64().expect("a number");
    for (order, rank) in [("longest", &length as &dyn Fn(&Value) -> i64), ("max:score", &score)] {
        let (kept, report) = dedup(dir.path(), &["in.jsonl", "--keep", order]);
        let mut sorted = documents.clone();
        sorted.sort_by_key(|document| -rank(document));
        std::fs::write(dir.path().join("sorted.jsonl"), lines(&sorted)).unwrap();
        let (of_sorted, _) = dedup(dir.path(), &["sorted.jsonl"]);
        let mut expected = ids(&parsed(&of_sorted));
        expected.sort_by_key(|id| id[2..].parse::<u64>().expect("a number"));
        assert_eq!(ids(&parsed(&kept)), expected, "{order}");
        assert_ne!(kept, dedup(dir.path(), &["in.jsonl"]).0, "{order}");
        let numbers: Vec<_> = report.iter().map(|line| line["line"].as_u64()).collect();
        assert!(numbers.is_sorted(), "the report has the order of the input");
    }
}

fn write_parquet(path: &Path, documents: &[Value]) {
    let columns =
        [("id", DataType::Utf8), ("text", DataType::Utf8), ("score", DataType::Int64), ("note", DataType::Utf8)];
    let fields: Vec<_> = columns.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let texts = |name: &str| StringArray::from_iter(documents.iter().map(|document| document[name].as_str()));
    let scores = Int64Array::from_iter(documents.iter().map(|document| document["score"].as_i64()));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![Arc::new(texts("id")), Arc::new(texts("text")), Arc::new(scores), Arc::new(texts("extra"))],
    );
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.append_key_value_metadata(KeyValue::new("of".to_owned(), "the corpus".to_owned()));
    writer.write(&batch.unwrap()).unwrap();
    std::fs::write(path, writer.into_inner().unwrap()).unwrap();
}

#[test]
fn rows_of_parquet_are_kept_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let documents = corpus(1200, 14);
    std::fs::write(file("in.jsonl"), lines(&documents)).unwrap();
    write_parquet(&file("1.parquet"), &documents[..500]);
    write_parquet(&file("2.parquet"), &documents[500..]);
    for order in ["first", "max:score"] {
        let (kept, _) = dedup(dir.path(), &["in.jsonl", "--keep", order]);
        dedup(dir.path(), &["1.parquet", "2.parquet", "--keep", order]);
        let out = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file("out")).unwrap()).unwrap();
        let pairs = out.metadata().file_metadata().key_value_metadata().unwrap().clone();
        assert!(pairs.iter().any(|pair| pair.key == "of" && pair.value.as_deref() == Some("the corpus")));
        let mut rows = Vec::new();
        for batch in out.build().unwrap() {
            let batch = batch.unwrap();
            let [id, text, note] = [0, 1, 3].map(|at| batch.column(at).as_string::<i32>().clone());
            let score = batch.column(2).as_primitive::<Int64Type>();
            rows.extend((0..batch.num_rows()).map(|at| {
                json!({"id": id.value(at), "text": text.value(at), "score": score.value(at), "extra": note.value(at)})
            }));
        }
        assert_eq!(rows, parsed(&kept), "{order}");
    }
    let refused = |arguments: &[&str]| refused(dir.path(), arguments);
    assert!(refused(&["1.parquet", "in.jsonl"]).contains("in.jsonl: this is not Parquet, but other files are"));
    let packed = hapax(&["dedup", "1.parquet", "-o", "x.gz"]).current_dir(dir.path()).output().unwrap();
    assert!(
        packed.status.code() == Some(2) && text(&packed.stderr).contains("not compressed as a whole"),
        "{packed:?}"
    );
}

/// Returns the message of a run that fails. Such a run leaves no file.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let _ = std::fs::remove_file(dir.join("out"));
    let output = hapax(&[&["dedup", "-o", "out"], arguments].concat()).current_dir(dir).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let is_output = |name: &String| name.contains("out") || name.contains("hapax");
    assert!(output.stdout.is_empty() && !names(dir).iter().any(is_output), "{output:?}");
    text(&output.stderr).to_owned()
}

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn unusable_files_and_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.jsonl"), lines(&corpus(10, 15))).unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let refused = |arguments: &[&str]| refused(dir.path(), arguments);
    assert!(refused(&["missing.jsonl"]).contains("cannot read missing.jsonl"));
    assert!(refused(&["empty"]).contains("the folder empty has no file to read"));
    assert!(refused(&["in.jsonl", "--report", "in.jsonl"]).contains("--report in.jsonl: this file is also an input"));
    assert!(
        refused(&["in.jsonl", "--report", "out"]).contains("--output and --report out: they must be two different")
    );
    assert!(
        refused(&["in.jsonl", "--text-field", "body"])
            .contains("no field \"body\"; there are \"extra\", \"id\", \"text\"")
    );
    assert!(refused(&["in.jsonl", "--threshold", "1.5"]).contains("--threshold: must be a number above 0"));
    assert!(refused(&["in.jsonl", "--shingle", "word99"]).contains("--shingle: "));
    assert!(refused(&["in.jsonl", "--verify", "all"]).contains("possible values: estimate, borderline, exact, none"));
    assert!(
        refused(&["in.jsonl", "--preset", "fineweb", "--threshold", "0.8"])
            .contains("--threshold 0.8 changes nothing: the bands are given")
    );
    assert!(refused(&["-", "--clusters", "components"]).contains("- can be read only once"));
    assert!(
        refused(&["in.jsonl", "--plot", "no/such.svg"]).contains("--plot no/such.svg: cannot write into the folder")
    );
    let run = hapax(&["dedup", "in.jsonl", "-o", "out.parquet"]).current_dir(dir.path()).output().unwrap();
    assert!(text(&run.stderr).contains("out.parquet: this output has lines, not Parquet"), "{run:?}");
    assert!(refused(&["in.jsonl", "--keep", "max:size"]).contains("no document has a number in this field"));
    assert!(refused(&["-", "--keep", "longest"]).contains("- can be read only once"));
    assert!(refused(&["in.jsonl", "--keep", "last"]).contains("must be first, longest or max:FIELD"));
    assert!(refused(&["in.jsonl", "--key", "configured"]).contains("--key: "));
    assert_eq!(names(dir.path()).len(), 2);
}

#[test]
fn lines_that_are_no_documents_are_reported_and_the_rest_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let input = "{\"text\": \"one two three four five six seven\"}\nbroken\n\
        {\"text\": \"one two three four five six seven\"}\n{\"id\": \"x\", \"signature\": \"AA==\"}\n{\"text\": \"\"}\n";
    std::fs::write(dir.path().join("in.jsonl"), input).unwrap();
    let arguments = ["dedup", "in.jsonl", "-o", "out", "--report", "report"];
    let output = hapax(&arguments).current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("failed: in.jsonl:2 at byte 46: not a JSON object"), "{output:?}");
    assert_eq!(
        read(&dir.path().join("out")),
        input.lines().next().unwrap().as_bytes().to_vec().into_iter().chain([b'\n']).collect::<Vec<_>>()
    );
    let report = parsed(&read(&dir.path().join("report")));
    let told: Vec<_> = report.iter().map(|line| (&line["line"], &line["verdict"], &line["error"]["code"])).collect();
    let null = Value::Null;
    assert_eq!(told[0], (&json!(2), &null, &json!("malformed_json")));
    assert_eq!(told[1], (&json!(3), &json!("exact_duplicate"), &null));
    assert_eq!(told[2], (&json!(4), &null, &json!("invalid_value")));
    assert_eq!(told[3], (&json!(5), &json!("empty"), &null));
    assert_eq!((&report[1]["id"], &report[1]["duplicate_of"]), (&json!("in.jsonl:3"), &json!("in.jsonl:1")));
    assert_eq!(report[1]["original"], json!({"file": "in.jsonl", "line": 1}));
}

#[test]
fn fields_that_are_not_compared_may_have_any_values() {
    let dir = tempfile::tempdir().unwrap();
    let odd = [
        json!({"id": null}),
        json!({"id": 15}),
        json!({"id": ""}),
        json!({"metadata": "abc", "labels": [1], "date": 5, "payload_digest": "x"}),
        json!({"set": "train", "signature": "J. Smith", "fingerprint": 1, "content_hash": 2, "html": 3}),
    ];
    let documents: Vec<_> = odd
        .into_iter()
        .zip(corpus(100, 16))
        .map(|(mut odd, document)| {
            odd["text"] = document["text"].clone();
            odd
        })
        .collect();
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (kept, report) = dedup(dir.path(), &["in.jsonl"]);
    assert_eq!((parsed(&kept).len() + report.len(), text(&kept).lines().next()), (5, lines(&documents).lines().next()));
}

#[test]
fn a_run_replaces_the_output_or_leaves_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    std::fs::write(file("in.jsonl"), lines(&corpus(10, 17))).unwrap();
    std::fs::write(file("broken.jsonl"), "broken\nbroken\n").unwrap();
    std::fs::write(file("old"), "old").unwrap();
    std::fs::set_permissions(file("old"), Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("old", file("out")).unwrap();
    let run = |input: &str| hapax(&["dedup", input, "-o", "out"]).current_dir(dir.path()).output().unwrap();
    let failed = run("broken.jsonl");
    assert!(failed.status.code() == Some(2) && text(&failed.stderr).contains("no line is a document"), "{failed:?}");
    assert_eq!(read(&file("old")), b"old");
    assert!(run("in.jsonl").status.success());
    assert!(file("out").is_symlink() && read(&file("old")).starts_with(b"{"));
    assert_eq!(file("old").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn folders_have_files_that_are_no_data() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(file("table/_temporary")).unwrap();
    let documents = corpus(10, 18);
    write_parquet(&file("table/part-0.parquet"), &documents);
    for name in ["table/_SUCCESS", "table/_temporary/part", "table/.part-0.crc"] {
        std::fs::write(file(name), "").unwrap();
    }
    dedup(dir.path(), &["table"]);
    dedup(dir.path(), &["tab*", "--plot", "plot.svg"]);
    assert!(text(&read(&file("plot.svg"))).contains("31 bands of 8 rows, threshold 0.8"));
    std::os::unix::fs::symlink("nowhere", file("table/link")).unwrap();
    assert!(refused(dir.path(), &["table"]).contains("cannot read table/link"));
}

fn interrupted(dir: &Path) -> Output {
    std::fs::write(dir.join("out"), "old").unwrap();
    let mut child: std::process::Child = {
        let mut command: Command = hapax(&["dedup", "-", "-o", "out"]);
        command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    until("the output is begun", || names(dir).iter().any(|name| name.starts_with(".hapax")));
    let pid = child.id().to_string();
    let _stdin = child.stdin.take();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn a_list_has_the_kept_documents_with_their_duplicates() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(700, 19);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    for options in [&[][..], &["--keep", "longest"], &["--clusters", "components"]] {
        let (kept, report) = dedup(dir.path(), &[&["in.jsonl"], options].concat());
        let piped = run_with_input(&[&["dedup", "-"], options].concat(), lines(&documents).as_bytes());
        let listed = parsed(&piped.stdout);
        let whole: Vec<_> = listed.iter().map(|one| one["document"].clone()).collect();
        assert_eq!(whole, parsed(&kept), "{options:?}");
        let mut repeats: Vec<_> = Vec::new();
        for one in &listed {
            assert_eq!((&one["id"], &one["file"]), (&one["document"]["id"], &json!("-")));
            for repeat in one["duplicates"].as_array().expect("a list") {
                let told = ["line", "verdict", "similarity", "method"].map(|field| repeat[field].clone());
                repeats.push((repeat["line"].as_u64(), one["id"].clone(), told));
            }
        }
        repeats.sort_by_key(|repeat| repeat.0);
        let dropped = report.iter().filter(|line| line["verdict"] != "empty").map(|line| {
            let told = ["line", "verdict", "similarity", "method"].map(|field| line[field].clone());
            (line["line"].as_u64(), line["duplicate_of"].clone(), told)
        });
        assert!(repeats.len() > 100 && repeats.into_iter().eq(dropped), "{options:?}");
        assert!(text(&piped.stderr).contains("documents                700\nkept"), "{}", text(&piped.stderr));
    }
}

#[test]
fn an_interrupted_run_leaves_the_old_output() {
    let dir = tempfile::tempdir().unwrap();
    let output = interrupted(dir.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("interrupted; there is no output"), "{output:?}");
    assert_eq!((names(dir.path()), read(&dir.path().join("out"))), (vec!["out".to_owned()], b"old".to_vec()));
}
