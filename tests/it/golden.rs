//! The golden set: its report agrees with real verdicts, it survives everything that documents survive, and no check
//! finds it.

use serde_json::{Value, json};

use crate::support::client::{Client, words};
use crate::support::library::dir;
use crate::support::local::Setup;
use crate::support::server::Server;

const GOLDEN: &str = "/v1/collections/c/golden";

/// Returns a text of 120 words. The first `changed` of them occur in no other text.
fn text(number: u64, side: char, changed: u64) -> String {
    (0..120).map(|at| if at < changed { format!("{side}{number}x{at} ") } else { format!("w{number}x{at} ") }).collect()
}

/// Returns a pair. Its exact similarity is `(116 - changed)/(116 + changed)`. It is labelled as a duplicate if this is
/// at least 0.8.
fn pair(number: u64, changed: u64) -> Value {
    let duplicate = (116 - changed) * 10 >= (116 + changed) * 8;
    json!({ "name": format!("p{number}"), "a": text(number, 'a', 0), "b": text(number, 'b', changed), "duplicate": duplicate })
}

fn collection(client: &Client, name: &str, verify: &str) {
    let settings = json!({ "verify": verify });
    assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
}

/// Returns the value of the series in `/metrics` that begins with `series`.
fn metric(client: &Client, series: &str) -> f64 {
    let scrape = client.get("/metrics").text();
    let line =
        scrape.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("no {series} in {scrape}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_report_says_what_real_verdicts_say() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    let pairs: Vec<Value> = (0..120).map(|number| pair(number, number % 40)).collect();
    for verify in ["estimate", "borderline", "exact"] {
        collection(&client, "c", verify);
        collection(&client, "real", verify);
        let report = client.json("PUT", GOLDEN, &json!({ "pairs": pairs })).ok();
        assert_eq!(report, client.get(GOLDEN).ok(), "{verify}");
        let failed = report["failed"].as_array().unwrap();
        let (mut reported, mut found, mut duplicates) = (0, 0, 0);
        for (number, pair) in (1u64..).zip(&pairs) {
            let document = json!({ "id": pair["name"], "text": pair["a"] });
            client.post("/v1/collections/real/documents", &document).ok();
            let verdict = client.post("/v1/collections/real/check", &json!({ "text": pair["b"] })).ok();
            let is = verdict["duplicate_of"] == pair["name"];
            let failure = failed.iter().find(|failure| failure["pair"] == number);
            assert_eq!(
                failure.is_some(),
                is != (pair["duplicate"] == true),
                "{verify} {number}: {verdict} {failure:?}"
            );
            if let Some(failure) = failure {
                explains(&client, failure, pair, &verdict);
            }
            reported += u64::from(is);
            duplicates += u64::from(pair["duplicate"] == true);
            found += u64::from(is && pair["duplicate"] == true);
        }
        assert_eq!((&report["pairs"], &report["duplicates"]), (&json!(120), &json!(duplicates)));
        assert_eq!((&report["reported"], &report["found"]), (&json!(reported), &json!(found)), "{verify}");
        let ratio = |of: u64| (found as f64 / of as f64 * 1e6).round() / 1e6;
        assert_eq!((&report["recall"], &report["precision"]), (&json!(ratio(duplicates)), &json!(ratio(reported))));
        if verify == "exact" {
            assert_eq!((&report["recall"], &report["precision"]), (&json!(1.0), &json!(1.0)), "{report}");
        }
        sums_up(&report);
        for (series, value) in [("recall", &report["recall"]), ("precision", &report["precision"])] {
            let series = format!("hapax_golden_{series}_ratio{{collection=\"c\"}}");
            assert!((metric(&client, &series) - value.as_f64().unwrap()).abs() < 1e-6, "{series}");
        }
        for name in ["c", "real"] {
            client.delete(&format!("/v1/collections/{name}?confirm={name}")).ok();
        }
    }
}

/// Checks that the failure of a pair agrees with a comparison, and with the verdict on its second text.
fn explains(client: &Client, failure: &Value, pair: &Value, verdict: &Value) {
    let texts = json!({ "a": { "text": pair["a"] }, "b": { "text": pair["b"] } });
    let compared = client.post("/v1/collections/real/compare", &texts).ok();
    assert_eq!(failure["name"], pair["name"]);
    assert_eq!(failure["jaccard"], compared["exact"]["jaccard"]);
    assert_eq!(failure["estimate"], compared["estimate"]["similarity"]);
    let reason = match (verdict["duplicate_of"].is_string(), verdict["candidates"] == 0) {
        (true, _) => "not_a_duplicate",
        (false, true) => "not_proposed",
        (false, false) => "below_threshold",
    };
    assert_eq!(failure["reason"], reason, "{verdict}");
}

/// Checks that each pair is counted in exactly one range of similarity.
fn sums_up(report: &Value) {
    let stretches = report["by_similarity"].as_array().unwrap();
    for field in ["pairs", "duplicates", "reported", "found"] {
        let sum: u64 = stretches.iter().map(|stretch| stretch[field].as_u64().unwrap()).sum();
        assert_eq!(report[field], sum, "{field}");
    }
    for stretch in stretches {
        assert!(stretch["proposed"].as_u64() >= stretch["reported"].as_u64(), "{stretch}");
        let (mean, distance) = (stretch["error_mean"].as_f64().unwrap(), stretch["error_abs_mean"].as_f64().unwrap());
        assert!(mean.abs() <= distance && distance < 0.1, "{stretch}");
    }
}

#[test]
fn the_report_follows_the_settings() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    collection(&client, "c", "estimate");
    // The similarity of each pair is 0.66.
    let near: Vec<Value> = (0..20)
        .map(|number| json!({ "a": text(number, 'a', 0), "b": text(number, 'b', 24), "duplicate": true }))
        .collect();
    let report = client.json("PUT", GOLDEN, &json!({ "pairs": near })).ok();
    assert_eq!((&report["recall"], &report["verify"]), (&json!(0.0), &json!("estimate")));
    assert_eq!(report.get("precision"), None, "nothing was reported");
    assert!(metric(&client, "hapax_golden_precision_ratio{collection=\"c\"}").is_nan());
    client.json("PATCH", "/v1/collections/c", &json!({ "threshold": 0.5 })).ok();
    let report = client.get(GOLDEN).ok();
    assert_eq!((&report["recall"], &report["threshold"], &report["failed"]), (&json!(1.0), &json!(0.5), &json!([])));
    assert_eq!(report["banding"], client.get("/v1/collections/c").ok()["banding"]);
    let none = client.delete(GOLDEN).ok();
    assert_eq!((&none["pairs"], none.get("recall")), (&json!(0), None));
    assert_eq!(client.get(GOLDEN).ok(), none);
    assert_eq!(metric(&client, "hapax_golden_pairs{collection=\"c\",kind=\"duplicate\"}"), 0.0);
}

#[test]
fn pairs_are_no_documents_and_survive_a_kill() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    collection(&client, "c", "estimate");
    let pairs: Vec<Value> = (0..10).map(|number| pair(number, 3)).collect();
    let report = client.json("PUT", GOLDEN, &json!({ "pairs": pairs })).ok();
    assert_eq!(report["recall"], 1.0);
    let check = json!({ "text": pairs[0]["a"] });
    assert_eq!(client.post("/v1/collections/c/check", &check).ok()["verdict"], "unique");
    assert_eq!(client.get("/v1/collections/c").ok()["documents"], 0);
    server.kill();
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(client.get(GOLDEN).ok(), report);
    assert!(server.terminate().success());
}

#[test]
fn wrong_sets_are_refused_and_the_earlier_one_stays() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let client = Client::of(&server);
    collection(&client, "c", "estimate");
    let report = client.json("PUT", GOLDEN, &json!({ "pairs": [pair(1, 3)] })).ok();
    let ten_mib: String = words(1).repeat(1 + (5 << 20) / words(1).len());
    for (body, field) in [
        (json!({}), "pairs"),
        (json!({ "pairs": [] }), "pairs"),
        (json!({ "pairs": vec![pair(1, 3); 1001] }), "pairs"),
        (json!({ "pairs": [{ "a": ten_mib, "b": "x", "duplicate": true }] }), "pairs"),
        (json!({ "pairs": [{ "a": "…", "b": "one two three", "duplicate": true }] }), "pairs"),
        (json!({ "pairs": [{ "a": "x", "b": "y" }] }), "pairs[0].duplicate"),
        (json!({ "pairs": [{ "a": "x", "b": 3, "duplicate": false }] }), "pairs[0].b"),
        (json!({ "pairs": [pair(1, 3)], "more": 1 }), "more"),
    ] {
        let problem = client.json("PUT", GOLDEN, &body).problem(422, "invalid_value");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    assert_eq!(client.get(GOLDEN).ok(), report);
    let external = json!({ "spec": "hapax1;external:elsewhere:128x32" });
    assert_eq!(client.json("PUT", "/v1/collections/external", &external).status, 201);
    let set = json!({ "pairs": [pair(1, 3)] });
    let problem = client.json("PUT", "/v1/collections/external/golden", &set).problem(422, "invalid_value");
    assert!(problem["detail"].as_str().unwrap().contains("accepts only signatures"), "{problem}");
    client.get("/v1/collections/absent/golden").problem(404, "collection_not_found");
}
