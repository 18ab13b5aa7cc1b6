//! Metrics: every named metric exists, and changes when the event that it measures happens.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hapax::telemetry::names::{self, Kind};
use serde_json::json;
use ureq::Agent;

use crate::support::server::{Server, Starting};

const KEY: &str = "a-key-of-some-length-1";
/// The `authorization` header of every request. A server without a key ignores this header.
const BEARER: &str = "Bearer a-key-of-some-length-1";

struct Scrape(String);

impl Scrape {
    fn of(server: &Server) -> Self {
        let mut answer = agent().get(server.url("/metrics")).header("authorization", BEARER).call().expect("metrics");
        Self(answer.body_mut().with_config().limit(1 << 30).read_to_string().expect("text"))
    }

    /// Returns the sum over all series of a name whose labels contain all of `labels`, such as `op="check"`.
    fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let series = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (of, value) = rest.rsplit_once(' ')?;
            let same = of.is_empty() || of.starts_with('{');
            (same && labels.iter().all(|label| of.contains(label))).then(|| value.parse::<f64>().expect("a number"))
        });
        series.sum()
    }
}

fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent()
}

fn post(server: &Server, path: &str, body: &str) -> u16 {
    let media_type = if path.contains("/bulk") { "application/x-ndjson" } else { "application/json" };
    let mut answer = agent()
        .post(server.url(path))
        .header("authorization", BEARER)
        .content_type(media_type)
        .send(body)
        .expect("an answer");
    // The answer is read to its end, because a bulk answer is made while it is read.
    answer.body_mut().read_to_string().expect("a whole answer");
    answer.status().as_u16()
}

/// Returns 24 words that no other `n` has. The caller chooses the last one.
fn text(n: usize, last: &str) -> String {
    (0..23).map(|place| format!("w{n}x{place} ")).collect::<String>() + last
}

fn document(id: &str, text: &str) -> String {
    json!({ "id": id, "text": text }).to_string()
}

#[test]
fn every_metric_moves() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // A bucket of two documents exceeds the limit on reading, so verdicts are incomplete.
    let bounds = [("HAPAX__LIMITS__BUCKET_READ_MAX", "1"), ("HAPAX__SERVER__ANSWER_BYTES_MAX", "65536")];
    let with_key = [bounds.as_slice(), &[("HAPAX__AUTH__API_KEY", KEY)]].concat();
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &with_key).ready();
    let before = Scrape::of(&server);
    const DOCUMENTS: &str = "/v1/collections/default/documents?on_duplicate=store";
    const CHECK: &str = "/v1/collections/default/check";
    for n in 0..20 {
        assert_eq!(post(&server, DOCUMENTS, &document(&format!("a{n}"), &text(n, "one"))), 200);
        assert_eq!(post(&server, DOCUMENTS, &document(&format!("b{n}"), &text(n, "two"))), 200);
        assert_eq!(post(&server, CHECK, &document("c", &text(n, "two"))), 200);
    }
    assert_eq!(post(&server, CHECK, &document("c", "…")), 200);
    assert_eq!(post(&server, CHECK, "{"), 400);
    // 24,000 words are too long to be signed in one step. The 24 words sent to `oph` below fill few of its 256 slots.
    let long = document("l", &(0..1000).map(|n| text(n, "long ")).collect::<String>());
    assert_eq!(post(&server, CHECK, &long), 200);
    let made =
        agent().put(server.url("/v1/collections/oph")).header("authorization", BEARER).content_type("application/json");
    assert_eq!(made.send(r#"{"sketch":"oph256x8"}"#).expect("an answer").status(), 201);
    assert_eq!(post(&server, "/v1/collections/oph/sign", &document("o", &text(1, "one"))), 200);
    make_exact(&server);
    cut_an_answer(&server);
    let lines = format!("{}\n{{\n", document("d", &text(900, "one")));
    assert_eq!(post(&server, "/v1/collections/default/bulk?op=insert", &lines), 200);
    let after = settled(&server, &before);
    requests_moved(&before, &after);
    verdicts_moved(&before, &after);
    collections_moved(&before, &after);
    every_name_is_described(&after);
    names_and_labels_are_those_of_the_table(&after);
}

/// Returns the first scrape that shows all work. A client receives the last byte of an answer before the server records
/// that the answer was sent. It receives the answer of an insert before the commit buffers are dropped. Background work
/// must also have begun.
fn settled(server: &Server, before: &Scrape) -> Scrape {
    let since = Instant::now();
    loop {
        let scrape = Scrape::of(server);
        let counted = |name: &str, labels: &[&str]| scrape.sum(name, labels) - before.sum(name, labels);
        let settled = counted("hapax_http_request_duration_seconds_count", &["/check\""]) == 24.0
            && scrape.sum(names::COMMIT_PAYLOAD_BYTES, &["exact"]) == 0.0
            && counted("hapax_commit_documents_sum", &["default"]) == 41.0
            && in_normal_use().all(|metric| scrape.0.contains(&format!("# TYPE {} ", metric.name)));
        if settled || since.elapsed() > Duration::from_secs(60) {
            break scrape;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn requests_moved(before: &Scrape, after: &Scrape) {
    let moved = |name: &str, labels: &[&str]| after.sum(name, labels) - before.sum(name, labels);

    let ok = "status=\"200\"";
    assert_eq!(
        moved(names::HTTP_REQUESTS, &["route=\"/v1/collections/{collection}/check\"", "method=\"POST\"", ok]),
        23.0
    );
    assert_eq!(moved(names::HTTP_REQUESTS, &["status=\"400\""]), 1.0);
    let key = ["key=\"api_key\""];
    assert_eq!(moved(names::KEY_DOCUMENTS, &key), 75.0);
    assert!(moved(names::KEY_REQUESTS, &key) >= 64.0 && moved(names::KEY_BYTES, &key) > 100_000.0);
    assert_eq!((after.sum(names::KEY_REFUSED, &key), after.sum(names::KEY_SLOWED, &key)), (0.0, 0.0));
    assert_eq!(moved("hapax_http_request_duration_seconds_count", &["/check\""]), 24.0);
    assert!(after.sum(names::HTTP_REQUESTS_IN_FLIGHT, &[]) >= 1.0, "the scrape itself");
    assert!(after.sum(names::HTTP_CONNECTIONS, &[]) >= 1.0, "the scrape's own");
    assert_eq!(moved(names::HTTP_BULK_LINES, &["kind=\"verdict\""]), 1.0);
    assert_eq!(moved(names::HTTP_BULK_LINES, &["kind=\"error\""]), 1.0);
    assert_eq!(moved(names::HTTP_BULK_LINES, &["kind=\"summary\""]), 1.0);
}

fn verdicts_moved(before: &Scrape, after: &Scrape) {
    let moved = |name: &str, labels: &[&str]| after.sum(name, labels) - before.sum(name, labels);

    let verdicts = |op: &str, verdict: &str| {
        let (op, verdict) = (format!("op=\"{op}\""), format!("verdict=\"{verdict}\""));
        moved(names::VERDICTS, &["collection=\"default\"", &op, &verdict])
    };
    assert_eq!(verdicts("insert", "unique"), 21.0);
    assert_eq!(verdicts("insert", "near_duplicate"), 20.0);
    assert_eq!(verdicts("check", "exact_duplicate"), 20.0);
    assert_eq!(verdicts("check", "empty"), 1.0);
    assert!(moved(names::INCOMPLETE_VERDICTS, &["default"]) >= 1.0);
    assert!(moved(names::VERIFIED_CANDIDATES, &["result=\"match\""]) >= 40.0);
    assert_eq!(moved("hapax_sign_duration_seconds_count", &["sketch=\"fss256x8\""]), 70.0);
    assert_eq!(moved("hapax_oph_empty_slots_ratio_count", &["sketch=\"oph256x8\""]), 1.0);
    assert!((0.9..1.0).contains(&moved("hapax_oph_empty_slots_ratio_sum", &["sketch=\"oph256x8\""])));
    assert!(moved("hapax_cpu_queue_wait_seconds_count", &[]) >= 1.0);
    assert_eq!(after.sum(names::CPU_QUEUE_MAX, &[]), 1024.0);
    assert_eq!(after.sum(names::CPU_QUEUE_DEPTH, &[]), 0.0);
}

fn collections_moved(before: &Scrape, after: &Scrape) {
    let moved = |name: &str, labels: &[&str]| after.sum(name, labels) - before.sum(name, labels);

    for name in [
        "hapax_check_candidates",
        "hapax_probe_duration_seconds",
        "hapax_verify_duration_seconds",
        "hapax_bucket_documents",
    ] {
        assert!(moved(&format!("{name}_count"), &["default"]) >= 60.0, "{name}");
    }
    assert!(moved(names::LOOKUPS_BOUNDED, &["default", "bound=\"bucket\""]) >= 1.0);
    assert_eq!(after.sum(names::DOCUMENTS, &["default"]), 41.0);
    for part in ["postings", "signatures", "ids", "clusters"] {
        assert!(after.sum(names::INDEX_BYTES, &[&format!("part=\"{part}\"")]) > 0.0, "{part}");
    }
    assert!(moved("hapax_decision_duration_seconds_count", &["default"]) >= 41.0);
    assert!((1.0..=41.0).contains(&moved("hapax_commit_duration_seconds_count", &["default"])));
    assert_eq!(moved("hapax_commit_documents_sum", &["default"]), 41.0);
    assert_eq!(after.sum(names::COMMIT_QUEUE_MAX, &["default"]), 8192.0);
    assert_eq!(after.sum("hapax_exact_compared_count", &["exact"]), 2.0, "the second with the first");
    assert_eq!(after.sum("hapax_exact_compared_sum", &["exact"]), 1.0);
    assert_eq!(after.sum(names::EXACT_READ_BYTES, &["exact"]), 0.0, "it was still in memory");
    assert_eq!(after.sum(names::COMMIT_PAYLOAD_BYTES, &["exact"]), 0.0);
    assert_eq!(after.sum(names::COMMIT_PAYLOAD_BYTES_MAX, &["exact"]), f64::from(256 << 20));
    assert_eq!(after.sum(names::BOOT_PROGRESS, &[]), 1.0);
    assert_eq!(after.sum(names::BUILD_INFO, &[concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")]), 1.0);
    assert!(after.sum("process_resident_memory_bytes", &[]) > 1e6);
}

/// Stores equal documents with more metadata than fits into one answer.
fn cut_an_answer(server: &Server) {
    let made =
        agent().put(server.url("/v1/collections/cut")).header("authorization", BEARER).content_type("application/json");
    assert_eq!(made.send("{}").expect("an answer").status(), 201);
    for n in 0..6 {
        let document = json!({ "id": n.to_string(), "text": text(1, "one"), "metadata": { "m": "m".repeat(15_000) } });
        let path = "/v1/collections/cut/documents?on_duplicate=store";
        assert_eq!(post(server, path, &document.to_string()), 200);
    }
    let path = "/v1/collections/cut/check?limit=10&with=metadata";
    assert_eq!(post(server, path, &document("c", &text(1, "one"))), 200);
}

/// Makes a collection that verifies exactly, with two similar documents.
fn make_exact(server: &Server) {
    let made = agent()
        .put(server.url("/v1/collections/exact"))
        .header("authorization", BEARER)
        .content_type("application/json");
    assert_eq!(made.send(r#"{"verify":"exact","sketch":"fss128x8"}"#).expect("an answer").status(), 201);
    for last in ["one", "two"] {
        let path = "/v1/collections/exact/documents?on_duplicate=store";
        assert_eq!(post(server, path, &document(last, &text(1, last))), 200);
    }
}

#[test]
fn what_exact_verification_reads_is_counted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(&dir.path().join("data"));
    make_exact(&server);
    assert!(server.terminate().success());
    let again = Server::start(&dir.path().join("data"));
    assert_eq!(post(&again, "/v1/collections/exact/check", &document("x", &text(1, "three"))), 200);
    let after = Scrape::of(&again);
    assert_eq!(after.sum("hapax_exact_compared_sum", &["exact"]), 2.0);
    // The two sets have 20 shingles each.
    assert!((200.0..300.0).contains(&after.sum(names::EXACT_READ_BYTES, &["exact"])));
}

#[test]
fn a_commit_that_is_refused_is_counted_and_undone() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = Server::start(&data);
    const DOCUMENTS: &str = "/v1/collections/default/documents";
    assert_eq!(post(&server, DOCUMENTS, &document("a", &text(1, "one"))), 200);
    // Another process is in the middle of a transaction; the server waits for it, but not forever.
    let other = rusqlite::Connection::open(data.join("collections/default.sqlite")).expect("the file");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    assert!(post(&server, DOCUMENTS, &document("b", &text(2, "one"))) >= 500);
    drop(other);
    let after = Scrape::of(&server);
    assert_eq!(after.sum(names::COMMIT_FAILURES, &["default"]), 1.0);
    assert_eq!(after.sum(names::DOCUMENTS, &["default"]), 1.0);
    assert_eq!(post(&server, "/v1/collections/default/check", &document("c", &text(1, "one"))), 200, "reads go on");
    assert!(server.terminate().success());
    let again = Server::start(&data);
    assert_eq!(again.documents(), 1);
    assert_eq!(post(&again, DOCUMENTS, &document("b", &text(2, "one"))), 200);
}

#[test]
fn bodies_under_way_are_counted_and_given_back() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(&dir.path().join("data"));
    let host = server.url("").replace("http://", "");
    let mut slow = TcpStream::connect(&host).expect("a connection");
    let head = format!(
        "POST /v1/collections/default/check HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: 1000000\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).expect("sent");
    slow.write_all(&vec![b' '; 500_000]).expect("sent");
    let until = |wanted: &dyn Fn(f64) -> bool| {
        let since = Instant::now();
        while !wanted(Scrape::of(&server).sum(names::HTTP_BUFFERED_BYTES, &[])) {
            assert!(since.elapsed() < Duration::from_secs(60), "the gauge does not move");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(&|bytes| bytes >= 400_000.0);
    drop(slow);
    until(&|bytes| bytes == 0.0);
}

/// In an earlier version, creating and dropping 481 collections made a scrape grow from 35 KB to 4.6 MB, because their
/// series were never removed.
#[test]
fn dropped_collections_leave_no_series() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(&dir.path().join("data"));
    let settings = |n: usize| match n % 3 {
        0 => json!({"spec": format!("external:model{n}:128x8")}),
        1 => json!({"sketch": "classic64x8", "ttl": 60}),
        _ => json!({"sketch": "oph128x16", "verify": "exact", "keep": "text"}),
    };
    let drop = |name: &str| {
        let dropped = agent().delete(server.url(&format!("/v1/collections/{name}?confirm={name}"))).call();
        assert_eq!(dropped.expect("an answer").status(), 200);
    };
    let make = |name: &str, settings: &serde_json::Value| {
        let made = agent().put(server.url(&format!("/v1/collections/{name}"))).content_type("application/json");
        assert_eq!(made.send(settings.to_string()).expect("an answer").status(), 201, "{settings}");
    };
    let names = |scrape: &Scrape| {
        let lines = scrape.0.lines().filter(|line| line.starts_with("hapax_"));
        lines.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect::<BTreeSet<_>>()
    };
    // A collection is made and dropped before the comparison, so that routes and statuses have their series.
    make("first", &settings(1));
    assert_eq!(post(&server, "/v1/collections/first/documents", &document("a", &text(1, "one"))), 200);
    drop("first");
    Scrape::of(&server);
    let before = names(&Scrape::of(&server));
    for n in 0..30 {
        // Each name is used twice.
        let name = format!("passing{}", n % 15);
        make(&name, &settings(n));
        if n % 3 > 0 {
            assert_eq!(
                post(&server, &format!("/v1/collections/{name}/documents"), &document("a", &text(n, "one"))),
                200
            );
            assert_eq!(Scrape::of(&server).sum("hapax_commit_documents_sum", &[&name]), 1.0, "its own count alone");
        }
        drop(&name);
    }
    let after = Scrape::of(&server);
    // The scrub may reach the permanent collection late, so new series of this collection are allowed.
    let stays = |series: &&String| series.contains("\"default\"");
    let left: Vec<_> = names(&after).difference(&before).filter(|series| !stays(series)).cloned().collect();
    assert!(left.is_empty(), "{left:#?}");
    // The scrub runs every 200 ms. State that the scrub or a scrape still holds must not bring a series back.
    std::thread::sleep(Duration::from_millis(600));
    assert!(!Scrape::of(&server).0.contains("passing"), "{}", after.0);
    make("passing0", &settings(1));
    let since = Instant::now();
    while !Scrape::of(&server).0.contains("hapax_scrub_records_total{collection=\"passing0\"}") {
        assert!(since.elapsed() < Duration::from_secs(20), "one of the same name is measured again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the metrics of a server without TLS and without a Redis Cluster, whose index is intact. `tls::` tests the
/// metrics of TLS, and `redis_store::` those of a cluster.
fn in_normal_use() -> impl Iterator<Item = &'static names::Metric> {
    let unusual = |name: &str| {
        name.starts_with("hapax_tls_") || name.starts_with("hapax_redis_") || name == names::CANARY_LOST_IN_BAND
    };
    names::all().filter(move |metric| !unusual(metric.name))
}

fn every_name_is_described(scrape: &Scrape) {
    // Counters exist from the start, at 0: an alert on their rate sees the first failure.
    assert_eq!(scrape.sum(names::COMMIT_FAILURES, &["default"]), 0.0);
    for metric in in_normal_use() {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let (help, kind) =
            (format!("# HELP {} {}\n", metric.name, metric.help()), format!("# TYPE {} {kind}\n", metric.name));
        assert!(scrape.0.contains(&help) && scrape.0.contains(&kind), "{} is not there:\n{}", metric.name, scrape.0);
    }
}

/// Checks that the scrape has exactly the names and labels of `names.rs`.
fn names_and_labels_are_those_of_the_table(scrape: &Scrape) {
    for line in scrape.0.lines().filter(|line| line.starts_with("hapax_")) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let metric = names::all()
            .find(|metric| {
                let series = ["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", metric.name));
                match metric.kind {
                    Kind::Histogram(_) => series.iter().any(|series| series == name),
                    Kind::Counter | Kind::Gauge => metric.name == name,
                }
            })
            .unwrap_or_else(|| panic!("{name} is in no table"));
        let labels: BTreeSet<_> = line
            .split_once('{')
            .and_then(|(_, rest)| rest.rsplit_once('}'))
            .map(|(labels, _)| labels.split("\",").map(|label| label.split('=').next().expect("a label")).collect())
            .unwrap_or_default();
        let labels: BTreeSet<_> = labels.into_iter().filter(|label| *label != "le").collect();
        assert_eq!(labels, metric.labels.iter().copied().collect(), "{line}");
    }
}

#[test]
fn strange_requests_make_no_series() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let server = Server::start(dir.path());
    let strange = |number: usize| {
        let method = ureq::http::Method::from_bytes(format!("BREW{number}").as_bytes()).expect("a method");
        for (method, path) in [
            (method, "/v1/collections/default/check".to_owned()),
            (ureq::http::Method::GET, format!("/nowhere/{number}?q={number}")),
            (ureq::http::Method::GET, format!("/v1/collections/absent-{number}/documents?id={number}")),
            (ureq::http::Method::POST, format!("/v1/collections/absent-{number}/check")),
        ] {
            let request = ureq::http::Request::builder().method(method).uri(server.url(&path));
            let agent = Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
                .proxy(None)
                .build()
                .new_agent();
            let answer = agent.run(request.header("x-request-id", format!("id-{number}")).body(()).expect("a request"));
            assert!(answer.expect("an answer").status().is_client_error(), "{path}");
        }
    };
    let series = || -> BTreeSet<String> {
        let name = |line: &str| line.rsplit_once(' ').expect("a value").0.to_owned();
        // Background threads create other series.
        Scrape::of(&server).0.lines().filter(|line| line.starts_with("hapax_http_")).map(name).collect()
    };
    strange(0);
    series();
    let before = series();
    (1..100).for_each(strange);
    let more: Vec<_> = series().difference(&before).cloned().collect();
    assert_eq!(more, Vec::<String>::new());
}
