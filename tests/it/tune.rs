//! `hapax tune`: the figures of the curve, samples of documents, and the pick of datasketch, through the real binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hapax::index::{Index, IndexOptions};
use hapax_core::{SignatureShape, tuning};
use serde_json::Value;

use crate::support::command::{hapax, run};
use crate::support::library;

fn json(arguments: &[&str]) -> Value {
    let output = run(&[&["tune", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn words(arguments: &[&str]) -> String {
    let output = run(&[&["tune"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the message of a run that must fail.
fn refusal(arguments: &[&str]) -> String {
    let output = run(&[&["tune"], arguments].concat());
    refused(arguments, &output)
}

fn refused(arguments: &[&str], output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(report: &Value, pointer: &str) -> f64 {
    report.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {report}"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("write");
    path
}

/// Returns a document: the words of a menu, followed by `own` words that no other document has.
fn page(number: u32, own: u32, menu: &str) -> String {
    let own: Vec<_> = (0..own).map(|word| format!("w{number}x{word}")).collect();
    format!("{{\"id\": {number}, \"text\": \"{menu} {}\"}}\n", own.join(" "))
}

#[test]
fn the_figures_of_the_curve_are_those_of_the_table() {
    let report = json(&["--bands", "31", "--rows", "8"]);
    let curve = &report["curve"];
    // ((8 - 1)/(31·8 - 1))^(1/8), corrected for the slots that agree by chance.
    let steepest = ((7.0f64 / 247.0).powf(0.125) - 1.0 / 256.0) / (255.0 / 256.0);
    assert!((number(curve, "/steepest") - steepest).abs() < 1e-12, "{curve}");
    let (low, high) = (number(curve, "/candidates_10_percent"), number(curve, "/candidates_90_percent"));
    assert_eq!(number(curve, "/width"), high - low);
    assert!(number(curve, "/candidates_0_1_percent") < low && high < number(curve, "/candidates_99_percent"));
    // In the table, the recall is 0.0022 at similarity 0.3, which is above 0.1 %, and 0.9968 at 0.8, above 99 %.
    assert!((0.2..0.3).contains(&number(curve, "/candidates_0_1_percent")), "{curve}");
    assert!((0.75..0.8).contains(&number(curve, "/candidates_99_percent")), "{curve}");
    assert!((0.02..0.025).contains(&number(&report, "/estimate_standard_error")), "{report}");
    assert_eq!(number(&report, "/index_bytes"), number(&report, "/index_bytes_per_document") * 1e7);

    let said = words(&["--bands", "31", "--rows", "8"]);
    for part in [
        "curve       steepest at 0.639; ",
        "0.1 % proposed at",
        "estimate    standard error 0.02",
        "memory      588 bytes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(json(&["--bands", "1", "--rows", "1"])["curve"]["steepest"].is_null());
    assert!(words(&["--bands", "1", "--rows", "1"]).contains("a straight line"));
}

/// When a document is stored, the memory budget counts the amount that `hapax tune` reports.
#[test]
fn the_memory_of_a_document_is_that_of_the_index() {
    for (k, bits) in [(64, 8), (128, 8), (256, 8), (256, 32), (1024, 16)] {
        let shape = SignatureShape { k, bits };
        let banding = tuning::default_banding(shape, 0.8);
        let index = Index::new(&IndexOptions { shape, banding, id_fingerprint_bits: 64, seed: Some(1) });
        assert_eq!(tuning::index_bytes(banding, shape), index.claim_of_one(), "{k}x{bits}");
    }
}

#[test]
fn the_curve_is_drawn_if_asked_for() {
    let said = words(&["--curve"]);
    let drawn: Vec<_> = said.lines().filter(|line| line.contains('┤') || line.contains('│')).collect();
    assert_eq!(drawn.len(), 17, "{said}");
    assert!(said.lines().all(|line| line.starts_with("note:") || line.chars().count() <= 110), "{said}");
    assert!(drawn.iter().all(|line| line.chars().count() <= 78), "{said}");
    assert!(said.contains("• proposed") && said.contains("┊ threshold 0.8"), "{said}");
    assert!(!words(&[]).contains('┤'), "a script that reads the report sees no picture");
    assert!(refusal(&["--curve", "--json"]).contains("--curve"));
}

#[test]
fn a_sample_of_documents_tells_the_unrelated_candidates() {
    let dir = library::dir();
    let menu = "home news sport weather travel food about contact";
    // There are 50 pages without a menu and 50 with one, a copy of one page, and a page without a word.
    let mut lines: String = (0..50).map(|number| page(number, 40, "")).collect();
    lines.extend((50..100).map(|number| page(number, 40, menu)));
    lines += &page(0, 40, "");
    lines += "\n{\"text\": \"…\"}\n";
    let plain = file(dir.path(), "sample.jsonl", &lines);
    let report = json(&["--from-data", path(&plain), "--documents", "1e9"]);
    let sample = &report["sample"];
    assert_eq!(number(sample, "/documents_read"), 102.0);
    assert_eq!(number(sample, "/documents"), 101.0);
    assert_eq!(number(sample, "/pairs"), 101.0 * 50.0 - 1.0);
    assert_eq!(number(sample, "/pairs_at_or_above_threshold"), 1.0);
    assert_eq!(number(sample, "/shingles_median"), 36.0);
    // Two pages with a menu have 44 shingles each, and share 4 of them.
    let (alike, of_all) = (4.0 / 84.0, 50.0 * 49.0 / 2.0 / 5049.0);
    assert!((number(sample, "/similarity_mean") - alike * of_all).abs() < 1e-9, "{sample}");
    assert_eq!(number(sample, "/similarity_max"), 0.0477);
    assert_eq!(number(sample, "/similarity_p999"), 0.0477);
    let with =
        |s_bg: f64| number(&json(&["--s-bg", &s_bg.to_string(), "--documents", "1e9"]), "/background_candidates");
    let mean = of_all * with(0.0477) + (1.0 - of_all) * with(0.0);
    let found = number(&report, "/background_candidates");
    assert!((found / mean - 1.0).abs() < 1e-9, "the mean of the curve: {found}, {mean}");
    assert!(found > 1.5 * with(alike * of_all), "and not the curve at the mean");
    assert!((with(number(&report, "/s_bg")) / found - 1.0).abs() < 1e-6, "s_bg is equivalent");

    let said = words(&["--from-data", path(&plain)]);
    assert!(said.contains("101 of 102 documents, with a median of 36 distinct shingles"), "{said}");
    assert!(said.contains("as similar as the sample (as with --s-bg 0.0"), "{said}");
    let compressed = dir.path().join("sample.zst");
    std::fs::write(&compressed, zstd::encode_all(lines.as_bytes(), 1).expect("compress")).expect("write");
    assert_eq!(words(&["--from-data", path(&compressed)]), said);
    let mut child =
        hapax(&["tune", "--from-data", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("write");
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().expect("ends").stdout), said);
    let short = json(&["--from-data", path(&plain), "--shingle", "char3"]);
    assert!(number(&short, "/sample/similarity_mean") > number(sample, "/similarity_mean"), "{short}");
}

/// The limit on candidates is kept for the documents of the sample. If only their mean similarity counted, far more
/// candidates would be allowed.
#[test]
fn the_choice_keeps_its_limit_with_the_sample() {
    let dir = library::dir();
    let menu = (0..80).map(|word| format!("menu{word}")).collect::<Vec<_>>().join(" ");
    let lines: String = (0..60).map(|number| page(number, 40, if number < 12 { &menu } else { "" })).collect();
    let path = file(dir.path(), "sample.jsonl", &lines);
    let path = path.to_str().expect("UTF-8");
    let limit = ["--recall", "0.8", "--documents", "1e6", "--candidates-max"];
    let report = json(&[&["--from-data", path], &limit[..], &["2000"]].concat());
    assert!(number(&report, "/background_candidates") <= 2000.0, "{report}");
    let free = json(&["--from-data", path, "--documents", "1e6"]);
    assert!(number(&free, "/background_candidates") > 2000.0, "{free}");
    let message = refusal(&[&["--from-data", path], &limit[..], &["0.001"]].concat());
    assert!(message.contains("as similar as those of the sample"), "{message}");
}

// In an earlier version, `hapax tune` stopped at the first line without a text, although an import of the same file
// skips and counts such lines.
#[test]
fn lines_without_a_text_are_skipped_and_counted() {
    let dir = library::dir();
    let pages: String = (0..5).map(|n| page(n, 9, "")).collect();
    let lines = format!("{pages}{{\"id\": 8}}\n{{\"id\": 9, \"body\": \"x\"}}\n");
    let path = file(dir.path(), "some", &lines);
    let report = json(&["--from-data", path.to_str().expect("UTF-8")]);
    assert_eq!((number(&report, "/sample/documents_read"), number(&report, "/sample/without_text")), (5.0, 2.0));
    let said = words(&["--from-data", path.to_str().expect("UTF-8")]);
    assert!(said.contains("2 lines without a text are left out"), "{said}");
}

#[test]
fn wrong_samples_are_refused_with_their_reason() {
    let dir = library::dir();
    let one = page(1, 9, "");
    let cases = [
        ("empty", String::new(), "empty has 0 documents, 0 of them with shingles"),
        ("blank", "\n\n \n".to_owned(), "has 0 documents"),
        ("one", one.clone(), "one has 1 document, 1 of them with shingles; --from-data needs at least two"),
        ("silent", "{\"text\": \"…\"}\n{\"text\": \"!\"}\n".to_owned(), "has 2 documents, 0 of them with shingles"),
        ("broken", format!("{one}{one}{{\"text\": \n"), "broken:3 at byte 134: not a complete JSON object"),
        ("array", format!("{one}[1]\n{one}"), "array:2 at byte 67: not a JSON object"),
        (
            "nameless",
            "{\"body\": \"a b c\"}\n".to_owned(),
            "nameless: no field \"text\"; there is \"body\": use --text-field",
        ),
        ("typed", format!("{one}{{\"text\": 5}}\n"), "typed:2 at byte 67: text: must be a string, but is 5"),
        ("signed", "{\"signature\": \"AAAA\"}\n".to_owned(), "signed:1 at byte 0: a signature has no shingles"),
        ("copies", one.repeat(3), "all documents are duplicates of each other"),
    ];
    for (name, lines, reason) in cases {
        let path = file(dir.path(), name, &lines);
        let message = refusal(&["--from-data", path.to_str().expect("UTF-8")]);
        assert!(message.contains(reason), "{name}: {message}");
    }
    assert!(refusal(&["--from-data", "no-such-file"]).contains("no-such-file"));
    for (arguments, named) in [
        (["--from-data", "x", "--s-bg", "0.1"].as_slice(), "--s-bg"),
        (&["--shingle", "word3"], "--from-data"),
        (&["--text-field", "body"], "--from-data"),
        (&["--from-data", "x", "--shingle", "word99"], "word99"),
        (&["--seed", "3"], "--simulate"),
    ] {
        let message = refusal(arguments);
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
}

#[test]
fn sets_and_other_fields_are_samples_too() {
    let dir = library::dir();
    let sets = "{\"set\": [1, 2, 3, 4]}\n{\"set\": [1, 5, 6, 7, 7]}\n{\"set\": [\"1\"]}\n";
    let report = json(&["--from-data", path(&file(dir.path(), "sets", sets))]);
    assert_eq!(number(&report, "/sample/pairs"), 3.0);
    assert_eq!(number(&report, "/sample/similarity_max"), 0.1429, "one of seven");
    let bodies = "{\"body\": \"one two three\"}\n{\"body\": \"four five six\"}\n";
    let report = json(&["--text-field", "body", "--from-data", path(&file(dir.path(), "bodies", bodies))]);
    assert_eq!(number(&report, "/sample/similarity_max"), 0.0);
}

#[test]
fn the_pick_of_datasketch_is_named_with_its_recall() {
    let report = json(&["--like-datasketch", "0.8"]);
    let like = &report["like_datasketch"];
    assert_eq!((number(like, "/bands"), number(like, "/rows"), number(like, "/num_perm")), (9.0, 13.0, 128.0));
    assert!((number(like, "/candidate_recall_at_threshold") - 0.40).abs() < 0.005, "{like}");
    assert!(number(like, "/chosen_recall_at_threshold") > 0.99, "{like}");
    assert_eq!((&like["fits"], &like["is_refused"]), (&Value::Bool(true), &Value::Bool(false)));
    let half = json(&["--like-datasketch", "0.5"]);
    assert_eq!(number(&half, "/threshold"), 0.5, "its threshold is the one to compare at");
    assert_eq!((number(&half, "/like_datasketch/bands"), number(&half, "/like_datasketch/rows")), (25.0, 5.0));
    assert_eq!(number(&json(&["--like-datasketch", "0.5", "--threshold", "0.7"]), "/threshold"), 0.7);

    let said = words(&["--like-datasketch", "0.9"]);
    assert!(said.contains("MinHashLSH(threshold=0.9, num_perm=128) picks 5 bands of 25 rows"), "{said}");
    assert!(said.contains("recall at 0.9: ") && said.contains("recall at 0.8: "), "{said}");
    assert!(said.contains("does not compare candidates"), "{said}");
    assert!(said.contains(r#"as a setting of a collection: "banding": {"bands": 5, "rows": 25}"#), "{said}");
    let small = words(&["--like-datasketch", "0.9", "--k", "64"]);
    assert!(small.contains("it needs 125 slots, and these signatures have 64"), "{small}");
    assert!(words(&["--like-datasketch", "1"]).contains("refuses the threshold"));
    for wrong in [["--like-datasketch", "0"].as_slice(), &["--like-datasketch", "2"], &["--num-perm", "256"]] {
        assert!(refusal(wrong).contains("--like-datasketch"), "{wrong:?}");
    }
}
