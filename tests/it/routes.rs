//! The answers of each route, field by field, as a client receives them.

use std::time::{Duration, Instant};

use hapax::cpu::CpuConfig;
use hapax::types::CollectionName;
use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, Raw, fields, words};
use crate::support::library::{dir, occupy};
use crate::support::local::{Local, Setup};

/// Returns a text that shares most shingles with `words(number)`.
fn nearly(number: u64) -> String {
    let text: String = (0..20).map(|part| words(number * 1000 + part)).collect::<Vec<_>>().join(" ");
    text
}

fn nearly_changed(number: u64) -> String {
    format!("{} and a new end", nearly(number))
}

#[test]
fn a_check_never_writes_and_an_insert_does() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let document = json!({"id": "a", "text": nearly(1), "metadata": {"z": 1, "a": [1.50, "x"]}});
    let verdict = client.post(CHECK, &document).ok();
    assert_eq!((&verdict["verdict"], &verdict["outcome"]), (&json!("unique"), &json!("checked")));
    assert_eq!(verdict["stored"], false);
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 0);

    let verdict = client.post(DOCUMENTS, &document).ok();
    assert_eq!((&verdict["verdict"], &verdict["outcome"]), (&json!("unique"), &json!("inserted")));
    assert_eq!(verdict["stored"], true);
    let again = client.post(DOCUMENTS, &document).ok();
    assert_eq!((&again["verdict"], &again["outcome"]), (&json!("unique"), &json!("unchanged")));
    assert_eq!(again["stored"], true);

    let near = json!({"id": "b", "text": nearly_changed(1)});
    let verdict = client.post(&format!("{CHECK}?with=metadata"), &near).ok();
    assert_eq!((&verdict["verdict"], &verdict["duplicate_of"]), (&json!("near_duplicate"), &json!("a")));
    let found = &verdict["matches"][0];
    assert_eq!((&found["id"], &found["method"]), (&json!("a"), &json!("estimate")));
    assert_eq!(found["metadata"], document["metadata"]);
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("low") <= number("similarity") && number("similarity") <= number("high"));
    assert!(found["first_seen"].as_str().unwrap().ends_with('Z'));
    let skipped = client.post(DOCUMENTS, &near).ok();
    assert_eq!((&skipped["outcome"], &skipped["stored"]), (&json!("skipped"), &json!(false)));
    assert!(skipped["matches"][0].get("metadata").is_none());

    let exact = client.post(CHECK, &json!({"id": "c", "text": nearly(1).to_uppercase()})).ok();
    assert_eq!(exact["verdict"], "exact_duplicate", "canonical text is what counts");
}

#[test]
fn metadata_comes_back_as_it_was_given() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let body = r#"{"id":"a","text":"one two three","metadata": { "z" : 1.10, "a" : "\u00e9 \" \\", "n": 1e2 } }"#;
    client.send("POST", DOCUMENTS, &[("content-type", "application/json")], body.as_bytes()).ok();
    let record = client.get(&format!("{DOCUMENTS}?id=a")).text();
    let compact = r#""metadata":{"z":1.10,"a":"\u00e9 \" \\","n":1e2}"#;
    assert!(record.contains(compact), "order of keys and spelling of numbers stay: {record}");
}

#[test]
fn every_on_existing_and_on_duplicate() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let insert = |query: &str, id: &str, text: &str| {
        client.post(&format!("{DOCUMENTS}?{query}"), &json!({"id": id, "text": text}))
    };
    insert("", "a", &nearly(1)).ok();
    insert("", "a", &nearly(2)).problem(409, "id_conflict");
    insert("on_existing=conflict", "a", &nearly(2)).problem(409, "id_conflict");
    let kept = insert("on_existing=keep", "a", &nearly(2)).ok();
    assert_eq!((&kept["outcome"], &kept["stored"]), (&json!("skipped"), &json!(false)));
    let replaced = insert("on_existing=replace", "a", &nearly_changed(1)).ok();
    assert_eq!((&replaced["outcome"], &replaced["stored"]), (&json!("replaced"), &json!(true)));
    assert!(replaced["previous"]["similarity"].as_f64().unwrap() > 0.8);
    assert_eq!(replaced["verdict"], "unique", "its own earlier content is no match");
    let linked = insert("on_duplicate=link", "b", &nearly(1)).ok();
    assert_eq!((&linked["outcome"], &linked["duplicate_of"]), (&json!("linked"), &json!("a")));
    assert_eq!(client.get(&format!("{DOCUMENTS}?id=b")).ok()["linked"], true);
    let stored = insert("on_duplicate=store", "c", &nearly(1)).ok();
    assert_eq!((&stored["outcome"], &stored["verdict"]), (&json!("inserted"), &json!("exact_duplicate")));
    assert_eq!((&stored["duplicate_of"], &stored["representative"]), (&json!("b"), &json!("a")), "a link is found");
    let all = client.post(&format!("{CHECK}?limit=1"), &json!({"text": nearly(1)})).ok();
    assert_eq!(all["matches"].as_array().unwrap().len(), 1);
    assert_eq!((&all["duplicate_of"], &all["representative"]), (&json!("b"), &json!("a")), "the first of the equals");
    assert_eq!(
        insert("on_duplicate=steal", "d", "x").problem(422, "invalid_value")["errors"][0]["field"],
        "on_duplicate"
    );
    assert_eq!(insert("threshold=0.5", "d", "x").problem(422, "invalid_value")["errors"][0]["field"], "threshold");
}

#[test]
fn a_lowered_threshold_says_what_it_may_miss() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let verdict = client.post(&format!("{CHECK}?threshold=0.5"), &json!({"text": nearly(1)})).ok();
    let recall = verdict["expected_recall"].as_f64().unwrap();
    assert!(recall > 0.0 && recall < 0.5, "{recall}");
    assert!(verdict["warning"].as_str().unwrap().starts_with("most documents"), "{verdict}");
    let verdict = client.post(&format!("{CHECK}?threshold=0.75"), &json!({"text": nearly(1)})).ok();
    assert!(verdict["expected_recall"].as_f64().unwrap() > 0.5 && verdict.get("warning").is_none(), "{verdict}");
    assert!(client.post(CHECK, &json!({"text": nearly(1)})).ok().get("expected_recall").is_none());
    for threshold in ["0", "-0.1", "1.01", "NaN", "x", ""] {
        client.post(&format!("{CHECK}?threshold={threshold}"), &json!({"text": "x"})).problem(422, "invalid_value");
    }
}

#[test]
fn collections_are_made_described_changed_and_dropped() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let put = |name: &str, body: Value| client.json("PUT", &format!("/v1/collections/{name}"), &body);
    assert_eq!(put("news", json!({})).status, 201);
    assert_eq!(put("news", json!({})).status, 200);
    assert_eq!(put("news", json!({"threshold": 0.8})).status, 200);
    let problem = put("news", json!({"threshold": 0.7})).problem(409, "collection_exists");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("0.8") && detail.contains("0.7"), "names both: {detail}");

    let made = put("chars", json!({"shingle": "char5", "sketch": "classic128x16", "marks": "strip"}));
    assert_eq!(made.status, 201);
    let made = made.json();
    assert!(made["spec"].as_str().unwrap().contains("marks=strip;digits=keep;shingle=char5;sketch=classic128x16"));
    assert_eq!(made["signature"], json!({"slots": 128, "bits": 16, "bytes": 256}));
    let same = put("chars", json!({"spec": made["spec"]}));
    assert_eq!(same.status, 200, "{}", same.text());
    assert_eq!(put("theirs", json!({"spec": "external:datasketch:128x64"})).json()["signature"]["bytes"], 1024);

    bad_settings_and_names_are_refused(&client, &made);

    let list = client.get("/v1/collections").ok();
    let names: Vec<_> =
        list["collections"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chars", "default", "news", "theirs"]);

    let patch = |body: Value| client.json("PATCH", "/v1/collections/news", &body);
    let changed = patch(json!({"threshold": 0.9, "banding": {"bands": 16, "rows": 8}})).ok();
    assert_eq!(changed["banding"], json!({"bands": 16, "rows": 8}));
    assert_eq!(client.get("/v1/collections/news").ok()["threshold"], 0.9);
    patch(json!({})).problem(422, "invalid_value");
    patch(json!({"spec": "x"})).problem(422, "invalid_value");

    let drop = |name: &str, confirm: &str| client.delete(&format!("/v1/collections/{name}{confirm}"));
    drop("news", "").problem(422, "invalid_value");
    drop("news", "?confirm=chars").problem(422, "invalid_value");
    drop("default", "?confirm=default").problem(403, "default_stays");
    assert_eq!(drop("news", "?confirm=news").ok()["dropped"], "news");
    drop("news", "?confirm=news").problem(404, "collection_not_found");
}

fn bad_settings_and_names_are_refused(client: &Client, made: &Value) {
    let put = |name: &str, body: Value| client.json("PUT", &format!("/v1/collections/{name}"), &body);
    for (body, field) in [
        (json!({"shingle": "word0"}), "shingle"),
        (json!({"shingle": "word33"}), "shingle"),
        (json!({"sketch": "fss100x8"}), "sketch"),
        (json!({"fold": "upper"}), "fold"),
        (json!({"fold": "none;marks=strip"}), "fold"),
        (json!({"key": "configured"}), "key"),
        (json!({"key": "s3cret"}), "key"),
        (json!({"spec": "hapax9"}), "spec"),
        (json!({"spec": made["spec"], "fold": "none"}), "spec"),
        (json!({"threshold": 0}), "threshold"),
        (json!({"threshold": "0.5"}), "threshold"),
        (json!({"banding": {"bands": 100, "rows": 100}}), "banding"),
        (json!({"banding": {"bands": 0, "rows": 1}}), "banding"),
        (json!({"banding": {"bands": 4}}), "banding.rows"),
        (json!({"banding": {"bands": 4, "rows": 4, "columns": 1}}), "banding.columns"),
        (json!({"banding": 5}), "banding"),
        (json!({"thresold": 0.5}), "thresold"),
    ] {
        assert_eq!(fields(&put("bad", body.clone()).problem(422, "invalid_value")), [field], "{body}");
    }
    for name in ["UPPER", "-x", "a.b", "a%2Fb", "%2e%2e", &"x".repeat(65), "%ff"] {
        assert_eq!(fields(&put(name, json!({})).problem(422, "invalid_value")), ["collection"], "{name}");
    }
    client.get("/v1/collections/bad").problem(404, "collection_not_found");
}

#[test]
fn keyed_collections_need_the_servers_secret() {
    let dir = dir();
    let server = Setup::new(&dir).secret(7).start();
    let client = Client::of(&server);
    let made = client.json("PUT", "/v1/collections/keyed", &json!({"key": "configured"}));
    assert_eq!(made.status, 201);
    let spec = made.json()["spec"].as_str().unwrap().to_owned();
    assert!(!spec.ends_with("key=none") && !spec.contains("07070707"), "the fingerprint, never the secret: {spec}");
    let documents = "/v1/collections/keyed/documents";
    client.post(documents, &json!({"id": "a", "text": nearly(1)})).ok();
    assert_eq!(client.post(documents, &json!({"id": "b", "text": nearly(1)})).ok()["verdict"], "exact_duplicate");
}

#[test]
fn signatures_stand_in_for_texts() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let signed = client.post("/v1/collections/default/sign", &json!({"text": nearly(1)})).ok();
    assert_eq!(signed["empty"], false);
    client.post(DOCUMENTS, &json!({"id": "a", "text": nearly(1)})).ok();
    let given = json!({"id": "b", "signature": signed["signature"], "fingerprint": signed["fingerprint"]});
    let verdict = client.post(CHECK, &given).ok();
    assert_eq!((&verdict["verdict"], &verdict["similarity"]), (&json!("near_duplicate"), &json!(1.0)));
    assert!(verdict.get("shingles").is_none());
    let alone = client.post(CHECK, &json!({"signature": signed["signature"]})).problem(422, "invalid_value");
    assert_eq!(fields(&alone), ["fingerprint"]);
    let empty = client.post("/v1/collections/default/sign", &json!({"text": "—"})).ok();
    assert_eq!((&empty["empty"], empty.get("signature")), (&json!(true), None));

    client.json("PUT", "/v1/collections/theirs", &json!({"spec": "external:ours:256x8"}));
    let hashed =
        json!({"id": "h", "signature": signed["signature"], "content_hash": signed["content_hash"], "shingles": 1});
    let problem = client.post("/v1/collections/theirs/documents", &hashed).problem(422, "invalid_value");
    assert_eq!(fields(&problem), ["content_hash"], "there is no text whose hash it could be");
    let documents = "/v1/collections/theirs/documents";
    client.post(documents, &json!({"id": "a", "signature": signed["signature"]})).ok();
    let again = client.post(documents, &json!({"id": "b", "signature": signed["signature"]})).ok();
    assert_eq!(again["duplicate_of"], "a");
    assert_eq!(
        fields(&client.post(documents, &json!({"id": "c", "text": "x"})).problem(422, "invalid_value")),
        ["text"]
    );
}

// In an earlier version, a page that was stored by its signature was a conflict when it was sent as a text, and its
// copies were near duplicates.
#[test]
fn a_signature_with_the_hash_of_its_text_counts_as_the_text() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let sign = |text: &str| client.post("/v1/collections/default/sign", &json!({ "text": text })).ok();
    let document = |id: &str, signed: &Value| {
        let mut document = json!({ "id": id });
        for field in ["signature", "fingerprint", "content_hash", "shingles"] {
            document[field] = signed[field].clone();
        }
        document
    };
    let (signed, other) = (sign(&nearly(1)), sign(&nearly(2)));
    let stored = client.post(DOCUMENTS, &document("a", &signed)).ok();
    assert_eq!((&stored["outcome"], &stored["shingles"]), (&json!("inserted"), &signed["shingles"]));
    let outcome = |document: &Value| client.post(DOCUMENTS, document).ok()["outcome"].clone();
    assert_eq!(outcome(&json!({"id": "a", "text": nearly(1)})), "unchanged");
    assert_eq!(outcome(&document("a", &signed)), "unchanged");
    let copy = client.post(CHECK, &json!({"id": "b", "text": nearly(1)})).ok();
    assert_eq!((&copy["verdict"], &copy["duplicate_of"]), (&json!("exact_duplicate"), &json!("a")));
    let copy = client.post(CHECK, &document("b", &signed)).ok();
    assert_eq!(copy["verdict"], "exact_duplicate");
    // An equal signature or an equal content hash alone does not prove that the text is the same.
    for (field, of) in [("signature", &other), ("content_hash", &other)] {
        let mut mixed = document("a", &signed);
        mixed[field] = of[field].clone();
        client.post(DOCUMENTS, &mixed).problem(409, "id_conflict");
        assert_ne!(client.post(CHECK, &mixed).ok()["verdict"], "exact_duplicate", "{field}");
    }
    let refused = |document: Value| -> Vec<String> {
        let problem = client.post(CHECK, &document).problem(422, "invalid_value");
        fields(&problem).into_iter().map(str::to_owned).collect()
    };
    let wrong = |field: &str, value: Value| {
        let mut wrong = document("c", &signed);
        wrong[field] = value;
        refused(wrong)
    };
    for hash in ["", "00", "G0000000000000000000000000000000", "+0000000000000000000000000000000"] {
        assert_eq!(wrong("content_hash", json!(hash)), ["content_hash"], "{hash}");
    }
    for shingles in [json!(0), json!(-1), json!(1.5), json!("7"), json!(1_u64 << 41)] {
        assert_eq!(wrong("shingles", shingles), ["shingles"]);
    }
    assert_eq!(refused(json!({"text": "x", "shingles": 7})), ["shingles"]);
    let mut half = document("c", &signed);
    half.as_object_mut().unwrap().remove("shingles");
    assert_eq!(refused(half), ["shingles"]);
}

#[test]
fn sets_and_comparisons() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let a: Vec<_> = (0..100).collect();
    let b: Vec<_> = (50..150).collect();
    let compared = client.post("/v1/collections/default/compare", &json!({"a": {"set": a}, "b": {"set": b}})).ok();
    let exact = &compared["exact"];
    assert_eq!(exact["intersection"], 50);
    assert_eq!(exact["jaccard"], 0.333333);
    assert_eq!((&exact["containment_a_in_b"], &exact["shingles_a"]), (&json!(0.5), &json!(100)));
    assert_eq!(compared["estimate"]["method"], "estimate");
    client.post(DOCUMENTS, &json!({"id": "s", "set": a})).ok();
    let by_id = client.post("/v1/collections/default/compare", &json!({"a": {"id": "s"}, "b": {"set": a}})).ok();
    assert_eq!((&by_id["estimate"]["similarity"], by_id.get("exact")), (&json!(1.0), None));
    let missing = client.post("/v1/collections/default/compare", &json!({"a": {"id": "none"}, "b": {"set": a}}));
    missing.problem(404, "document_not_found");
    let strings: Vec<_> = a.iter().map(u32::to_string).collect();
    let verdict = client.post(CHECK, &json!({"set": strings})).ok();
    assert_eq!(verdict["verdict"], "unique", "5 and \"5\" are two elements");
}

#[test]
fn tuning_chooses_a_banding_and_draws_its_curve() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let tuned = client.post("/v1/tune", &json!({})).ok();
    assert!(tuned["recall_at_s_hi"].as_f64().unwrap() >= 0.99, "{tuned}");
    let (bands, rows) = (&tuned["banding"]["bands"], &tuned["banding"]["rows"]);
    assert!(bands.as_u64().unwrap() * rows.as_u64().unwrap() <= 256);
    let curve = tuned["curve"].as_array().unwrap();
    assert_eq!((curve.len(), &curve[20]["candidate"]), (21, &json!(1.0)));
    let impossible =
        json!({"s_hi": 0.31, "s_lo": 0.3, "recall": 0.999, "s_bg": 0.3, "documents": 1e9, "candidates_max": 0.001});
    client.post("/v1/tune", &impossible).problem(422, "invalid_value");
}

#[test]
fn a_starting_server_says_so_and_how_far_it_is() {
    let dir = dir();
    let server = Setup { boots: false, ..Setup::new(&dir) }.start();
    let (default, news) = (CollectionName::default_collection(), CollectionName::new("news").unwrap());
    let opening = server.state.boot().opening();
    opening.expect([(default.clone(), 300), (news, 100)]);
    opening.set(&default, 0.25);
    let client = Client::of(&server);
    client.get("/livez").ok();
    let answer = client.get("/readyz");
    let problem = answer.problem(503, "starting");
    assert_eq!(problem["progress"], 0.1875);
    let by_collection = json!([{"name": "default", "progress": 0.25}, {"name": "news", "progress": 0.0}]);
    assert_eq!(problem["collections"], by_collection);
    assert_eq!(answer.headers["retry-after"], "1");
    client.post(CHECK, &json!({"text": "x"})).problem(503, "starting");
    assert_eq!(client.get("/metrics").status, 200);
}

/// Sends a request without the last byte of its body. The server has begun to read the body, because it answered `100
/// Continue`.
fn half_sent(server: &Local) -> Raw {
    let mut slow = Raw::connect(server.address);
    slow.send("POST /v1/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n");
    slow.send("Expect: 100-continue\r\n\r\n");
    let told = slow.read_until(|seen| seen.ends_with(b"\r\n\r\n"));
    assert!(told.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&told));
    slow.send("{");
    slow
}

#[test]
fn too_many_requests_at_once_are_turned_away() {
    let dir = dir();
    let cpu = CpuConfig { threads: 1, queue_max: 100, queue_delay_max: Duration::ZERO };
    let server = Setup { cpu, ..Setup::new(&dir).limits(|limits| limits.requests_concurrent_max = 1) }.start();
    let client = Client::of(&server);
    let release = occupy(server.state.cpu());
    let mut slow = Raw::connect(server.address);
    slow.send(
        "POST /v1/tune HTTP/1.1
Host: localhost
Content-Type: application/json
Content-Length: 2

{}",
    );
    // The test waits until the work of the request is in the queue. A probe request could take the one place itself.
    let since = Instant::now();
    while server.state.cpu().depth() == 0 {
        assert!(since.elapsed() < Duration::from_secs(60), "the one place is not taken");
        std::thread::sleep(Duration::from_millis(5));
    }
    let answer = client.get("/v1/collections/default/clusters");
    answer.problem(503, "overloaded");
    assert!(answer.headers.contains_key("retry-after"));
    client.get("/livez").ok();
    assert_eq!(client.get("/metrics").status, 200);
    drop(release);
    assert_eq!(slow.status(), 200);
}

#[test]
fn a_stop_lets_open_requests_end() {
    let dir = dir();
    let server = Local::plain(&dir);
    let mut slow = half_sent(&server);
    // An idle connection must not delay the stop.
    let _idle = Raw::connect(server.address);
    server.stop();
    let since = Instant::now();
    while std::net::TcpStream::connect(server.address).is_ok() {
        assert!(since.elapsed() < Duration::from_secs(60), "the listener stays open");
        std::thread::sleep(Duration::from_millis(5));
    }
    slow.send("}");
    assert_eq!(slow.status(), 200);
    assert_eq!(server.stopped(), 0);
}

#[test]
fn http2_without_tls_is_spoken() {
    let dir = dir();
    let server = Local::plain(&dir);
    let mut raw = Raw::connect(server.address);
    // The preface and an empty SETTINGS frame; the server's first frame is its own SETTINGS.
    raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let answer = raw.read_until(|seen| seen.len() >= 9);
    assert_eq!(answer[3], 4, "{answer:?}");
}
