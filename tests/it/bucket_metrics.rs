//! The metrics of buckets count documents, and weigh buckets by the documents that fall into them.

use std::time::{Duration, Instant};

use hapax::telemetry::names;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::Starting;

const BANDS: usize = 21;
const ROWS: usize = 6;
/// Documents that share the rows of the first band.
const BOILERPLATE: u64 = 500;
const OTHERS: u64 = 700;
const COPIES: u64 = 40;
const DOCUMENTS: &str = "/v1/collections/c/batch?on_duplicate=store";
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns a signature that differs from all others, except in the first band if it is boilerplate.
fn signature(number: u64, boilerplate: bool) -> String {
    use base64::Engine;
    let mut words = hapax_core::SplitMix64::new(number);
    let mut bytes: Vec<u8> = (0..128 / 8).flat_map(|_| words.next_u64().to_le_bytes()).collect();
    if boilerplate {
        bytes[..ROWS].fill(7);
    }
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn store(client: &Client, signatures: impl Iterator<Item = (String, String)>) {
    let documents: Vec<Value> = signatures.map(|(id, signature)| json!({"id": id, "signature": signature})).collect();
    for documents in documents.chunks(100) {
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

/// Waits until the survey has seen what was stored: the largest bucket, and the others.
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
    let spec = json!({"spec": "external:test:128x8", "banding": {"bands": BANDS, "rows": ROWS}});
    assert_eq!(client.json("PUT", "/v1/collections/c", &spec).status, 201);
    expect_none(&client);

    // Copies share postings, and each of them counts.
    store(&client, (0..COPIES).map(|copy| (format!("copy {copy}"), signature(u64::MAX, false))));
    expect(&client, COPIES, (COPIES, COPIES, 0));
    store(&client, (0..OTHERS).map(|other| (format!("other {other}"), signature(1_000_000 + other, false))));
    expect(&client, COPIES, (1, COPIES, 0));
    store(&client, (0..BOILERPLATE).map(|page| (format!("page {page}"), signature(page, true))));
    expect(&client, BOILERPLATE, (1, BOILERPLATE, 1));
    store(&client, (0..20).map(|copy| (format!("copy of a page {copy}"), signature(7, true))));
    expect(&client, BOILERPLATE + 20, (1, BOILERPLATE + 20, 1));

    assert!(metric(&client, names::CANARY_DOCUMENTS) >= COPIES + OTHERS + BOILERPLATE + 20);
    assert_eq!(metric(&client, names::CANARY_LOST), 0);

    // A lookup that meets the bucket says how many documents are in it, and that it reads a part only.
    let [before, bounded] = ["hapax_bucket_documents_sum", names::LOOKUPS_BOUNDED].map(|name| metric(&client, name));
    let check = |number| client.post("/v1/collections/c/check", &json!({"signature": signature(number, true)})).ok();
    assert_eq!(check(7)["verdict"], "near_duplicate");
    assert_eq!(metric(&client, "hapax_bucket_documents_sum") - before, BOILERPLATE + 20);
    assert_eq!(check(u64::MAX - 1)["complete"], false);
    assert_eq!(metric(&client, names::LOOKUPS_BOUNDED) - bounded, 2);

    let ids: Vec<String> = (0..BOILERPLATE).map(|page| format!("page {page}")).collect();
    client.post("/v1/collections/c/documents/delete", &json!({"ids": ids})).ok();
    expect(&client, COPIES, (1, COPIES, 0));
}

/// The series of a collection that nobody has used are there.
fn expect_none(client: &Client) {
    let gauges = [names::BUCKET_DOCUMENTS_LARGEST, names::BUCKET_DOCUMENTS_P99, names::LOOKUPS_BOUNDED];
    assert_eq!(gauges.map(|gauge| metric(client, gauge)), [0, 0, 0]);
}
