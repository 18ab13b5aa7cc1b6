//! A collection of items finds the items that a text contains: the same as a join of the words themselves, before and
//! after crashes, copies and changes. It refuses what needs similarities.

use rand::SeedableRng;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::contain::join::{Contained, Join};
use crate::contain::{planted, told};
use crate::quality::{corpora, read_zst};
use crate::support::client::{Client, words};
use crate::support::command::run;
use crate::support::jsonl::{lines, parsed};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::server::Server;
use crate::support::until::until;

const ITEMS: &str = "/v1/collections/items";
/// 21 words.
const RIDDLE: &str =
    "Four sailors carry nine crates up the narrow stairs, and each crate weighs as much as two of the sailors. Why?";

fn create(client: &Client, name: &str, settings: &Value) {
    let mut settings = settings.clone();
    settings["index"] = json!("containment");
    let made = client.json("PUT", &format!("/v1/collections/{name}"), &settings);
    assert_eq!((made.status, &made.json()["index"]), (201, &json!("containment")), "{}", made.text());
}

fn insert(client: &Client, query: &str, id: &str, text: &str) -> Value {
    client.post(&format!("{ITEMS}/documents?{query}"), &json!({"id": id, "text": text})).ok()
}

/// Returns the items that a text contains, of the collection `name`.
fn overlaps(client: &Client, name: &str, query: &str, text: &str) -> Value {
    client.post(&format!("/v1/collections/{name}/overlaps?{query}"), &json!({ "text": text })).ok()
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["overlaps"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

/// Stores the items that are long enough.
fn store_all(client: &Client, items: &[Value]) {
    for batch in items.chunks(100) {
        let body = json!({"op": "insert", "documents": batch});
        let stored = client.post(&format!("{ITEMS}/batch?on_duplicate=store"), &body).ok();
        for (verdict, item) in stored["results"].as_array().unwrap().iter().zip(batch) {
            let short = crate::contain::join::words(item["text"].as_str().unwrap()).len() < 8;
            assert_eq!((verdict["stored"] == true, verdict["warning"].is_string()), (!short, short), "{verdict}");
            assert!(["unique", "exact_duplicate", "empty"].iter().any(|kind| verdict["verdict"] == *kind), "{verdict}");
        }
    }
}

/// Asks about all documents, and compares the answers with the join.
fn as_the_join(client: &Client, name: &str, documents: &[Value], items: &[Value], size: usize, min: f64) {
    let expected: Vec<Contained> = Join::new(size, items).of(documents, min.max(1e-9));
    let order: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    for (document, contained) in documents.iter().zip(&expected) {
        let text = document["text"].as_str().unwrap();
        let answer = overlaps(client, name, &format!("limit=1000&min_containment={min}"), text);
        let found = answer["overlaps"].as_array().unwrap();
        assert_eq!(&told(found, contained, document), contained, "{answer}");
        assert_eq!((&answer["found"], &answer["complete"]), (&json!(contained.len()), &json!(true)), "{answer}");
        for pair in found.windows(2).filter(|pair| pair[0]["containment"] == pair[1]["containment"]) {
            let [first, second] = [0, 1].map(|at| order.iter().position(|id| pair[at]["id"] == *id));
            assert!(first < second, "of equal ones, the first that was stored: {answer}");
        }
    }
    assert!(expected.iter().filter(|contained| !contained.is_empty()).count() > 20);
}

#[test]
fn overlaps_are_those_of_the_exact_join() {
    for (seed, size, min) in [(1, 13, 0.0), (2, 13, 1.0), (3, 8, 0.3), (4, 32, 0.5)] {
        let dir = dir();
        let server = Local::plain(&dir);
        let client = Client::of(&server);
        create(&client, "items", &json!({"shingle": format!("word{size}")}));
        let (documents, items) = planted(seed, 200, 80);
        store_all(&client, &items);
        as_the_join(&client, "items", &documents, &items, size, min);
    }
}

#[test]
fn items_of_the_given_corpora_are_found() {
    let Some(corpora) = corpora() else { return };
    for name in ["licences", "tldr_cjk_and_others", "chinese_poems"] {
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let mut documents = parsed(read_zst(&corpora.join(format!("{name}.jsonl.zst"))).as_bytes());
        documents.retain(|document| document["text"].as_str().is_some_and(|text| text.len() < 20_000));
        let documents: Vec<_> = documents.sample(&mut random, 200).cloned().collect();
        let items = documents.iter().step_by(2).enumerate().map(|(number, document)| {
            let text: Vec<_> = document["text"].as_str().unwrap().chars().collect();
            let part = &text[text.len() / 3..text.len() / 3 + (text.len() / 4).max(1)];
            json!({"id": format!("q{number}"), "text": part.iter().collect::<String>()})
        });
        let items: Vec<_> = items.collect();
        let dir = dir();
        let server = Local::plain(&dir);
        let client = Client::of(&server);
        create(&client, "items", &json!({}));
        store_all(&client, &items);
        as_the_join(&client, "items", &documents, &items, 13, 0.0);
    }
}

#[test]
fn places_are_bytes_of_the_text_that_was_sent_or_extracted() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "items", &json!({"extract": "visible"}));
    assert_eq!(insert(&client, "", "q", RIDDLE)["verdict"], "unique");
    let before = "Ein Cafe\u{301} \u{2014} \"";
    let answer =
        overlaps(&client, "items", "", &format!("{before}{}\u{fb01}", RIDDLE.to_uppercase().replace(' ', "\u{a0}")));
    let (from, to) = (before.len(), before.len() + RIDDLE.to_uppercase().replace(' ', "\u{a0}").len() - 1);
    assert_eq!(answer["overlaps"][0]["spans"], json!([[from, to]]), "{answer}");
    let page = format!("<html><body><nav>Men&uuml;</nav><p>{RIDDLE}</p></body></html>");
    let extracted = client.post(&format!("{ITEMS}/extract"), &json!({"html": page})).ok();
    let from = extracted["text"].as_str().unwrap().find("Four").unwrap();
    let of_page = client.post(&format!("{ITEMS}/overlaps"), &json!({"html": page})).ok();
    assert_eq!(of_page["overlaps"][0]["spans"], json!([[from, from + RIDDLE.len() - 1]]), "{of_page}");
    // A raw text of any length is read whole.
    let long = format!("{} {RIDDLE}", "other words ".repeat(20_000));
    let of_long = client.text(&format!("{ITEMS}/overlaps"), long.as_bytes()).ok();
    assert_eq!(of_long["overlaps"][0]["containment"], 1.0, "{of_long}");
    assert_eq!(overlaps(&client, "items", "", ""), json!({"overlaps": [], "found": 0, "complete": true}));
}

#[test]
fn more_items_than_the_limit_of_one_ngram_make_an_answer_incomplete() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.limits.bucket_read_max = 5;
    let server = setup.start();
    let client = Client::of(&server);
    create(&client, "items", &json!({}));
    for number in 0..7 {
        insert(&client, "", &format!("q{number}"), &format!("{RIDDLE} {}", words(number)));
        let answer = overlaps(&client, "items", "", RIDDLE);
        assert_eq!(answer["complete"], number < 5, "{answer}");
        assert_eq!(answer["found"], (number + 1).min(5), "{answer}");
    }
    let whole = overlaps(&client, "items", "limit=1", &format!("{RIDDLE} {}", words(6)));
    assert_eq!((ids(&whole), &whole["complete"]), (vec!["q6"], &json!(false)), "{whole}");
}

/// Returns what a collection finds in some texts.
fn found(client: &Client, name: &str, texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| overlaps(client, name, "limit=100", text)).collect()
}

#[test]
fn every_change_shows_at_once_and_after_a_kill() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    create(&client, "items", &json!({}));
    let labelled = |id: &str, number| {
        let item = json!({"id": id, "text": words(number), "labels": {"exam": "old"}});
        client.post(&format!("{ITEMS}/documents"), &item).ok()
    };
    (0..4).for_each(|number| drop(insert(&client, "", &format!("q{number}"), &words(number))));
    labelled("old-4", 4);
    labelled("old-5", 5);
    assert_eq!(insert(&client, "", "copy", &words(0))["verdict"], "exact_duplicate");
    assert_eq!(insert(&client, "on_duplicate=link", "link", &words(1))["outcome"], "linked");
    let replaced = insert(&client, "on_existing=replace", "q2", &words(20));
    assert_eq!(
        (&replaced["outcome"], &replaced["previous"]["method"]),
        (&json!("replaced"), &json!("exact")),
        "{replaced}"
    );
    assert_eq!(client.delete(&format!("{ITEMS}/documents?id=q3")).ok()["deleted"], 1);
    client.delete(&format!("{ITEMS}/documents?label=exam:old"));
    let expected = [
        (0, vec!["q0"]),
        (1, vec!["q1", "link"]),
        (2, vec![]),
        (20, vec!["q2"]),
        (3, vec![]),
        (4, vec![]),
        (5, vec![]),
    ];
    let as_expected = |client: &Client, name: &str| {
        for (number, items) in &expected {
            let answer = overlaps(client, name, "", &words(*number));
            assert_eq!(&ids(&answer), items, "{number}: {answer}");
        }
    };
    as_expected(&client, "items");
    server.kill();
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    as_expected(&client, "items");
    // The original of a link is deleted.
    assert_eq!(client.delete(&format!("{ITEMS}/documents?id=q1")).ok()["deleted"], 1);
    assert_eq!(ids(&overlaps(&client, "items", "", &words(1))), ["link"]);
    server.kill();
    let server = Server::start(&data);
    assert_eq!(ids(&overlaps(&Client::new(server.url("")), "items", "", &words(1))), ["link"]);
    assert!(server.terminate().success());
    let verified = run(&["verify", "--data-dir", data.to_str().unwrap()]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn copies_find_the_same_items() {
    let dir = dir();
    let [data, loaded, restored] = ["data", "loaded", "restored"].map(|name| dir.path().join(name));
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    create(&client, "items", &json!({}));
    create(&client, "more", &json!({}));
    let (documents, items) = planted(7, 60, 40);
    store_all(&client, &items);
    let texts: Vec<_> = documents.iter().map(|document| document["text"].as_str().unwrap().to_owned()).collect();
    let told = found(&client, "items", &texts);
    assert!(told.iter().filter(|answer| answer["found"] != 0).count() > 10);
    // A merge.
    let merge = client.post("/v1/collections/more/merge", &json!({"from": "items", "on_duplicate": "store"}));
    assert_eq!(merge.status, 202, "{}", merge.text());
    until("the merge ends", || client.get("/v1/jobs?state=running").ok()["jobs"] == json!([]));
    assert_eq!(found(&client, "more", &texts), told);
    assert!(server.terminate().success());
    // An export, and a load of it.
    let (data, file) = (data.to_str().unwrap(), dir.path().join("items.parquet"));
    let (file, backup) = (file.to_str().unwrap(), dir.path().join("backup"));
    let backup = backup.to_str().unwrap();
    for arguments in [
        &["export", "--parquet", "--data-dir", data, "--collection", "items", "--output", file][..],
        &["load", file, "--data-dir", loaded.to_str().unwrap(), "--collection", "items"][..],
        &["backup", "--data-dir", data, backup][..],
        &["restore", backup, "--data-dir", restored.to_str().unwrap()][..],
    ] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    for copy in [loaded, restored] {
        let server = Server::start(&copy);
        assert_eq!(found(&Client::new(server.url("")), "items", &texts), told, "{}", copy.display());
    }
}

#[test]
fn what_needs_similarities_is_refused_and_so_is_the_reverse() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "items", &json!({}));
    insert(&client, "", "q", RIDDLE);
    let text = json!({ "text": RIDDLE });
    let refused = |target: &str, body: &Value| {
        let problem = client.post(target, body).problem(409, "wrong_index");
        assert!(problem["detail"].as_str().unwrap().contains("/overlaps"), "{problem}");
    };
    refused(&format!("{ITEMS}/check"), &text);
    refused(&format!("{ITEMS}/sign"), &text);
    refused(&format!("{ITEMS}/compare"), &json!({"a": text, "b": {"id": "q"}}));
    refused("/v1/collections/default/check?collections=items", &text);
    refused("/v1/collections/items/documents?collections=default&id=a", &json!({"text": words(1)}));
    client.get(&format!("{ITEMS}/golden")).problem(409, "wrong_index");
    let pairs = json!({"pairs": [{"a": "a b", "b": "a c", "duplicate": false}]});
    client.json("PUT", &format!("{ITEMS}/golden"), &pairs).problem(409, "wrong_index");
    client.post("/v1/collections/default/overlaps", &text).problem(409, "wrong_index");
    let batch = client.post(&format!("{ITEMS}/batch"), &json!({"op": "check", "documents": [text]})).ok();
    assert_eq!(batch["results"][0]["error"]["code"], "wrong_index", "{batch}");
    for content in [json!({"set": ["a"]}), json!({"signature": "AAAAAAAAAAAAAAAAAAAAAQ==", "id": "x"})] {
        client.post(&format!("{ITEMS}/overlaps"), &content).problem(422, "invalid_value");
        let mut document = content.clone();
        document["id"] = json!("x");
        client.post(&format!("{ITEMS}/documents"), &document).problem(422, "invalid_value");
    }
    let list = json!({"documents": [text], "settings": {"index": "containment"}});
    client.post("/v1/dedup", &list).problem(422, "invalid_value");
    for query in ["min_containment=1.5", "min_containment=x", "limit=0", "threshold=0.5"] {
        client.post(&format!("{ITEMS}/overlaps?{query}"), &text).problem(422, "invalid_value");
    }
}

#[test]
fn the_index_is_frozen_and_its_settings_are_checked() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let put = |settings: Value| client.json("PUT", ITEMS, &settings);
    for (settings, field) in [
        (json!({"index": "containment", "shingle": "word7"}), "shingle"),
        (json!({"index": "containment", "shingle": "char13"}), "shingle"),
        (json!({"index": "containment", "keep": "text"}), "keep"),
        (json!({"index": "containment", "threshold": 0.8}), "threshold"),
        (json!({"index": "containment", "verify": "exact"}), "verify"),
        (json!({"index": "containment", "banding": {"bands": 2, "rows": 8}}), "banding"),
        (json!({"index": "containment", "sketch": "fss64x8"}), "index"),
        (json!({"index": "similarity", "sketch": "none", "shingle": "word13"}), "index"),
        (json!({"index": "both"}), "index"),
    ] {
        let problem = put(settings.clone()).problem(422, "invalid_value");
        assert_eq!(problem["errors"][0]["field"], field, "{settings}: {problem}");
    }
    let made = put(json!({"index": "containment", "ttl": 100}));
    assert_eq!(made.status, 201);
    let made = made.json();
    assert_eq!((&made["keep"], &made["ttl"]), (&json!("shingles"), &json!(100.0)), "{made}");
    let spec = made["spec"].as_str().unwrap();
    assert!(spec.contains(";shingle=word13;sketch=none;"), "{made}");
    assert_eq!(put(json!({"spec": spec, "ttl": 100})).status, 200, "the spec says it all");
    put(json!({})).problem(409, "collection_exists");
    put(json!({"index": "containment", "shingle": "word8"})).problem(409, "collection_exists");
    for changes in [json!({"threshold": 0.5}), json!({"verify": "exact"}), json!({"banding_by_hand": true})] {
        client.json("PATCH", ITEMS, &changes).problem(422, "invalid_value");
    }
    assert_eq!(client.json("PATCH", ITEMS, &json!({"ttl": 0})).ok()["ttl"], Value::Null);
}

#[test]
fn an_import_names_the_items_that_are_too_short() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client, "items", &json!({}));
    let file = dir.path().join("items.jsonl");
    let items = [json!({"id": "q", "text": RIDDLE}), json!({"id": "short", "text": "What is seven times eight?"})];
    std::fs::write(&file, lines(&items)).unwrap();
    let file = file.to_str().unwrap();
    let imported = run(&["import", file, "--server", &server.url(), "--collection", "items"]);
    let told = String::from_utf8_lossy(&imported.stderr);
    assert!(imported.status.success(), "{told}");
    assert!(
        told.starts_with(&format!("not stored: {file}:2 at byte ")) && told.contains("fewer than 8 words"),
        "{told}"
    );
}

#[test]
fn whole_documents_are_not_compared_without_a_sketch() {
    let dir = dir();
    let file = dir.path().join("in.jsonl");
    std::fs::write(&file, lines(&[json!({"id": "a", "text": RIDDLE})])).unwrap();
    let output = dir.path().join("out.jsonl");
    for verb in ["dedup", "pairs"] {
        let files = [file.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let refused = run(&[&[verb], &files[..], &["--sketch", "none", "--shingle", "word13"]].concat());
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && told.contains("hapax contain"), "{verb}: {told}");
    }
}

#[test]
fn a_damaged_item_is_named_and_after_a_repair_the_others_are_found() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    create(&client, "items", &json!({}));
    insert(&client, "", "lost", &words(0));
    insert(&client, "", "kept", &words(1));
    assert!(server.terminate().success());
    let file = rusqlite::Connection::open(data.join("collections/items.sqlite")).unwrap();
    assert_eq!(file.execute("UPDATE payload SET bytes = x'0d' WHERE seq = 1", []).unwrap(), 1);
    drop(file);
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let problem =
        client.post(&format!("{ITEMS}/overlaps"), &json!({"text": words(1)})).problem(500, "collection_damaged");
    assert!(problem["detail"].as_str().unwrap().contains("record 1"), "{problem}");
    assert_eq!(client.post("/v1/collections/default/check", &json!({"text": words(1)})).status, 200);
    assert!(server.terminate().success());
    let repair = run(&["verify", "--data-dir", data.to_str().unwrap(), "--collection", "items", "--repair"]);
    assert_eq!(repair.status.code(), Some(1), "{repair:?}");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let answers = [0, 1].map(|number| overlaps(&client, "items", "", &words(number)));
    assert_eq!(answers.each_ref().map(ids), [vec![], vec!["kept"]]);
}
