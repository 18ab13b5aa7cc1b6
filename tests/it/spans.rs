//! `hapax spans` lists the passages that a search through all earlier documents finds, however little memory it has.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Output;

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::cli::{row, run_with_input, text};
use crate::quality::{corpora, documents as documents_of};
use crate::support::command::hapax;
use crate::support::jsonl::lines;

/// Returns documents that share passages with earlier ones, and with themselves. Some are short.
fn corpus(count: usize, seed: u64) -> Vec<Value> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut known: Vec<Vec<String>> = Vec::new();
    let separators = [" ", "\n", ", ", " — ", "…", "\u{a0}"];
    (0..count)
        .map(|number| {
            let mut words: Vec<String> = Vec::new();
            for _ in 0..random.random_range(0..5) {
                let length = random.random_range(1..60);
                if random.random_bool(0.4)
                    && let Some(passage) = known.choose(&mut random)
                {
                    let from = random.random_range(0..passage.len());
                    words.extend(passage[from..].iter().take(length).cloned());
                } else {
                    let names = ["Wort", "mot", "СЛОВО", "é", "x"];
                    words.extend((0..length).map(|_| {
                        format!("{}{}", names.choose(&mut random).expect("names"), random.random_range(0..400))
                    }));
                }
            }
            let mut text = String::new();
            for word in &words {
                text.push_str(word);
                text.push_str(separators.choose(&mut random).expect("separators"));
            }
            if !words.is_empty() {
                known.push(words);
            }
            json!({"id": format!("d{number}"), "n": number, "text": text})
        })
        .collect()
}

/// Returns the words of a text in lower case, with their places.
fn words(text: &str) -> Vec<(String, usize, usize)> {
    let mut words: Vec<(String, usize, usize)> = Vec::new();
    let mut goes_on = false;
    for (at, character) in text.char_indices() {
        let is_word = character.is_alphanumeric();
        let end = at + character.len_utf8();
        if is_word && goes_on {
            let last = words.last_mut().expect("a word");
            last.0.extend(character.to_lowercase());
            last.2 = end;
        } else if is_word {
            words.push((character.to_lowercase().collect(), at, end));
        }
        goes_on = is_word;
    }
    words
}

/// Finds the passages of each document: compares each run of `length` words with all such runs of all earlier documents.
fn by_brute_force(documents: &[Value], length: usize) -> Vec<(String, Vec<Value>)> {
    let mut firsts: HashMap<Vec<String>, (usize, usize, usize)> = HashMap::new();
    let mut found = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        let words = words(document["text"].as_str().expect("a text"));
        let window = |at: usize| words[at..at + length].iter().map(|word| word.0.clone()).collect::<Vec<_>>();
        let windows: Vec<_> = (0..(words.len() + 1).saturating_sub(length)).map(window).collect();
        let mut spans: Vec<Value> = Vec::new();
        let mut before = None;
        for (at, window) in windows.iter().enumerate() {
            let Some((first, from, to)) = firsts.get(window) else { continue };
            if at > 0 && before == Some(at - 1) {
                let span = spans.last_mut().expect("a span");
                span["to"] = json!(words[at + length - 1].2);
                span["tokens"] = json!(span["tokens"].as_u64().expect("a number") + 1);
            } else {
                let first = json!({"id": documents[*first]["id"], "file": "in.jsonl", "line": first + 1, "from": from, "to": to});
                spans.push(
                    json!({"from": words[at].1, "to": words[at + length - 1].2, "tokens": length, "first": first}),
                );
            }
            before = Some(at);
        }
        for (at, window) in windows.into_iter().enumerate() {
            firsts.entry(window).or_insert((number, words[at].1, words[at + length - 1].2));
        }
        if !spans.is_empty() {
            found.push((document["id"].as_str().expect("an id").to_owned(), spans));
        }
    }
    found
}

/// Runs `hapax spans` in a folder, and returns its output and its summary.
fn spans(dir: &Path, arguments: &[&str]) -> (Vec<Value>, Output) {
    let arguments = [&["spans", "in.jsonl", "-o", "out"], arguments].concat();
    let output = hapax(&arguments).current_dir(dir).output().expect("the binary runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("hapax")), "{names:?}");
    let lines = text(&std::fs::read(dir.join("out")).unwrap());
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), output)
}

fn listed(report: &[Value]) -> Vec<(String, Vec<Value>)> {
    let spans = |line: &Value| line["spans"].as_array().expect("spans").clone();
    report.iter().map(|line| (line["id"].as_str().expect("an id").to_owned(), spans(line))).collect()
}

#[test]
fn the_passages_are_those_of_a_search_through_all_earlier_documents() {
    let dir = tempfile::tempdir().unwrap();
    for (seed, length) in [(31, 5), (32, 10), (33, 50), (34, 1)] {
        let documents = corpus(300, seed);
        std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
        let (report, output) = spans(dir.path(), &["--ngram", &length.to_string()]);
        let expected = by_brute_force(&documents, length);
        assert!(listed(&report) == expected, "{length} {report:?} {expected:?}");
        assert!(expected.len() > if length < 50 { 50 } else { 0 }, "{length}");
        assert_eq!(row(&output, "with spans"), expected.len() as u64);
    }
}

#[test]
fn little_memory_gives_the_same_passages_in_several_readings() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(600, 35);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (whole, output) = spans(dir.path(), &["--ngram", "7"]);
    assert!(!text(&output.stdout).contains("readings") && whole.len() > 100);
    let (cut, _) = spans(dir.path(), &["--ngram", "7", "--cut"]);
    for memory in ["1KiB", "300KiB"] {
        let (again, output) = spans(dir.path(), &["--ngram", "7", "--memory", memory]);
        assert!(again == whole, "{memory}");
        assert!(row(&output, "readings") > 2, "{output:?}");
        assert!(spans(dir.path(), &["--ngram", "7", "--memory", memory, "--cut"]).0 == cut, "{memory}");
    }
    let refused =
        run_with_input(&["spans", "-", "-o", "-", "--ngram", "7", "--memory", "1KiB"], lines(&documents).as_bytes());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--memory is too small"), "{}", text(&refused.stderr));
    let piped = run_with_input(&["spans", "-", "-o", "-", "--ngram", "7"], lines(&documents).as_bytes());
    assert_eq!(text(&piped.stdout).lines().count(), whole.len());
}

#[test]
fn a_cut_corpus_has_each_passage_once_and_loses_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let documents = corpus(300, 36);
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let (report, output) = spans(dir.path(), &["--ngram", "8"]);
    let (cut, _) = spans(dir.path(), &["--ngram", "8", "--cut"]);
    assert_eq!(cut.len(), documents.len());
    let by_id: HashMap<_, _> = listed(&report).into_iter().collect();
    let mut bytes = 0;
    for (document, cut) in documents.iter().zip(&cut) {
        let whole = document["text"].as_str().unwrap();
        let mut is_kept = vec![true; whole.len()];
        for span in by_id.get(document["id"].as_str().unwrap()).into_iter().flatten() {
            let place = |side: &str| span[side].as_u64().unwrap() as usize;
            is_kept[place("from")..place("to")].fill(false);
        }
        let kept: Vec<u8> = whole.bytes().zip(&is_kept).filter(|(_, kept)| **kept).map(|(byte, _)| byte).collect();
        bytes += is_kept.iter().filter(|kept| !**kept).count();
        let expected = json!({"id": document["id"], "n": document["n"], "text": String::from_utf8(kept).unwrap()});
        assert_eq!(*cut, expected);
    }
    assert_eq!(row(&output, "span bytes"), bytes as u64);
    // Every run of words that the corpus had is still there.
    let runs = |documents: &[Value]| {
        let mut runs = HashSet::new();
        for document in documents {
            let words = words(document["text"].as_str().unwrap());
            runs.extend(words.windows(8).map(|run| run.iter().map(|word| word.0.clone()).collect::<Vec<_>>()));
        }
        runs
    };
    let (before, after) = (runs(&documents), runs(&cut));
    let lost = before.difference(&after).count();
    // Runs that begin in a passage and end behind it are cut apart.
    assert!(lost * 2 < before.len(), "{lost} of {}", before.len());
}

#[test]
fn the_text_of_a_page_is_the_extracted_one() {
    let dir = tempfile::tempdir().unwrap();
    let words: Vec<_> = (0..30).map(|number| format!("word{number}")).collect();
    let passage = words.join(" ");
    let documents = [
        json!({"id": "text", "text": format!("Before. {passage} Behind.")}),
        json!({"html": format!("<p>New here:</p><p>{passage}</p><p>The end.</p>"), "n": 1}),
    ];
    std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
    let arguments = ["--ngram", "20", "--extract", "visible"];
    let (report, _) = spans(dir.path(), &arguments);
    let extracted = format!("New here:\n{passage}\nThe end.");
    let from = extracted.find("word0").unwrap();
    assert_eq!(
        report,
        [json!({"id": "in.jsonl:2", "file": "in.jsonl", "line": 2, "spans": [{
            "from": from, "to": from + passage.len(), "tokens": 30,
            "first": {"id": "text", "file": "in.jsonl", "line": 1, "from": 8, "to": 8 + words[..20].join(" ").len()},
        }]})]
    );
    let (cut, _) = spans(dir.path(), &[&arguments[..], &["--cut"]].concat());
    assert_eq!(cut, [documents[0].clone(), json!({"text": "New here:\n\nThe end.", "n": 1})]);
}

#[test]
fn lines_without_a_text_are_reported_and_the_rest_is_used() {
    let input = "{\"text\": \"a b c d\"}\nbroken\n{\"set\": [\"a\", \"b\"]}\n{\"text\": \"x, A B C!\"}\n";
    let run = run_with_input(&["spans", "-", "-o", "-", "--ngram", "3"], input.as_bytes());
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let told = text(&run.stderr);
    assert!(
        told.contains("failed: -:2 at byte 20: not a JSON object")
            && told.contains("failed: -:3 at byte 27: there is no text"),
        "{told}"
    );
    let line: Value = serde_json::from_str(&text(&run.stdout)).unwrap();
    let first = json!({"id": "-:1", "file": "-", "line": 1, "from": 0, "to": 5});
    assert_eq!(line["spans"], json!([{"from": 3, "to": 8, "tokens": 3, "first": first}]));
    for (argument, message) in [
        (["--ngram", "0"], "0 is not in 1..=10000"),
        (["--memory", "5GB"], "must be a whole number with KiB, MiB, GiB or TiB"),
        (["--extract", "all"], "must be article or visible"),
    ] {
        let refused = run_with_input(&[&["spans", "-", "-o", "-"], &argument[..]].concat(), b"");
        assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains(message), "{refused:?}");
    }
}

#[test]
fn the_passages_of_real_texts_are_those_of_a_search() {
    let Some(corpora) = corpora() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, length, step) in [("licences", 50, 8), ("django_docs_5_versions", 30, 12)] {
        // Only texts whose words are cut in the same way by the rules of this test.
        let is_plain = |text: &str| text.is_ascii() && !text.bytes().any(|byte| byte == 0);
        let documents: Vec<_> = documents_of(&corpora.join(format!("{name}.jsonl.zst")))
            .into_iter()
            .filter(|document| is_plain(&document.text))
            .step_by(step)
            .map(|document| json!({"id": document.id, "text": document.text}))
            .collect();
        std::fs::write(dir.path().join("in.jsonl"), lines(&documents)).unwrap();
        let length_argument = length.to_string();
        let (report, _) = spans(dir.path(), &["--ngram", &length_argument]);
        let expected = by_brute_force(&documents, length);
        assert!(expected.len() > 50 && listed(&report) == expected, "{name}");
        let (again, _) = spans(dir.path(), &["--ngram", &length_argument, "--memory", "4MiB"]);
        assert!(again == report, "{name}");
    }
}
