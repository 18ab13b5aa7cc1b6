//! A collection with everything that a document can have is exported, loaded and exported again.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::text;
use crate::support::client::Client;
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::server::Server;

/// The settings of the exported collections.
const SETTINGS: [&str; 3] = [
    r#"{"threshold": 0.7, "banding": {"bands": 32, "rows": 4}, "ttl": 100000}"#,
    r#"{"keep": "shingles", "verify": "exact"}"#,
    r#"{"keep": "text", "verify": "borderline", "extract": "visible", "shingle": "char5", "sketch": "oph128x8"}"#,
];

fn fill(client: &Client, name: &str) {
    let documents = format!("/v1/collections/{name}/documents");
    let post = |query: &str, document: &Value| client.post(&format!("{documents}{query}"), document).ok();
    for n in 0..20 {
        let document = json!({
            "id": format!("page/{n}"), "text": text(n), "metadata": { "n": n, "é": [1.50, null] },
            "labels": { "site": format!("s{}", n % 3), "crawl": "1" }, "date": "2026-11-20T10:00:00Z",
            "payload_digest": format!("sha1:{n:032}"),
        });
        post("", &document);
    }
    for n in 0..10 {
        post("?on_duplicate=link", &json!({ "id": format!("link/{n}"), "text": text(n) + " last" }));
        post("?on_duplicate=store", &json!({ "id": format!("store/{n}"), "text": text(n) + " end" }));
        post("?on_duplicate=store", &json!({ "id": format!("copy/{n}"), "text": text(n) }));
    }
    let page = format!("<html><body><article><p>{}</p></article></body></html>", text(50));
    post("", &json!({ "id": "html", "html": page }));
    // Deletes a representative, replaces a content, and inserts an id with unusual characters.
    assert_eq!(client.delete(&format!("{documents}?id=page/3")).ok()["deleted"], 1);
    post("?on_existing=replace", &json!({ "id": "page/5", "text": text(99) }));
    post("", &json!({ "id": "ü\"\\\u{1}🦀 \u{202e}", "text": text(98) }));
}

/// Returns the answers about every document, without the fields that a load may change.
fn answers(client: &Client, name: &str, ids: &[String]) -> Vec<Value> {
    let base = format!("/v1/collections/{name}");
    ids.iter()
        .enumerate()
        .map(|(n, id)| {
            let mut document = client.post(&format!("{base}/documents/get"), &json!({ "ids": [id] })).ok();
            // Times in memory are rounded, and the rounding depends on when the collection was created. A load gives
            // the documents new numbers.
            if let Some(Value::Object(document)) = document["documents"].get_mut(0) {
                document.retain(|name, _| !["last_seen", "expires", "seq"].contains(&name.as_str()));
            }
            let again = json!({ "id": format!("new/{n}"), "text": text(n as u64) + " last" });
            let check = client.post(&format!("{base}/check?limit=20&with=metadata"), &again).ok();
            json!([document, check])
        })
        .collect()
}

#[test]
fn an_export_a_load_and_an_export_make_equal_files() {
    let dir = dir();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let server = Server::start(&first);
    let client = Client::new(server.url(""));
    let names: Vec<String> = (0..SETTINGS.len()).map(|n| format!("c{n}")).collect();
    for (name, settings) in names.iter().zip(SETTINGS) {
        let settings: Value = serde_json::from_str(settings).unwrap();
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
        fill(&client, name);
    }
    let ids: Vec<String> = (0..20).map(|n| format!("page/{n}")).chain((0..10).map(|n| format!("link/{n}"))).collect();
    let told: Vec<_> = names.iter().map(|name| answers(&client, name, &ids)).collect();
    let described: Vec<Value> = names.iter().map(|name| description(&client, name)).collect();
    server.terminate();

    for name in &names {
        let one = exported(&first, name, &dir.path().join("one.parquet"));
        let file = dir.path().join("one.parquet");
        let loaded = run(&["load", utf8(&file), "--collection", name, "--data-dir", utf8(&second)]);
        assert!(loaded.status.success(), "{loaded:?}");
        assert!(run(&["verify", "--data-dir", utf8(&second), "--collection", name]).status.success());
        let two = exported(&second, name, &dir.path().join("two.parquet"));
        assert!(one == two, "{name}: {} and {} bytes", one.len(), two.len());
    }
    let server = Server::start(&second);
    let client = Client::new(server.url(""));
    for ((name, told), described) in names.iter().zip(told).zip(described) {
        assert_eq!(description(&client, name), described);
        for (before, now) in told.into_iter().zip(answers(&client, name, &ids)) {
            assert_eq!(now, before, "{name}");
        }
    }
}

/// Returns a collection's settings and counts.
fn description(client: &Client, name: &str) -> Value {
    let mut description = client.get(&format!("/v1/collections/{name}")).ok();
    description["created"] = Value::Null;
    description
}

fn exported(data_dir: &Path, name: &str, file: &Path) -> Vec<u8> {
    let arguments = ["export", "--parquet", "--collection", name, "--data-dir", utf8(data_dir), "--output", utf8(file)];
    let output = run(&arguments);
    assert!(output.status.success(), "{output:?}");
    fs::read(file).unwrap()
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}
