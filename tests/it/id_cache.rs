//! The cache of ids: answers name the same documents with and without the cache. Metrics count the ids that were in it.

use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::server::Starting;

/// The number of documents. A collection keeps only the records of the newest documents in memory, which are fewer.
const DOCUMENTS_STORED: u64 = 1500;

struct Server {
    server: crate::support::server::Server,
    client: Client,
}

impl Server {
    fn start(data: &std::path::Path, bytes_max: u64) -> Self {
        let bytes_max = bytes_max.to_string();
        let server = Starting::spawn_with(data, &[], &[("HAPAX__MEMORY__ID_CACHE_BYTES_MAX", &*bytes_max)]).ready();
        let client = Client::new(server.url(""));
        Self { server, client }
    }

    fn fill(&self) {
        let line =
            |number| json!({"id": id(number), "text": words(number), "metadata": {"n": number}}).to_string() + "\n";
        let lines: String = (0..DOCUMENTS_STORED).map(line).collect();
        self.client.bulk("op=insert", &lines);
        // The commit of this insert drops the oldest of the records that are in memory.
        self.insert("last", DOCUMENTS_STORED, "");
    }

    fn insert(&self, id: &str, number: u64, query: &str) -> Value {
        self.client.post(&format!("{DOCUMENTS}{query}"), &json!({"id": id, "text": words(number)})).ok()
    }

    fn check(&self, number: u64, query: &str) -> Value {
        self.client.post(&format!("{CHECK}{query}"), &json!({"text": words(number)})).ok()
    }

    /// Returns how many ids were in memory, and how many were not.
    fn lookups(&self) -> (u64, u64) {
        let text = self.client.get("/metrics").text();
        let value = |result: &str| {
            let series = format!("hapax_id_cache_lookups_total{{collection=\"default\",result=\"{result}\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&series)).expect("the series");
            value.parse().expect("a number")
        };
        (value("hit"), value("miss"))
    }
}

fn id(number: u64) -> String {
    format!("page {number}")
}

fn named(verdict: &Value) -> Vec<&str> {
    verdict["matches"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap()).collect()
}

#[test]
fn ids_are_in_memory_once_they_are_stored_or_read() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), 1 << 20);
    server.fill();
    assert_eq!(named(&server.check(3, "")), [id(3)]);
    assert_eq!(server.lookups(), (1, 0));
    // Metadata is on disk, whether or not the id is in memory.
    assert_eq!(server.check(4, "?with=metadata")["matches"][0]["metadata"], json!({"n": 4}));
    assert_eq!(server.lookups(), (1, 0));
    let before = server.check(5, "");
    assert!(server.server.terminate().success());

    let server = Server::start(dir.path(), 1 << 20);
    for (lookups, number) in [((0, 1), 5), ((1, 1), 5), ((1, 2), 6), ((2, 2), 6), ((3, 2), 5)] {
        assert_eq!(named(&server.check(number, "")), [id(number)]);
        assert_eq!(server.lookups(), lookups);
    }
    let after = server.check(5, "");
    assert_eq!((&after["matches"], &after["verdict"]), (&before["matches"], &before["verdict"]));
}

#[test]
fn without_bytes_all_ids_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), 0);
    server.fill();
    for missed in 1..4 {
        assert_eq!(named(&server.check(3, "")), [id(3)]);
        assert_eq!(server.lookups(), (0, missed));
    }
}

/// When the first verdict of a document is repeated, matches that no longer exist are left out, although their ids are
/// in memory.
#[test]
fn documents_that_are_gone_are_not_named() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), 1 << 20);
    server.fill();
    let copy = server.insert("copy", 7, "?on_duplicate=store");
    assert_eq!(named(&copy), [id(7)]);
    let again = server.insert("copy", 7, "?on_duplicate=store");
    assert_eq!((named(&again), again["outcome"].as_str()), (vec![&*id(7)], Some("unchanged")));
    assert_eq!(server.client.send("DELETE", &format!("{DOCUMENTS}?id=page%207"), &[], b"").status, 200);
    let again = server.insert("copy", 7, "?on_duplicate=store");
    assert_eq!((named(&again), again["outcome"].as_str()), (vec![], Some("unchanged")));
    assert_eq!(named(&server.check(7, "")), ["copy"]);
    // The id gets other content.
    server.insert(&id(7), 100_000, "");
    assert_eq!(named(&server.check(7, "")), ["copy"]);
    assert_eq!(named(&server.check(100_000, "")), [id(7)]);
}
