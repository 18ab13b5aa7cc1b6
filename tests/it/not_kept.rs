//! `data.store = "memory"`: documents are stored only in memory. The server works as with a disk until the process
//! ends; then all documents are lost. Collections that are already on disk stay unchanged.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::server::{Server, Starting};

const LOUD: &str = "NOTHING IS KEPT";

fn start(data: &Path) -> Server {
    Starting::spawn_with(data, &[], &[("HAPAX__DATA__STORE", "memory")]).ready()
}

fn insert(server: &Server, number: u64) {
    let document = json!({ "id": format!("doc-{number}"), "text": words(number) });
    let verdict = Client::new(server.url("")).post("/v1/collections/default/documents", &document).ok();
    assert_eq!(verdict["outcome"], "inserted", "{verdict}");
}

fn verdict(server: &Server, number: u64) -> String {
    let found = Client::new(server.url("")).post("/v1/collections/default/check", &json!({ "text": words(number) }));
    found.ok()["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_store_in_memory_says_so_and_keeps_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let server = start(&data);
    assert!(server.log_tail().contains(LOUD), "{}", server.log_tail());
    for number in 0..20 {
        insert(&server, number);
    }
    assert_eq!(Client::new(server.url("")).json("PUT", "/v1/collections/pages", &json!({})).status, 201);
    assert_eq!(verdict(&server, 7), "exact_duplicate");
    assert!(server.terminate().success());
    assert!(!data.join("collections.memory").exists());
    let server = start(&data);
    assert_eq!(server.documents(), 0);
    assert_eq!(verdict(&server, 7), "unique");
}

#[test]
fn it_leaves_alone_what_is_on_disk_and_goes_without_a_trace() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let on_disk = Server::start(&data);
    insert(&on_disk, 1);
    assert!(on_disk.terminate().success());
    let file = data.join("collections/default.sqlite");
    let before = fs::read(&file).unwrap();

    let in_memory = start(&data);
    assert_eq!((in_memory.documents(), &*verdict(&in_memory, 1)), (0, "unique"));
    insert(&in_memory, 2);
    let left = data.join("collections.memory");
    assert!(left.exists());
    in_memory.kill();
    assert_eq!(fs::read(&file).unwrap(), before);

    let on_disk = Server::start(&data);
    assert_eq!(on_disk.documents(), 1);
    assert_eq!([verdict(&on_disk, 1), verdict(&on_disk, 2)], ["exact_duplicate", "unique"]);
    assert!(!left.exists());
    assert!(on_disk.log_tail().contains(left.to_str().unwrap()), "{}", on_disk.log_tail());
}
