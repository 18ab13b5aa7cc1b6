//! `POST .../load` loads a collection completely or not at all. Loads run one at a time, and only for keys that may
//! load.

use std::cell::Cell;
use std::io::Write as _;
use std::time::Duration;

use arrow_array::StringArray;
use serde_json::json;

use super::table::Table;
use super::text;
use crate::keys;
use crate::support::client::{Client, Raw};
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::local::Setup;
use crate::support::server::{Server, Starting};
use crate::support::until::until;

const PARQUET: (&str, &str) = ("content-type", "application/vnd.apache.parquet");

fn hundred() -> Vec<u8> {
    Table::of((0..100).map(|n| (format!("page/{n}"), text(n)))).bytes()
}

#[test]
fn a_loaded_collection_answers_at_once_and_after_a_restart() {
    let dir = dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("file.parquet"));
    std::fs::write(&file, hundred()).unwrap();
    let server = Server::start(&data);
    let url = server.url("");
    let output = run(&["load", file.to_str().unwrap(), "--collection", "hundred", "--server", &url]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("loaded collection `hundred`: 100 documents"));
    let unchanged = |client: &Client| {
        let document = json!({ "id": "page/7", "text": text(7) });
        assert_eq!(client.post("/v1/collections/hundred/documents", &document).ok()["outcome"], "unchanged");
    };
    let client = Client::new(url);
    unchanged(&client);
    let again = client.send("POST", "/v1/collections/hundred/load", &[PARQUET], &hundred());
    again.problem(409, "collection_exists");
    server.kill();
    let server = Server::start(&data);
    unchanged(&Client::new(server.url("")));
}

#[test]
fn several_files_are_sent_as_one() {
    let dir = dir();
    for part in 0..3_u64 {
        let rows = (0..1000).map(|n| (format!("page/{part}/{n}"), text(part * 1000 + n)));
        Table::of(rows).write(&dir.path().join(format!("part-{part}.parquet")));
    }
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let pattern = dir.path().join("part-*.parquet");
    let load = || run(&["load", pattern.to_str().unwrap(), "--collection", "all", "--server", &url]);
    let output = load();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("loaded collection `all`: 3,000 documents"));
    let client = Client::new(url.clone());
    for (id, number) in [("page/0/7", 7), ("page/2/999", 2999)] {
        let again = client.post("/v1/collections/all/documents", &json!({ "id": id, "text": text(number) })).ok();
        assert_eq!(again["outcome"], "unchanged");
    }
    let refused = load();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("collection `all` exists"));
    let mut external = Table::of([("x".to_owned(), text(9))]);
    external.metadata.insert("hapax.spec".to_owned(), "hapax1;external:ours:128x16".to_owned());
    let fingerprint = hapax_core::Spec::parse("hapax1;external:ours:128x16").unwrap().fingerprint();
    external.metadata.insert("hapax.fingerprint".to_owned(), fingerprint.to_string());
    external.write(&dir.path().join("part-3.parquet"));
    let refused = run(&["load", pattern.to_str().unwrap(), "--collection", "more", "--server", &url]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("part-3.parquet: its spec or its settings are not those of"), "{said}");
    let links = StringArray::from(vec![None::<&str>; 1]);
    let other = Table::of([("x".to_owned(), text(9))]).with("representative", links);
    other.write(&dir.path().join("part-3.parquet"));
    let refused = run(&["load", pattern.to_str().unwrap(), "--collection", "more", "--server", &url]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("part-3.parquet: its columns, or their types, are not those of the first file"), "{said}");
}

#[test]
fn a_wrong_body_is_refused_and_leaves_nothing() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.load_body_bytes_max = 100_000).start();
    let client = Client::of(&server);
    let load = |headers: &[(&str, &str)], body: &[u8]| client.send("POST", "/v1/collections/new/load", headers, body);
    load(&[PARQUET], b"PAR1").problem(400, "malformed_body");
    load(&[PARQUET], b"").problem(400, "malformed_body");
    load(&[("content-type", "application/json")], b"{}").problem(415, "unsupported_media_type");
    load(&[PARQUET], &vec![0; 100_001]).problem(413, "too_large");
    let twice = Table::of([0, 0].map(|n| ("same".to_owned(), text(n))));
    let problem = load(&[PARQUET], &twice.bytes()).problem(422, "invalid_value");
    assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("row 1, column `id`"), "{problem}");
    client.get("/v1/collections/new").problem(404, "collection_not_found");
    assert_eq!(load(&[PARQUET], &hundred()).status, 201);
}

#[test]
fn a_load_that_does_not_fit_into_memory_leaves_nothing() {
    let dir = dir();
    let mut setup = Setup::new(&dir);
    setup.collections.memory.index_bytes_max = Some(10_000);
    let server = setup.start();
    let client = Client::of(&server);
    let answer = client.send("POST", "/v1/collections/new/load", &[PARQUET], &hundred());
    let problem = answer.problem(507, "memory_budget_reached");
    assert!(problem["detail"].as_str().unwrap().contains("`limits.memory_max_bytes`"), "{problem}");
    client.get("/v1/collections/new").problem(404, "collection_not_found");
}

#[test]
fn one_collection_is_loaded_at_a_time_and_a_client_that_leaves_makes_room() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let client = Client::of(&server);
    let body = hundred();
    let begin = || {
        let mut slow = Raw::connect(server.address);
        slow.send(
            "POST /v1/collections/slow/load HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n",
        );
        slow.send(format!("Content-Length: {}\r\n\r\n", body.len()));
        slow.0.write_all(&body[..1000]).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        slow
    };
    let mut slow = begin();
    // Each load needs a new name, because a load that comes before the slow one succeeds.
    let names = Cell::new(0);
    let load = || {
        names.set(names.get() + 1);
        client.send("POST", &format!("/v1/collections/new-{}/load", names.get()), &[PARQUET], &body)
    };
    // The slow load may have been refused, because a load of this test was running. Then it is sent again.
    until("the first load has begun", || {
        let has_begun = load().status == 503;
        if !has_begun {
            slow = begin();
        }
        has_begun
    });
    load().problem(503, "overloaded");
    drop(slow);
    until("the place is free", || load().status == 201);
    client.get("/v1/collections/slow").problem(404, "collection_not_found");
}

#[test]
fn a_load_needs_the_scope_load() {
    let dir = dir();
    let keys_file = keys::file::write(dir.path(), &[("loader", &["load"], ""), ("admin", &["admin", "insert"], "")]);
    let server = Setup { keys_file: Some(keys_file), ..Setup::new(&dir) }.start();
    let load = |key: &str| {
        let client = Client::of(&server).key(key);
        client.send("POST", "/v1/collections/new/load", &[PARQUET], &hundred())
    };
    load("admin").problem(403, "forbidden");
    assert_eq!(load("loader").status, 201);
}

/// A kill at any moment leaves all of the new collection, or nothing.
#[test]
fn a_killed_load_leaves_all_or_nothing() {
    let dir = dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("file.parquet"));
    std::fs::write(&file, Table::of((0..5000).map(|n| (format!("page/{n}"), text(n)))).bytes()).unwrap();
    let (mut whole, mut absent) = (0, 0);
    for life in 0..12_u64 {
        let server = Starting::spawn(&data).ready();
        let name = format!("life-{life}");
        let url = server.url("");
        let arguments = ["load", file.to_str().unwrap(), "--collection", &name, "--server", &url];
        let mut client = crate::support::command::hapax(&arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 * life));
        server.kill();
        let answered = client.wait().unwrap().success();
        let server = Server::start(&data);
        let client = Client::new(server.url(""));
        match client.get(&format!("/v1/collections/{name}")).status {
            404 => {
                assert!(!answered, "an answered load is gone");
                absent += 1;
            }
            _ => {
                let documents = client.get(&format!("/v1/collections/{name}")).ok()["documents"].clone();
                assert_eq!(documents, 5000);
                whole += 1;
            }
        }
        server.terminate();
        for entry in std::fs::read_dir(data.join("collections")).unwrap() {
            let left = entry.unwrap().file_name().into_string().unwrap();
            assert!(!left.contains(".loading") && !left.contains(".spool"), "{left}");
        }
    }
    eprintln!("{whole} loads are whole, {absent} are absent");
    assert!(run(&["verify", "--data-dir", data.to_str().unwrap()]).status.success());
}

/// `--decide` adds rows to a collection that exists, and `--check` looks up the rows of a new one.
#[test]
fn rows_are_decided_on_or_looked_up_on_request() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let (client, file) = (Client::of(&server), dir.path().join("texts.parquet"));
    Table::of([text(0), text(1), text(1)].into_iter().enumerate().map(|(n, text)| (format!("page/{n}"), text)))
        .write(&file);
    let (file, url) = (file.to_str().unwrap(), server.url());
    let load = |options: &[&str]| run(&[&["load", file, "--server", &url], options].concat());

    let output = load(&["--collection", "new", "--check"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.lines().count() == 2 && printed.contains(r#""duplicate_of":"page/2""#), "{printed}");

    let output = load(&["--collection", "default", "--decide"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 2, "a copy is not stored");
    let output = load(&["--collection", "default", "--decide", "--check"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
