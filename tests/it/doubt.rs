//! No answer depends on a document that may be gone from disk. In an earlier version, a delete whose sync failed was
//! answered with 503, and later checks named the document again as the original of others. After a restart, this
//! document was gone, so the answers had named an original that does not exist.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::{Client, DOCUMENTS, words};
use crate::support::library::{self, Dir};
use crate::support::local::Local;

const DEFAULT: &str = "/v1/collections/default";
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes deletes of documents fail in an unknown way, so that hapax cannot know the state on disk.
fn fail_deletes(dir: &Dir, collection: &str) -> Connection {
    library::refuse(dir, collection, "BEFORE DELETE ON document")
}

fn check(client: &Client, text: &str) -> Value {
    client.post(&format!("{DEFAULT}/check"), &json!({ "text": text })).ok()
}

fn cited(verdict: &Value) -> Vec<&str> {
    verdict["matches"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap()).collect()
}

fn near() -> String {
    format!("{} end", words(1))
}

/// `r` is the representative of `m` and of the link `l`. The other documents have no duplicates.
fn fill(client: &Client) {
    for (query, id, text) in [
        ("", "first", words(7)),
        ("", "r", words(1)),
        ("on_duplicate=store", "m", near()),
        ("on_duplicate=link", "l", format!("start {}", words(1))),
        ("", "other", words(5)),
    ] {
        let inserted = client.post(&format!("{DOCUMENTS}?{query}"), &json!({ "id": id, "text": text })).ok();
        assert_eq!(inserted["stored"], true);
    }
}

fn pages(client: &Client, limit: u64) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{DOCUMENTS}?limit={limit}{cursor}")).ok();
        ids.extend(page["documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

fn without(client: &Client, how: &str, id: &str) -> u16 {
    let replace = |query: &str, text: String| {
        client.post(&format!("{DOCUMENTS}?on_existing=replace&{query}"), &json!({ "id": id, "text": text })).status
    };
    match how {
        "delete" => client.delete(&format!("{DOCUMENTS}?id={id}")).status,
        "replace" => replace("", words(8)),
        "remove" => replace("", words(5)),
        _ => replace("", String::new()),
    }
}

#[test]
fn a_document_that_may_be_gone_is_cited_by_no_answer() {
    for how in ["delete", "replace", "remove", "empty"] {
        let dir = library::dir();
        let server = Local::plain(&dir);
        let client = Client::of(&server);
        fill(&client);
        let failing = fail_deletes(&dir, "default");
        assert_eq!(without(&client, how, "r"), 503, "{how}");

        let found = check(&client, &words(1));
        assert_eq!((cited(&found), &found["complete"]), (vec!["m"], &json!(false)), "{how}: {found}");
        let found = check(&client, &format!("start {}", words(1)));
        assert_eq!(found["complete"], false, "{how}: its representative may be gone: {found}");
        assert!(!cited(&found).contains(&"r") && found.get("representative").is_none(), "{how}: {found}");
        let found = check(&client, &words(5));
        assert_eq!((cited(&found), &found["complete"]), (vec!["other"], &json!(true)), "{how}: {found}");
        let of_it = client.post(&format!("{DEFAULT}/check"), &json!({ "id": "r", "text": words(9) })).ok();
        assert_eq!((&of_it["complete"], of_it.get("previous")), (&json!(false), None), "{how}: {of_it}");

        for target in ["documents?id=r", "documents?id=m", "documents", "clusters?id=r", "clusters?id=m", "clusters"] {
            let refused = client.get(&format!("{DEFAULT}/{target}")).problem(503, "write_failed");
            assert!(refused["detail"].as_str().unwrap().contains("`r`"), "{how}, {target}: {refused}");
        }
        client.post(&format!("{DOCUMENTS}/get"), &json!({ "ids": ["r"] })).problem(503, "write_failed");
        let compared = json!({ "a": { "id": "r" }, "b": { "text": words(1) } });
        client.post(&format!("{DEFAULT}/compare"), &compared).problem(503, "write_failed");
        client.get(&format!("{DOCUMENTS}?id=other")).ok();
        client.post(DOCUMENTS, &json!({ "id": "new", "text": words(1) })).problem(503, "write_failed");

        drop(server);
        failing.execute_batch("DROP TRIGGER no").unwrap();
        let server = Local::plain(&dir);
        let found = check(&Client::of(&server), &words(1));
        assert_eq!((cited(&found)[0], &found["complete"]), ("r", &json!(true)), "{how}: the file says so: {found}");
    }
}

#[test]
fn pages_pass_over_a_document_that_may_be_gone_and_go_on() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let ids: Vec<String> = (0..9).map(|number| format!("d{number}")).collect();
    for (number, id) in (0..).zip(&ids) {
        client.post(DOCUMENTS, &json!({ "id": id, "text": words(number) })).ok();
    }
    let _failing = fail_deletes(&dir, "default");
    // The deletes are in one or two transactions. If there are two, the second one is refused before it is tried.
    client.post(&format!("{DOCUMENTS}/delete"), &json!({ "ids": ["d0", "d4", "d8"] })).problem(503, "write_failed");
    for limit in [1, 2, 3, 4, 100] {
        let listed = pages(&client, limit);
        for id in &ids {
            let certain = client.get(&format!("{DOCUMENTS}?id={id}")).status == 200;
            assert_eq!(listed.contains(id), certain, "{id} of {listed:?}");
        }
        assert!(!listed.contains(&ids[0]) && listed.len() >= 6, "{listed:?}");
    }
}

#[test]
fn an_expiry_that_failed_leaves_doubt_too() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/short", &json!({ "ttl": 1 })).status, 201);
    let _failing = fail_deletes(&dir, "short");
    client.post("/v1/collections/short/documents", &json!({ "id": "a", "text": words(1) })).ok();
    let begun = Instant::now();
    loop {
        let found = client.post("/v1/collections/short/check", &json!({ "text": words(1) })).ok();
        if found["complete"] == false {
            assert_eq!(found["verdict"], "unique", "{found}");
            break;
        }
        assert_eq!(found["duplicate_of"], "a", "{found}");
        assert!(begun.elapsed() < PATIENCE, "it does not expire");
        std::thread::sleep(Duration::from_millis(50));
    }
}
