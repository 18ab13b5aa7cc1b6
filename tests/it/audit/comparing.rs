//! `hapax audit --compare`: the evidence of decisions, compared with the documents that are stored now.

use serde_json::{Value, json};

use super::{Audited, audit, near, printed};
use crate::support::client::{Client, documents, words};
use crate::support::server::Server;
use crate::support::until::until;

/// Returns the exit status, and the state of each match with the id of its document.
fn states(audited: &Audited, server: &Server, arguments: &[&str]) -> (i32, Vec<(String, Value)>) {
    let url = server.url("");
    let output = audit(&audited.log(), &[&["--compare", "--server", &url], arguments].concat());
    let (status, lines) = printed(&output);
    let state = |line: &Value| (line["id"].as_str().unwrap_or("-").to_owned(), line["state"].clone());
    (status, lines.iter().map(state).collect())
}

fn store(client: &Client, collection: &str, id: &str, text: &str, query: &str) {
    client.post(&format!("{}?{query}", documents(collection)), &json!({"id": id, "text": text})).ok();
}

#[test]
fn evidence_is_compared_or_said_to_be_gone() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    for (name, settings) in [("exact", json!({"verify": "exact"})), ("dropped", json!({}))] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
        store(&client, name, "a", &words(1), "");
        store(&client, name, "b", &near(1), "on_duplicate=store");
    }
    for number in 1..=5 {
        store(&client, "default", &format!("original-{number}"), &words(number), "");
        let query = if number == 5 { "on_duplicate=skip" } else { "on_duplicate=link" };
        store(&client, "default", &format!("near-{number}"), &near(number), query);
    }
    until("the lines are in a file", || audited.text().lines().count() == 14);
    let text = |id: &str| id.to_owned();
    let (status, before) = states(&audited, &server, &["--collection", "default"]);
    let mut expected: Vec<_> = (1..=4).map(|number| (format!("near-{number}"), json!("same"))).collect();
    expected.push((text("near-5"), json!("document_not_stored")));
    assert_eq!((status, before), (0, expected));
    assert_eq!(states(&audited, &server, &["--collection", "exact"]), (0, vec![(text("b"), json!("same"))]));

    let delete = |id: &str| client.delete(&format!("{}?id={id}", documents("default"))).ok();
    delete("original-1");
    store(&client, "default", "original-2", &words(200), "on_existing=replace");
    delete("near-3");
    store(&client, "default", "near-4", &words(400), "on_existing=replace");
    client.delete("/v1/collections/dropped?confirm=dropped").ok();
    let (status, after) = states(&audited, &server, &["--verdict", "near_duplicate"]);
    let expected = [
        ("b", "same"),
        ("b", "collection_gone"),
        ("near-1", "match_deleted"),
        ("near-2", "match_replaced"),
        ("near-3", "document_deleted"),
        ("near-4", "document_replaced"),
        ("near-5", "document_not_stored"),
    ];
    assert_eq!((status, after), (1, expected.map(|(id, state)| (text(id), json!(state))).to_vec()));

    let url = server.url("");
    let arguments = ["--compare", "--server", &url, "--collection", "exact"];
    let (_, lines) = printed(&audit(&audited.log(), &arguments));
    assert_eq!((&lines[0]["method"], &lines[0]["now"]), (&json!("exact"), &lines[0]["similarity"]));
    let table = String::from_utf8(audit(&audited.log(), &[&arguments[..], &["--table"]].concat()).stdout).unwrap();
    assert!(table.lines().nth(1).is_some_and(|row| row.ends_with("  exact: b ~ a")), "{table}");
}
