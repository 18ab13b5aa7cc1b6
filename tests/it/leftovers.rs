//! If a crash interrupts the creation or the drop of a collection, its leftovers are removed at the next start, and the
//! log names them. Nothing else is removed: files that hapax did not write stay, and the log says so.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::client::{Client, words};
use crate::support::library::dir;
use crate::support::local::Setup;
use crate::support::server::Server;

const GONE: &str = "removed leftovers of an unfinished create or drop";
const STRANGER: &str = "ignoring a path that is not a collection";

/// Counts the log lines that begin with `message` and are about `path`.
fn logged(data: &Path, message: &str, path: &Path) -> usize {
    let log = fs::read_to_string(data.with_extension("log")).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let said = lines.filter(|line| {
        line["message"].as_str().is_some_and(|said| said.starts_with(message)) && line["path"] == path.to_str().unwrap()
    });
    said.inspect(|line| assert_eq!(line["level"], "WARN")).count()
}

fn insert(client: &Client, collection: &str, number: u64) {
    let document = json!({ "id": format!("doc-{number}"), "text": words(number) });
    let verdict = client.post(&format!("/v1/collections/{collection}/documents"), &document).ok();
    assert_eq!(verdict["stored"], true, "{verdict}");
}

/// Makes a data directory with `default`, `pages` and `gone`, with one document each. The server was killed, so the
/// write-ahead logs still exist.
fn killed(data: &Path) {
    let server = Server::start(data);
    let client = Client::new(server.url(""));
    for (number, collection) in ["default", "pages", "gone"].into_iter().enumerate() {
        if collection != "default" {
            assert_eq!(client.json("PUT", &format!("/v1/collections/{collection}"), &json!({})).status, 201);
        }
        insert(&client, collection, number as u64);
    }
    server.kill();
}

fn names(client: &Client) -> Vec<String> {
    let listed = client.get("/v1/collections").ok();
    let name = |collection: &Value| collection["name"].as_str().unwrap().to_owned();
    listed["collections"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_half_made_collection_is_removed() {
    let parent = dir();
    let data = parent.path().join("data");
    killed(&data);
    let collections = data.join("collections");
    let whole = fs::read(collections.join("pages.sqlite")).unwrap();
    for (name, bytes) in [("half", &whole[..whole.len() / 2]), ("nothing", &[]), ("all", &whole[..])] {
        fs::write(collections.join(format!("{name}.sqlite.creating")), bytes).unwrap();
        for companion in ["-journal", "-wal"] {
            fs::write(collections.join(format!("{name}.sqlite.creating{companion}")), b"half").unwrap();
        }
    }
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(names(&client), ["default", "gone", "pages"]);
    for name in ["half", "nothing", "all"] {
        let path = collections.join(format!("{name}.sqlite.creating"));
        assert_eq!(logged(&data, GONE, &path), 1, "{}", server.log_tail());
        assert!(!path.exists());
        assert!(!collections.join(format!("{name}.sqlite.creating-journal")).exists());
        assert!(!collections.join(format!("{name}.sqlite.creating-wal")).exists());
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201, "the name is free");
    }
    assert_eq!(client.get("/v1/collections/pages/documents?id=doc-1").status, 200);
}

#[test]
fn a_half_dropped_collection_is_removed() {
    let parent = dir();
    let data = parent.path().join("data");
    killed(&data);
    // After the first step of a drop, the collection is gone, but its log still exists.
    let (file, dropped) = (data.join("collections/gone.sqlite"), data.join("collections/gone.sqlite.dropped"));
    let log = data.join("collections/gone.sqlite-wal");
    fs::rename(&file, &dropped).unwrap();
    assert!(log.exists());
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(logged(&data, GONE, &dropped), 1, "{}", server.log_tail());
    assert!(!dropped.exists() && !log.exists());
    assert_eq!(names(&client), ["default", "pages"]);
    // A new collection with this name does not get the log of the old one.
    assert_eq!(client.json("PUT", "/v1/collections/gone", &json!({})).status, 201);
    let listed = client.get("/v1/collections/gone/documents").ok();
    assert_eq!(listed["documents"], json!([]));
}

#[test]
fn what_a_stranger_put_there_stays_and_is_named() {
    let parent = dir();
    let data = parent.path().join("data");
    killed(&data);
    let collections = data.join("collections");
    let strangers = [
        "notes.txt",
        "notes.creating",
        "Not A Name.sqlite.creating",
        "pages.sqlite.bak",
        "orphan.sqlite-wal",
        "thesis.sqlite.dropped.txt",
    ];
    for name in strangers {
        fs::write(collections.join(name), "mine").unwrap();
    }
    fs::create_dir(collections.join("lost+found")).unwrap();
    let beside = data.join("README");
    fs::write(&beside, "mine").unwrap();
    let server = Server::start(&data);
    for name in strangers {
        assert_eq!(fs::read(collections.join(name)).unwrap(), b"mine");
    }
    for name in strangers.into_iter().chain(["lost+found"]) {
        assert_eq!(logged(&data, STRANGER, &collections.join(name)), 1, "{name}; {}", server.log_tail());
    }
    assert_eq!(fs::read(&beside).unwrap(), b"mine");
    let log = fs::read_to_string(data.with_extension("log")).unwrap();
    assert_eq!(log.matches(STRANGER).count(), strangers.len() + 1, "{log}");
    assert!(!log.contains(GONE), "{log}");
    let client = Client::new(server.url(""));
    assert_eq!(names(&client), ["default", "gone", "pages"]);
    for (number, collection) in ["default", "pages", "gone"].into_iter().enumerate() {
        let found = client.post(&format!("/v1/collections/{collection}/check"), &json!({"text": words(number as u64)}));
        assert_eq!(found.ok()["verdict"], "exact_duplicate");
    }
}

#[test]
fn nothing_that_needs_a_collection_is_answered_before_the_boot_is_complete() {
    let dir = dir();
    let server = Setup { boots: false, ..Setup::new(&dir) }.start();
    let client = Client::of(&server);
    let (document, ids) = (json!({ "id": "a", "text": "x" }), json!({ "ids": ["a"] }));
    let base = "/v1/collections/default";
    for (path, body) in [
        ("check", document.clone()),
        ("documents", document.clone()),
        ("documents/get", ids.clone()),
        ("documents/delete", ids),
        ("batch", json!({ "op": "check", "documents": [{ "text": "x" }] })),
        ("compare", json!({ "a": { "text": "x" }, "b": { "id": "a" } })),
    ] {
        client.post(&format!("{base}/{path}"), &body).problem(503, "starting");
    }
    for target in ["/documents", "/documents?id=a", "/clusters", "/buckets", ""] {
        client.get(&format!("{base}{target}")).problem(503, "starting");
    }
    client.get("/v1/collections").problem(503, "starting");
    client.json("PUT", "/v1/collections/new", &json!({})).problem(503, "starting");
    client.json("PATCH", base, &json!({ "threshold": 0.9 })).problem(503, "starting");
    client.delete(&format!("{base}/documents?id=a")).problem(503, "starting");
    client.delete("/v1/collections/new?confirm=new").problem(503, "starting");
    let bulk =
        client.send("POST", &format!("{base}/bulk?op=check"), &[("content-type", "application/x-ndjson")], b"{}\n");
    bulk.problem(503, "starting");
    client.get("/readyz").problem(503, "starting");
}
