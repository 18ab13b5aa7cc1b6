//! Requests for a collection with a damaged file are refused, with the name of the collection. The other collections
//! and the server work normally.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::client::{Client, documents, words};
use crate::support::library;
use crate::support::server::Server;

const NAMES: [&str; 2] = ["default", "news"];

/// Makes a data directory with a few documents in two collections.
fn filled(data: &Path) {
    let server = Server::start(data);
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/news", &json!({"keep": "text"})).status, 201);
    for name in NAMES {
        for n in 0..20 {
            client.post(&documents(name), &json!({"id": format!("id{n}"), "text": words(n)})).ok();
        }
    }
    assert!(server.terminate().success());
}

pub(crate) fn file(data: &Path, name: &str) -> PathBuf {
    data.join("collections").join(format!("{name}.sqlite"))
}

/// Flips a bit at every place with these bytes. There may be several places, because SQLite leaves unused copies when
/// it moves data within the file.
pub(crate) fn spoil(path: &Path, bytes: &[u8]) {
    let content = fs::read(path).unwrap();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let places = content.windows(bytes.len()).enumerate().filter(|(_, window)| *window == bytes);
    let spoiled = places.map(|(at, _)| file.write_all_at(&[content[at] ^ 1], at as u64).unwrap()).count();
    assert!(spoiled > 0, "the bytes are not in the file");
}

/// Damages a byte of the first signature, which is read at the start.
fn spoil_a_signature(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).unwrap();
    let (seq, bytes) = connection
        .query_row("SELECT seq, bytes FROM signature ORDER BY seq LIMIT 1", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .unwrap();
    drop(connection);
    spoil(path, &bytes[..32]);
    seq
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn a_damaged_collection_leaves_the_others_alone() {
    for (damaged, other) in [("default", "news"), ("news", "default")] {
        let dir = library::dir();
        let data = dir.path().join("data");
        filled(&data);
        let seq = spoil_a_signature(&file(&data, damaged));

        let server = Server::start(&data);
        let client = Client::new(server.url(""));
        for _ in 0..2 {
            let check = client.post(&format!("/v1/collections/{damaged}/check"), &json!({"text": words(3)}));
            let problem = check.problem(500, "collection_damaged");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(damaged) && detail.contains(&format!("record {seq}")), "{detail}");
        }
        client.get(&format!("/v1/collections/{damaged}")).problem(500, "collection_damaged");
        let same = json!({"keep": if damaged == "news" { "text" } else { "signature" }});
        client.json("PUT", &format!("/v1/collections/{damaged}"), &same).problem(500, "collection_damaged");

        let found = client.post(&format!("/v1/collections/{other}/check"), &json!({"text": words(3)})).ok();
        assert_eq!(found["duplicate_of"], "id3");
        client.post(&documents(other), &json!({"id": "new", "text": words(99)})).ok();

        let list = client.get("/v1/collections").ok();
        assert_eq!((names(&list["collections"]), names(&list["damaged"])), (vec![other], vec![damaged]));
        assert_eq!(client.get("/readyz").ok(), json!({"status": "ready", "damaged": 1, "writable": true}));
        let metrics = client.get("/metrics").text();
        for (name, value) in [(damaged, 1), (other, 0)] {
            let line = format!("hapax_collection_damaged{{collection=\"{name}\"}} {value}\n");
            assert!(metrics.contains(&line), "{line} is not there");
        }
        assert!(server.log_tail().contains("damaged and is not served"), "{}", server.log_tail());

        if damaged != "default" {
            let dropped = format!("/v1/collections/{damaged}?confirm={damaged}");
            client.delete(&dropped).ok();
            assert_eq!(client.get("/readyz").ok(), json!({"status": "ready", "writable": true}));
            assert_eq!(client.json("PUT", &format!("/v1/collections/{damaged}"), &json!({})).status, 201);
        }
        assert!(server.terminate().success());
    }
}

#[test]
fn a_file_that_is_no_database_is_a_damaged_collection() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    fs::write(file(&data, "default"), "").unwrap();
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let problem = client.get("/v1/collections/default").problem(500, "collection_damaged");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`default`") && !detail.contains('/'), "{detail}");
    let found = client.post("/v1/collections/news/check", &json!({"text": words(3)})).ok();
    assert_eq!(found["duplicate_of"], "id3");
    assert!(server.terminate().success());
}

/// Damage in data that is not read at the start is found when this data is read, and only that record is refused.
#[test]
fn a_damaged_record_is_refused_by_its_number_and_no_other() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    spoil(&file(&data, "default"), b"id7");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let of = |id: &str| client.get(&format!("{}?id={id}", documents("default")));
    let problem = of("id7").problem(500, "collection_damaged");
    assert!(problem["detail"].as_str().unwrap().contains("record 8"), "{problem}");
    assert_eq!(of("id8").ok()["id"], "id8");
    let check = client.post("/v1/collections/default/check", &json!({"text": words(9)})).ok();
    assert_eq!(check["duplicate_of"], "id9");
    assert!(server.terminate().success());
}

#[test]
fn a_damaged_text_is_not_given_back() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let path = file(&data, "news");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
    let bytes = connection.query_row("SELECT bytes FROM payload WHERE seq = 8", [], read).unwrap();
    drop(connection);
    spoil(&path, &bytes);
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let of = |id: &str, with: &str| client.get(&format!("{}?id={id}&with={with}", documents("news")));
    let problem = of("id7", "text").problem(500, "collection_damaged");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("record 8") && !detail.contains("w7x"), "{problem}");
    assert_eq!(
        (of("id8", "text").ok()["text"].clone(), of("id7", "none").ok()["id"].clone()),
        (json!(words(8)), json!("id7"))
    );
    assert!(server.terminate().success());
}

/// In an earlier version, the deletion of a damaged document disabled all writes to its collection, and did so again
/// after each restart.
#[test]
fn a_document_with_a_damaged_text_can_be_deleted_and_writes_go_on() {
    let dir = library::dir();
    let data = dir.path().join("data");
    filled(&data);
    let connection = rusqlite::Connection::open(file(&data, "news")).unwrap();
    assert_eq!(connection.execute("DELETE FROM payload WHERE seq = 8", []).unwrap(), 1);
    drop(connection);
    for restart in 0..2 {
        let server = Server::start(&data);
        let client = Client::new(server.url(""));
        if restart == 0 {
            assert_eq!(client.delete(&format!("{}?id=id7", documents("news"))).ok()["deleted"], 1);
            assert!(server.log_tail().contains("a row of a removed document"), "{}", server.log_tail());
        }
        let new = json!({"id": format!("new{restart}"), "text": words(50 + restart)});
        client.post(&documents("news"), &new).ok();
        assert_eq!(client.get(&format!("{}?id=id7", documents("news"))).status, 404);
        assert!(server.terminate().success());
    }
}
