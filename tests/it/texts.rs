//! `GET …/documents?id=&with=text` returns the canonical text that a collection with `keep` `text` stores. The answer
//! takes no more memory than other answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::client::{Answer, Client, documents, encode, fields, words};
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};

const TEXTS: &str = "/v1/collections/texts/documents";
const BOUND: usize = 256 << 10;

/// Starts a server with a collection that keeps texts.
fn server(dir: &Dir, setup: impl FnOnce(Setup) -> Setup) -> (Local, Client) {
    let server = setup(Setup::new(dir)).start();
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/texts", &json!({"keep": "text"})).status, 201);
    (server, client)
}

fn read(client: &Client, id: &str) -> Answer {
    client.get(&format!("{TEXTS}?id={}&with=text", encode(id)))
}

fn insert(client: &Client, id: &str, text: &str) {
    let answer =
        client.post(&format!("{TEXTS}?on_existing=replace&on_duplicate=link"), &json!({"id": id, "text": text}));
    assert_eq!(answer.ok()["stored"], true, "{}", answer.text());
}

/// Returns a text of about this many bytes.
fn long(bytes: usize) -> String {
    let text: String = (0..bytes / 8).map(|number| format!("{number:07} ")).collect();
    text.trim_end().to_owned()
}

#[test]
fn the_text_of_a_document_is_that_which_is_compared() {
    let dir = dir();
    let (_server, client) = server(&dir, |setup| setup);
    for (id, text, canonical) in [
        ("plain", "one two three", "one two three"),
        ("https://a.example/?x=1&y", "STRASSE,\n\t two  words", "strasse, two words"),
        ("quoted", "he said \"no\" \u{1}\u{1F600} \\ and left", "he said \"no\" \u{1}\u{1F600} \\ and left"),
        ("linked", "ONE two three", "one two three"),
    ] {
        insert(&client, id, text);
        let record = read(&client, id).ok();
        assert_eq!((&record["id"], &record["text"]), (&json!(id), &json!(canonical)));
        // Except for the text, the record is the same.
        let mut without = record.clone();
        without.as_object_mut().unwrap().remove("text");
        for target in [format!("{TEXTS}?id={}", encode(id)), format!("{TEXTS}?id={}&with=none", encode(id))] {
            assert_eq!(client.get(&target).ok(), without);
        }
        // The text is complete: if it is inserted, the insert is a repetition.
        let again = client.post(TEXTS, &json!({"id": id, "text": record["text"]})).ok();
        assert_eq!(again["outcome"], "unchanged", "{again}");
    }
    assert_eq!(read(&client, "linked").ok()["linked"], true);
    insert(&client, "plain", "four five six");
    assert_eq!(read(&client, "plain").ok()["text"], "four five six");
    client.delete(&format!("{TEXTS}?id=plain")).ok();
    read(&client, "plain").problem(404, "document_not_found");
    assert!(client.get(TEXTS).ok()["documents"][0].get("text").is_none());
}

#[test]
fn a_set_has_no_text() {
    let dir = dir();
    let (_server, client) = server(&dir, |setup| setup);
    client.post(TEXTS, &json!({"id": "set", "set": ["a", 1]})).ok();
    let record = read(&client, "set").ok();
    assert_eq!(record["id"], "set");
    assert!(record.get("text").is_none(), "{record}");
}

#[test]
fn a_collection_without_texts_says_how_to_keep_them() {
    let dir = dir();
    let (_server, client) = server(&dir, |setup| setup);
    assert_eq!(client.json("PUT", "/v1/collections/shingles", &json!({"keep": "shingles"})).status, 201);
    for (name, keep) in [("default", "signature"), ("shingles", "shingles")] {
        client.post(&documents(name), &json!({"id": "a", "text": words(1)})).ok();
        for id in ["a", "no-such-id"] {
            let problem = client.get(&format!("{}?id={id}&with=text", documents(name))).problem(422, "invalid_value");
            assert_eq!(fields(&problem), ["with"]);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("`{keep}`")) && detail.contains("`text`"), "{detail}");
        }
    }
    // A page of documents never has texts.
    assert_eq!(fields(&client.get(&format!("{TEXTS}?with=text")).problem(422, "invalid_value")), ["with"]);
    assert_eq!(fields(&client.get(&format!("{TEXTS}?id=a&with=all")).problem(422, "invalid_value")), ["with"]);
}

#[test]
fn a_text_comes_whole_or_not_at_all() {
    let dir = dir();
    let (_server, client) = server(&dir, |setup| setup.limits(|limits| limits.answer_bytes_max = BOUND));
    // Sizes around the memory that is reserved at first for a text (64 KiB), and up to the bound.
    for bytes in [1 << 10, 60 << 10, 64 << 10, 70 << 10, BOUND - (1 << 10)] {
        let text = long(bytes);
        insert(&client, "long", &text);
        let answer = read(&client, "long");
        assert_eq!(answer.ok()["text"], text, "{bytes}");
        assert!(answer.body.len() <= BOUND);
    }
    // In JSON, control characters have six bytes each. On disk, a repetitive text has few bytes.
    for text in [long(BOUND), "\u{1} a ".repeat(BOUND / 8), "again ".repeat(BOUND)] {
        insert(&client, "long", text.trim_end());
        let problem = read(&client, "long").problem(422, "invalid_value");
        assert_eq!(fields(&problem), ["with"]);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&BOUND.to_string()) && detail.contains("answer_bytes_max"), "{detail}");
    }
    assert_eq!(client.get(&format!("{TEXTS}?id=long")).ok()["id"], "long");
}

#[test]
fn no_setting_makes_a_text_wait_for_memory_that_is_never_there() {
    let dir = dir();
    let limits = |setup: Setup| setup.limits(|limits| limits.answers_bytes_max = 2 * BOUND);
    let (_server, client) = server(&dir, limits);
    let (mut whole, mut refused) = (0, 0);
    for kibibytes in (1..16).chain((16..256).step_by(16)) {
        let text = long(kibibytes << 10);
        insert(&client, "long", &text);
        match read(&client, "long") {
            answer if answer.status == 200 => whole += usize::from(answer.ok()["text"] == text),
            answer => refused += usize::from(fields(&answer.problem(422, "invalid_value")) == ["with"]),
        }
    }
    assert!(whole > 10 && refused > 5 && whole + refused == 30, "{whole} {refused}");
}

/// A text is read after its record. While contents are replaced, the record and the text must be of the same document.
#[test]
fn a_text_belongs_to_its_record() {
    let dir = dir();
    let (_server, client) = server(&dir, |setup| setup);
    let texts = [words(1), words(2)];
    let done = AtomicBool::new(false);
    let store = |number: usize| {
        let document = json!({"id": "a", "text": texts[number % 2], "metadata": {"number": number % 2}});
        client.post(&format!("{TEXTS}?on_existing=replace"), &document).ok();
    };
    store(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            (1..200).for_each(store);
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let record: Value = read(&client, "a").ok();
            let number = record["metadata"]["number"].as_u64().unwrap() as usize;
            assert_eq!(record["text"], texts[number], "{record}");
        }
    });
}
