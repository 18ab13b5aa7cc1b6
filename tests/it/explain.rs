//! `explain=true` explains a verdict with the numbers of the very lookup that the verdict is based on.

use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::signatures::{BANDS, boilerplate, document, settings, unlike_others};

const READ_MAX: usize = 64;
const CHECK_C: &str = "/v1/collections/c/check";

/// Returns a signature. Only its first `equal` slots are those of `boilerplate(0)`.
fn sharing(equal: usize, number: u64) -> Vec<u8> {
    let like = boilerplate(0);
    let other = unlike_others(number);
    (0..like.len()).map(|at| if at < equal { like[at] } else { other[at].max(1) ^ like[at] }).collect()
}

fn signature(bytes: &[u8]) -> Value {
    json!({"signature": document("", bytes)["signature"]})
}

/// Starts a server with an empty collection, for signatures that clients send.
fn server(dir: &crate::support::library::Dir) -> (Local, Client) {
    let mut setup = Setup::new(dir);
    setup.collections.limits.bucket_read_max = READ_MAX;
    let server = setup.start();
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/c", &settings()).status, 201);
    (server, client)
}

fn explained(client: &Client, target: &str, body: &Value) -> (Value, Value) {
    let separator = if target.contains('?') { '&' } else { '?' };
    let mut verdict = client.post(&format!("{target}{separator}explain=true"), body).ok();
    let explanation = verdict["explanation"].take();
    (verdict, explanation)
}

#[test]
fn buckets_and_documents_below_the_threshold_are_told_exactly() {
    let dir = dir();
    let (_server, client) = server(&dir);
    // Each document shares whole bands of six slots with the query: one, two, five, ten, and so on.
    let equal = [6, 12, 30, 60, 66, 72, 78];
    for slots in equal {
        let verdict =
            client.post("/v1/collections/c/documents", &document(&format!("{slots}"), &sharing(slots, slots as u64)));
        assert_eq!(verdict.ok()["verdict"], "unique");
    }
    let (verdict, explanation) = explained(&client, CHECK_C, &signature(&boilerplate(0)));
    let lookup = &explanation["lookup"];
    assert_eq!((&verdict["verdict"], &verdict["candidates"]), (&json!("unique"), &json!(equal.len())), "{explanation}");
    assert_eq!((&lookup["bands"], &lookup["rows"], &lookup["bands_hit"]), (&json!(BANDS), &json!(6), &json!(13)));
    let expected: Vec<Value> = (0..13)
        .map(|band| json!({"band": band, "documents": equal.iter().filter(|slots| **slots >= 6 * (band + 1)).count()}))
        .collect();
    assert_eq!((&lookup["buckets"], &lookup["found"]), (&json!(expected), &json!(equal.len())));
    assert_eq!(lookup["unread"], json!({"bucket": 0, "candidates": 0, "exact_reads": 0, "doubt": 0}));
    let below = lookup["below_threshold"].as_array().unwrap();
    assert_eq!(below.iter().map(|below| &below["id"]).collect::<Vec<_>>(), ["78", "72", "66", "60", "30"]);
    // All slots are compared, so the similarity equals the similarity that `compare` returns.
    for below in below {
        let pair = json!({"a": signature(&boilerplate(0)), "b": {"id": below["id"]}});
        let estimate = &client.post("/v1/collections/c/compare", &pair).ok()["estimate"];
        assert_eq!((&below["similarity"], &below["low"]), (&estimate["similarity"], &estimate["low"]), "{below}");
    }
    let plain = client.post(CHECK_C, &signature(&boilerplate(0))).ok();
    assert_eq!(plain.get("explanation"), None);
    let mut explained = verdict;
    explained.as_object_mut().unwrap().remove("explanation");
    assert_eq!(plain, explained, "an explanation changes nothing else");
}

#[test]
fn what_a_limit_excluded_is_told_by_the_limit() {
    let dir = dir();
    let (_server, client) = server(&dir);
    let documents: Vec<Value> = (0..500).map(|number| document(&format!("{number}"), &boilerplate(number))).collect();
    client.post("/v1/collections/c/batch", &json!({"op": "insert", "documents": documents})).ok();
    let (verdict, explanation) = explained(&client, CHECK_C, &signature(&boilerplate(1 << 40)));
    let lookup = &explanation["lookup"];
    assert_eq!(lookup["buckets"], json!([{"band": 0, "documents": 500}]), "{explanation}");
    assert_eq!((&lookup["found"], &verdict["candidates"]), (&json!(READ_MAX), &json!(READ_MAX)));
    assert_eq!((&lookup["unread"]["bucket"], &verdict["unread"]), (&json!(500 - READ_MAX), &json!(500 - READ_MAX)));
    assert_eq!(lookup["below_threshold"].as_array().unwrap().len(), 5);
}

#[test]
fn stages_are_timed_and_an_insert_is_explained_too() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    // The names are sorted, because a JSON object has no order here.
    let stages = |explanation: &Value| -> Vec<String> {
        let stages = explanation["stages_us"].as_object().unwrap();
        assert!(stages.values().all(|took| took.as_f64().is_some_and(|took| took > 0.0)), "{explanation}");
        let mut names: Vec<String> = stages.keys().cloned().collect();
        names.sort_unstable();
        names
    };
    let (first, other) = (json!({"id": "first", "text": words(1)}), json!({"id": "other", "text": words(1)}));
    let begun = std::time::Instant::now();
    let (verdict, explanation) = explained(&client, DOCUMENTS, &first);
    let elapsed_us = begun.elapsed().as_secs_f64() * 1e6;
    assert_eq!((&verdict["outcome"], &explanation["lookup"]["bands_hit"]), (&json!("inserted"), &json!(0)));
    assert_eq!(stages(&explanation), ["commit", "decide", "extract", "probe", "sign", "verify"]);
    let sum: f64 = explanation["stages_us"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!(sum <= elapsed_us, "{sum} of {elapsed_us}: {explanation}");
    // A duplicate of the first document is skipped. Its lookup finds the first document in every band.
    let (verdict, explanation) = explained(&client, DOCUMENTS, &other);
    let lookup = &explanation["lookup"];
    assert_eq!((&verdict["outcome"], &lookup["bands_hit"]), (&json!("skipped"), &lookup["bands"]), "{explanation}");
    // There is no lookup for content that the id already holds, or for a document without a token.
    let (verdict, explanation) = explained(&client, DOCUMENTS, &first);
    assert_eq!((&verdict["outcome"], explanation.get("lookup")), (&json!("unchanged"), None), "{explanation}");
    let (verdict, explanation) = explained(&client, CHECK, &json!({"text": "…"}));
    assert_eq!((&verdict["verdict"], explanation.get("lookup")), (&json!("empty"), None), "{explanation}");
    let problem = client.post(&format!("{CHECK}?explain=yes"), &first).problem(422, "invalid_value");
    assert!(problem["detail"].as_str().unwrap().contains("must be one of false, true"), "{problem}");
}

/// Documents that pass by their signatures but not by their shingles are listed as below the threshold, with their
/// exact similarity.
#[test]
fn exact_verification_tells_exact_similarities() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    assert_eq!(client.json("PUT", "/v1/collections/c", &json!({"verify": "exact"})).status, 201);
    let (stored, asked) = (words(1), words(1).replacen("w1x20", "changed", 1));
    client.post("/v1/collections/c/documents", &json!({"id": "a", "text": stored})).ok();
    let compared = client.post("/v1/collections/c/compare", &json!({"a": {"text": asked}, "b": {"id": "a"}})).ok();
    let exact = compared["exact"]["jaccard"].as_f64().unwrap();
    let above = format!("{CHECK_C}?threshold={}", exact + 0.02);
    let (verdict, explanation) = explained(&client, &above, &json!({"text": asked}));
    let below = &explanation["lookup"]["below_threshold"][0];
    assert_eq!((&verdict["verdict"], &below["id"], &below["method"]), (&json!("unique"), &json!("a"), &json!("exact")));
    assert!((below["similarity"].as_f64().unwrap() - exact).abs() < 1e-6, "{below} of {exact}");
}
