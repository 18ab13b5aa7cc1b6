//! Ids are URLs chosen by strangers. Whatever characters an id contains, every route treats it as the id of that
//! document and no other.

use serde_json::{Value, json};

use crate::support::client::{Client, DOCUMENTS, encode, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::until::until;

fn hostile() -> Vec<String> {
    let mut ids: Vec<String> = [
        "..",
        "../..",
        "../../default",
        "/",
        "//",
        "a//b",
        "a/./b",
        "%2F",
        "%2f",
        "%",
        "%%",
        "%00",
        "%zz",
        "a%20b",
        "a b",
        "a+b",
        " leading and trailing ",
        "?",
        "?confirm=default",
        "#",
        "a?b=c&d=e#f",
        "&id=other",
        "=",
        ";",
        "\0",
        "\u{1}\u{7}\u{1b}[31m",
        "\n",
        "\r\nX-Injected: yes",
        "\t",
        "\u{7f}\u{85}\u{2028}\u{feff}",
        "\"quoted\\\"",
        "'; DROP TABLE document; --",
        "{\"id\":1}",
        "null",
        "1",
        "é",
        "e\u{301}",
        "\u{202e}gnp.exe",
        "\u{fffd}",
        "\u{10ffff}",
        "https://user:pass@host.example:8080/p/../q//r?x=1&y=%2F#frag",
    ]
    .map(str::to_owned)
    .to_vec();
    ids.push("🦀".repeat(512));
    assert_eq!(ids.last().unwrap().len(), 2048);
    ids.push("x".repeat(2048));
    ids
}

#[test]
fn hostile_ids_round_trip_through_every_route() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let ids = hostile();
    go_in_by_every_door(&client, &ids);
    are_documents_of_their_own(&client, &ids);
    are_paged_in_order(&client, &ids);
    keep_their_links(&client, &ids);
    go_out_by_every_door(&client, &ids);
}

/// Inserts ids in every way: a JSON document, a raw text, a batch, a bulk line.
fn go_in_by_every_door(client: &Client, ids: &[String]) {
    for (number, id) in (0..).zip(ids) {
        let text = words(number);
        let document = json!({"id": id, "text": text, "metadata": {"id": id}});
        let verdict = match number % 4 {
            0 => client.post(DOCUMENTS, &document).ok(),
            1 => client.text(&format!("{DOCUMENTS}?id={}", encode(id)), text.as_bytes()).ok(),
            2 => {
                let batch = json!({"op": "insert", "documents": [document]});
                client.post("/v1/collections/default/batch", &batch).ok()["results"][0].clone()
            }
            _ => client.bulk("op=insert", &document.to_string())[0].clone(),
        };
        assert_eq!((&verdict["id"], &verdict["outcome"]), (&json!(id), &json!("inserted")), "{verdict}");
    }
}

/// Checks that every id is a separate document, and is found under its own id.
fn are_documents_of_their_own(client: &Client, ids: &[String]) {
    for (number, id) in (0..).zip(ids) {
        let record = client.get(&format!("{DOCUMENTS}?id={}", encode(id))).ok();
        assert_eq!(record["id"], json!(id));
        if number % 4 != 1 {
            assert_eq!(record["metadata"], json!({"id": id}));
        }
        let found = client.post(&format!("{DOCUMENTS}/get"), &json!({"ids": [id]})).ok();
        assert_eq!(found["documents"][0]["id"], json!(id));

        let text = words(number);
        let other = client.post("/v1/collections/default/check", &json!({"text": text})).ok();
        assert_eq!((&other["duplicate_of"], &other["verdict"]), (&json!(id), &json!("exact_duplicate")));
        let own = client.text(&format!("/v1/collections/default/check?id={}", encode(id)), text.as_bytes()).ok();
        assert_eq!((&own["id"], &own["verdict"]), (&json!(id), &json!("unique")), "never its own match");
        let compared =
            client.post("/v1/collections/default/compare", &json!({"a": {"id": id}, "b": {"text": text}})).ok();
        assert_eq!(compared["estimate"]["similarity"], json!(1.0));
    }
}

/// Checks that pages list all ids, in order, each once.
fn are_paged_in_order(client: &Client, ids: &[String]) {
    let mut seen = Vec::new();
    let mut target = format!("{DOCUMENTS}?limit=7");
    loop {
        let page = client.get(&target).ok();
        seen.extend(page["documents"].as_array().unwrap().iter().map(|record| record["id"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        target = format!("{DOCUMENTS}?limit=7&cursor={}", encode(cursor));
    }
    assert_eq!(seen, ids.iter().map(|id| json!(id)).collect::<Vec<Value>>());
}

/// Checks that a link keeps its original's id.
fn keep_their_links(client: &Client, ids: &[String]) {
    let link = json!({"id": "link", "text": words(3)});
    let linked = client.post(&format!("{DOCUMENTS}?on_duplicate=link"), &link).ok();
    assert_eq!((&linked["duplicate_of"], &linked["outcome"]), (&json!(ids[3]), &json!("linked")));
    assert_eq!(client.get(&format!("{DOCUMENTS}?id=link")).ok()["duplicate_of"], json!(ids[3]));
    assert_eq!(client.delete(&format!("{DOCUMENTS}?id=link")).ok()["deleted"], 1);
}

/// Deletes ids in every way, and checks that no other document is deleted.
fn go_out_by_every_door(client: &Client, ids: &[String]) {
    let count = ids.len() as u64;
    for (number, id) in (0..).zip(ids) {
        let deleted = match number % 4 {
            0 => client.delete(&format!("{DOCUMENTS}?id={}", encode(id))).ok(),
            1 => client.post(&format!("{DOCUMENTS}/delete"), &json!({"ids": [id]})).ok(),
            2 => {
                let batch = json!({"op": "delete", "documents": [{"id": id}]});
                client.post("/v1/collections/default/batch", &batch).ok()["results"][0].clone()
            }
            _ => client.bulk("op=delete", &json!({"id": id}).to_string())[0].clone(),
        };
        assert_eq!(deleted["deleted"], 1, "{id:?}");
        client.get(&format!("{DOCUMENTS}?id={}", encode(id))).problem(404, "document_not_found");
        let left = client.get("/v1/collections/default").ok()["documents"].as_u64().unwrap();
        assert_eq!(left, count - number - 1);
    }
}

/// A request for an id reads the records of all ids with the same hash. A client can create such ids, so their number
/// is limited.
#[test]
fn ids_with_the_same_hash_are_taken_up_to_a_limit() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.limits.id_fingerprint_bits = 1;
    let server = setup.start();
    let client = Client::of(&server);
    let insert = |id: u64, text: u64| {
        client.post(&format!("{DOCUMENTS}?on_existing=replace"), &json!({"id": id.to_string(), "text": words(text)}))
    };
    let answers: Vec<_> = (0..200).map(|id| insert(id, id)).collect();
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((taken.len(), refused.len()), (128, 72));
    let problem = refused[0].problem(422, "invalid_value");
    assert!(problem["detail"].as_str().unwrap().starts_with("id: has the same hash as 64 stored ids"), "{problem}");
    // A stored id can still be replaced, and a deletion makes room.
    assert_eq!(insert(0, 1000).ok()["outcome"], "replaced");
    client.delete(&format!("{DOCUMENTS}?id=0")).ok();
    until("its place is free", || insert(0, 1001).status == 200);
}

#[test]
fn ids_that_are_none_are_refused() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let long = "x".repeat(2049);
    for id in ["", &long] {
        client.post(DOCUMENTS, &json!({"id": id, "text": "a b c"})).problem(422, "invalid_value");
        client.get(&format!("{DOCUMENTS}?id={id}")).problem(422, "invalid_value");
        client.post(&format!("{DOCUMENTS}/get"), &json!({"ids": [id]})).problem(422, "invalid_value");
    }
    for broken in ["%ff", "%C3", "%ED%A0%80", "%", "%4"] {
        client.get(&format!("{DOCUMENTS}?id={broken}")).problem(422, "invalid_value");
        client.delete(&format!("{DOCUMENTS}?id={broken}")).problem(422, "invalid_value");
    }
}

#[test]
fn a_path_that_looks_like_an_id_is_no_document() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    client.post(DOCUMENTS, &json!({"id": "get", "text": words(1)})).ok();
    for path in
        ["/documents/x", "/documents/", "/documents/%2e%2e", "//documents", "/documents//get", "/documents/get/"]
    {
        let answer = client.delete(&format!("/v1/collections/default{path}"));
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 1);
}
