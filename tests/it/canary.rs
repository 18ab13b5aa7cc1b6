//! The canary measures the recall of the live index. In normal use, the recall is as theory predicts. It falls when a
//! limit hides documents.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{Server, Starting};
use crate::support::signatures::{self, crowded, document};

const PATIENCE: Duration = Duration::from_secs(30);
const DOCUMENTS: u64 = 300;

/// Returns the lines of `/metrics` about the canary's lookups in a collection, once there are some.
fn canary(client: &Client, collection: &str) -> Vec<String> {
    let since = Instant::now();
    loop {
        let scrape = client.get("/metrics").text();
        let of_it = |line: &&str| line.contains(&format!("\"{collection}\""));
        // This line is the last one that a round writes.
        if scrape.contains(&format!("hapax_background_similarity_ratio{{collection=\"{collection}\",shingles=\"1000-"))
        {
            return scrape.lines().filter(of_it).map(str::to_owned).collect();
        }
        assert!(since.elapsed() < PATIENCE, "the canary has not looked: {scrape}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn value(lines: &[String], metric: &str, similarity: &str) -> f64 {
    labelled(lines, metric, &format!("similarity=\"{similarity}\""))
}

fn labelled(lines: &[String], metric: &str, wanted: &str) -> f64 {
    let line = lines.iter().find(|line| line.starts_with(&format!("{metric}{{")) && line.contains(wanted));
    line.unwrap_or_else(|| panic!("no {metric} with {wanted}")).rsplit(' ').next().unwrap().parse().unwrap()
}

/// Stores documents in a collection and stops the server, so that the first round of the next server includes all of
/// them.
fn filled(data: &Path, settings: &Value, documents: impl Iterator<Item = Value>) {
    let server = Server::start(data);
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/c", settings).status, 201);
    let documents: Vec<Value> = documents.collect();
    for part in documents.chunks(100) {
        let batch = json!({ "op": "insert", "documents": part });
        client.post("/v1/collections/c/batch?on_duplicate=store", &batch).ok();
    }
    assert!(server.terminate().success());
}

fn started(data: &Path, environment: &[(&str, &str)]) -> (Server, Client) {
    let server = Starting::spawn_with(data, &[], environment).ready();
    let client = Client::new(server.url(""));
    (server, client)
}

fn text(number: u64) -> String {
    (0..150).map(|at| format!("w{number}x{at} ")).collect()
}

#[test]
fn the_recall_of_a_healthy_collection_is_what_theory_expects() {
    for (settings, source) in [
        (json!({ "keep": "text" }), "text"),
        (json!({ "verify": "exact", "keep": "text" }), "text"),
        (json!({ "verify": "borderline" }), "slots"),
        (json!({}), "slots"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let documents = (0..DOCUMENTS).map(|number| json!({ "id": number.to_string(), "text": text(number) }));
        filled(dir.path(), &settings, documents);
        let (server, client) = started(dir.path(), &[]);
        let lines = canary(&client, "c");
        // With 146 shingles, a text with one replaced shingle has a similarity below 0.99.
        let most = value(&lines, "hapax_canary_recall_ratio", "0.99");
        assert_eq!(most.is_nan(), source == "text" || settings["verify"] == "borderline", "{settings}");
        for similarity in ["0.90", "0.95"] {
            let [recall, low, high, expected] = ["", "_low", "_high", "_expected"]
                .map(|part| value(&lines, &format!("hapax_canary_recall{part}_ratio"), similarity));
            assert!(expected > 0.99 && recall >= 0.95, "{settings} {similarity}: {recall} of {expected}");
            assert!(low <= recall && recall <= high && low > 0.7, "{settings}: {low} {recall} {high}");
        }
        // Below the threshold, the canary expects no match.
        assert!(value(&lines, "hapax_canary_recall_ratio", "0.75").is_nan());
        let counted = lines.iter().find(|line| line.starts_with("hapax_canary_lookups_total{")).unwrap();
        assert!(counted.contains(&format!("source=\"{source}\"")), "{counted}");
        let drift = |metric: &str| labelled(&lines, metric, "shingles=\"50-199\"");
        assert!(drift("hapax_drift_candidates_gap").abs() < 0.5, "{}", drift("hapax_drift_candidates_gap"));
        assert!(drift("hapax_background_similarity_ratio") < 0.02);
        assert!(labelled(&lines, "hapax_drift_candidates_gap", "shingles=\"0-49\"").is_nan());
        // These texts have nothing in common, so nothing is proposed.
        assert!(drift("hapax_drift_similarity_observed_ratio").is_nan());
        assert!(drift("hapax_drift_similarity_expected_ratio") < 0.02);
        counts_as_no_check(&client);
        if source == "slots" {
            nothing_is_told_of_an_empty_collection(&client);
        }
        assert!(server.terminate().success());
    }
}

/// If metrics of deleted documents stayed, an alert that depends on them would never end.
fn nothing_is_told_of_an_empty_collection(client: &Client) {
    for part in (0..DOCUMENTS).collect::<Vec<_>>().chunks(100) {
        let ids: Vec<String> = part.iter().map(u64::to_string).collect();
        client.post("/v1/collections/c/documents/delete", &json!({ "ids": ids })).ok();
    }
    let since = Instant::now();
    let told =
        |line: &str| line.starts_with("hapax_canary_recall_high_ratio{collection=\"c\"") && !line.ends_with("NaN");
    while client.get("/metrics").text().lines().any(told) {
        assert!(since.elapsed() < 3 * PATIENCE, "recall is told of documents that are gone");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The canary's lookups are not counted in any metric of requests.
fn counts_as_no_check(client: &Client) {
    let scrape = client.get("/metrics").text();
    for series in ["hapax_verdicts_total", "hapax_check_candidates_count", "hapax_probe_duration_seconds_count"] {
        let of_it = scrape.lines().filter(|line| line.starts_with(series));
        for line in of_it {
            assert!(line.ends_with(" 0"), "{line}");
        }
    }
}

#[test]
fn recall_falls_if_a_limit_hides_documents() {
    let dir = tempfile::tempdir().unwrap();
    let documents = (0..DOCUMENTS).map(|number| document(&number.to_string(), &crowded(number)));
    filled(dir.path(), &signatures::settings(), documents);
    let recall = |environment: &[(&str, &str)]| {
        let (server, client) = started(dir.path(), environment);
        let lines = canary(&client, "c");
        assert!(server.terminate().success());
        assert!(value(&lines, "hapax_canary_recall_expected_ratio", "0.95") > 0.99);
        // Each band agrees as a whole or not at all, so there are many more candidates than with independent slots.
        if environment.is_empty() {
            let drift =
                |metric: &str| labelled(&lines, &format!("hapax_drift_candidates_{metric}"), "shingles=\"0-49\"");
            assert!(drift("observed") > 250.0 && drift("expected") < 60.0 && drift("gap") > 200.0);
            let similarity =
                |metric: &str| labelled(&lines, &format!("hapax_drift_similarity_{metric}"), "shingles=\"0-49\"");
            let [observed, expected] = ["observed_ratio", "expected_ratio"].map(similarity);
            assert!(similarity("gap") < -0.05 && (observed - expected - similarity("gap")).abs() < 1e-9);
        }
        ["", "_high"].map(|part| value(&lines, &format!("hapax_canary_recall{part}_ratio"), "0.95"))
    };
    let [whole, _] = recall(&[]);
    assert!(whole > 0.95, "{whole}");
    let [capped, high] = recall(&[("HAPAX__LIMITS__BUCKET_READ_MAX", "1")]);
    assert!(capped < 0.7 && high < 0.95, "{capped}, at most {high}");
}
