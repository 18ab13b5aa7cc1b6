//! If very many documents share boilerplate, a lookup reads a bounded part of their bucket, and its verdict says so.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};
use crate::support::signatures::{BANDS, boilerplate, document, settings};

/// The number of documents that share the rows of the first band.
const BOILERPLATE: usize = 500;
const READ_MAX: usize = 64;

/// Makes a collection of given signatures that all share a band.
fn filled(server: &Local) -> Client {
    let client = Client::of(server);
    assert_eq!(client.json("PUT", "/v1/collections/c", &settings()).status, 201);
    for first in (0..BOILERPLATE).step_by(100) {
        let documents: Vec<Value> = (first..first + 100)
            .map(|number| document(&format!("page {number}"), &boilerplate(number as u64)))
            .collect();
        let batch = client.post("/v1/collections/c/batch", &json!({"op": "insert", "documents": documents})).json();
        assert_eq!(batch["summary"]["unique"], 100, "{batch}");
    }
    client
}

fn server(dir: &Dir) -> Local {
    let mut setup = Setup::new(dir);
    setup.collections.limits.bucket_read_max = READ_MAX;
    setup.start()
}

#[test]
fn a_hot_bucket_is_read_in_part_and_the_verdict_says_so() {
    let dir = dir();
    let server = server(&dir);
    let client = filled(&server);
    let check = |number: u64| {
        let body = json!({"signature": document("", &boilerplate(number))["signature"]});
        client.post("/v1/collections/c/check", &body).json()
    };
    // This page is new and has the same boilerplate.
    let new = check(u64::MAX);
    assert_eq!((&new["verdict"], &new["complete"]), (&json!("unique"), &json!(false)));
    assert_eq!(new["candidates"], READ_MAX);
    assert_eq!(new["unread"], BOILERPLATE - READ_MAX);
    // A stored page is found by its other bands, even if this bucket is not read completely.
    for number in [0, 123, BOILERPLATE as u64 - 1] {
        let known = check(number);
        assert_eq!(known["duplicate_of"], format!("page {number}"), "{known}");
    }
    // If a lookup can read all remaining documents, none is unread.
    let ids: Vec<String> = (READ_MAX..BOILERPLATE).map(|number| format!("page {number}")).collect();
    let deleted = client.post("/v1/collections/c/documents/delete", &json!({"ids": ids})).json();
    assert_eq!(deleted["deleted"], BOILERPLATE - READ_MAX);
    // The postings of deleted documents are removed soon afterwards, when no reader can need them.
    let since = Instant::now();
    let left = loop {
        let left = check(u64::MAX);
        if left["complete"] == true {
            break left;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "postings of deleted documents are gone in the end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(left["candidates"], READ_MAX);
    assert!(left.get("unread").is_none());
}

#[test]
fn the_fullest_buckets_are_listed() {
    let dir = dir();
    let server = server(&dir);
    let client = filled(&server);
    let buckets = client.get("/v1/collections/c/buckets?limit=1").json();
    let hottest = &buckets["buckets"][0];
    assert_eq!((&hottest["band"], &hottest["documents"]), (&json!(0), &json!(BOILERPLATE)));
    assert_eq!(hottest["key"].as_str().unwrap().len(), 16);
    let sample = hottest["sample"].as_array().unwrap();
    assert_eq!(sample.len(), 10);
    assert!(sample.iter().all(|id| id.as_str().unwrap().starts_with("page ")));
    assert_eq!(client.get("/v1/collections/c/buckets?limit=0").status, 422);
    assert_eq!(client.get("/v1/collections/none/buckets").status, 404);
}

/// Documents with equal signatures share one posting, and are one candidate. In an earlier version, a lookup read only
/// a part of the bucket. It listed 65 of 300 copies, and said that it was not complete.
#[test]
fn equal_documents_are_all_counted_and_listed() {
    let dir = dir();
    let server = server(&dir);
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/c", &settings()).status, 201);
    let documents: Vec<Value> = (0..300).map(|number| document(&format!("copy {number}"), &boilerplate(1))).collect();
    let body = json!({"op": "insert", "documents": documents});
    client.post("/v1/collections/c/batch?on_duplicate=store", &body);
    let verdict = client.post("/v1/collections/c/check", &json!({"signature": documents[0]["signature"]})).json();
    assert_eq!((&verdict["duplicate_of"], &verdict["similarity"]), (&json!("copy 0"), &json!(1.0)));
    assert_eq!((&verdict["candidates"], &verdict["complete"]), (&json!(1), &json!(true)), "{verdict}");
    let all =
        client.post("/v1/collections/c/check?limit=1000", &json!({"signature": documents[0]["signature"]})).json();
    let listed: Vec<&str> =
        all["matches"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap()).collect();
    let copies: Vec<String> = (0..300).map(|number| format!("copy {number}")).collect();
    assert_eq!((listed, &all["complete"]), (copies.iter().map(String::as_str).collect(), &json!(true)));
    let buckets = client.get("/v1/collections/c/buckets?limit=100").json();
    let buckets = buckets["buckets"].as_array().unwrap();
    assert_eq!(buckets.len(), BANDS);
    assert!(buckets.iter().all(|bucket| bucket["documents"] == 300));
}
