//! The metrics of buckets count documents, and weight each bucket by the number of documents in it.

use std::time::{Duration, Instant};

use hapax::telemetry::names;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::Starting;
use crate::support::signatures::{boilerplate, document, settings, unlike_others};

/// The number of documents that share the rows of the first band.
const BOILERPLATE: u64 = 500;
const OTHERS: u64 = 700;
const COPIES: u64 = 40;
const DOCUMENTS: &str = "/v1/collections/c/batch?on_duplicate=store";
const PATIENCE: Duration = Duration::from_secs(120);

fn store(client: &Client, documents: impl Iterator<Item = Value>) {
    for documents in documents.collect::<Vec<_>>().chunks(100) {
        client.post(DOCUMENTS, &json!({"op": "insert", "documents": documents})).ok();
    }
}

fn metric(client: &Client, name: &str) -> u64 {
    let (text, series) = (client.get("/metrics").text(), format!("{name}{{"));
    let of_c = |line: &&str| {
        let bound = name != names::LOOKUPS_BOUNDED || line.contains("bound=\"bucket\"");
        line.starts_with(&series) && line.contains("collection=\"c\"") && bound
    };
    let line = text.lines().find(of_c).unwrap_or_else(|| panic!("{name} is there"));
    line.rsplit_once(' ').expect("a value").1.parse().expect("a whole number")
}

/// Waits until the survey has counted the stored documents, and its gauges have these values.
fn expect(client: &Client, largest: u64, (p50, p99, over_cap): (u64, u64, u64)) {
    let since = Instant::now();
    let seen = || {
        let gauges = [
            names::BUCKET_DOCUMENTS_LARGEST,
            names::BUCKET_DOCUMENTS_P50,
            names::BUCKET_DOCUMENTS_P99,
            names::BUCKETS_OVER_CAP,
        ];
        gauges.map(|gauge| metric(client, gauge))
    };
    while seen() != [largest, p50, p99, over_cap] {
        assert!(since.elapsed() < PATIENCE, "{:?}, not {:?}", seen(), [largest, p50, p99, over_cap]);
        std::thread::sleep(Duration::from_millis(100));
    }
    let listed = client.get("/v1/collections/c/buckets?limit=1").json();
    assert_eq!(listed["buckets"][0]["documents"], largest, "the list says the same: {listed}");
}

#[test]
fn buckets_are_measured_in_documents() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let server = Starting::spawn_with(dir.path(), &[], &[("HAPAX__LIMITS__BUCKET_READ_MAX", "64")]).ready();
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/c", &settings()).status, 201);
    expect_none(&client);

    // Copies share postings, but each copy counts.
    store(&client, (0..COPIES).map(|copy| document(&format!("copy {copy}"), &unlike_others(u64::MAX))));
    expect(&client, COPIES, (COPIES, COPIES, 0));
    store(&client, (0..OTHERS).map(|other| document(&format!("other {other}"), &unlike_others(1_000_000 + other))));
    expect(&client, COPIES, (1, COPIES, 0));
    store(&client, (0..BOILERPLATE).map(|page| document(&format!("page {page}"), &boilerplate(page))));
    expect(&client, BOILERPLATE, (1, BOILERPLATE, 1));
    store(&client, (0..20).map(|copy| document(&format!("copy of a page {copy}"), &boilerplate(7))));
    expect(&client, BOILERPLATE + 20, (1, BOILERPLATE + 20, 1));

    assert!(metric(&client, names::CANARY_DOCUMENTS) >= COPIES + OTHERS + BOILERPLATE + 20);
    assert_eq!(metric(&client, names::CANARY_LOST), 0);

    // A lookup that reads the bucket reports how many documents are in it, and that it reads only some of them.
    let [before, bounded] = ["hapax_bucket_documents_sum", names::LOOKUPS_BOUNDED].map(|name| metric(&client, name));
    let check = |number| client.post("/v1/collections/c/check", &document("new", &boilerplate(number))).ok();
    assert_eq!(check(7)["verdict"], "near_duplicate");
    assert_eq!(metric(&client, "hapax_bucket_documents_sum") - before, BOILERPLATE + 20);
    assert_eq!(check(u64::MAX - 1)["complete"], false);
    assert_eq!(metric(&client, names::LOOKUPS_BOUNDED) - bounded, 2);

    let ids: Vec<String> = (0..BOILERPLATE).map(|page| format!("page {page}")).collect();
    client.post("/v1/collections/c/documents/delete", &json!({"ids": ids})).ok();
    expect(&client, COPIES, (1, COPIES, 0));
}

/// A collection has its series before its first document is stored.
fn expect_none(client: &Client) {
    let gauges = [names::BUCKET_DOCUMENTS_LARGEST, names::BUCKET_DOCUMENTS_P99, names::LOOKUPS_BOUNDED];
    assert_eq!(gauges.map(|gauge| metric(client, gauge)), [0, 0, 0]);
}
