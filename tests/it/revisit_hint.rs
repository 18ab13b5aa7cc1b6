//! Dates and digests of captures: they are stored, kept and shown, and answers have the hint for a revisit record.

use hapax::types::Revisit;
use serde_json::{Value, json};

use crate::cli::{path, run_with_input, text as printed};
use crate::support::client::{CHECK, Client, DOCUMENTS, fields, words};
use crate::support::command::hapax;
use crate::support::library::dir;
use crate::support::local::Local;
use crate::support::server::Server;

const A: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
const B: &str = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const FIRST: &str = "2026-11-01T10:00:00Z";
const LATER: &str = "2026-11-02T10:00:00.5Z";

/// Returns a document with this number, and with the parts of a capture that are not empty.
fn document(id: &str, number: u64, date: &str, digest: &str) -> Value {
    let mut document = json!({"id": id, "text": words(number)});
    for (name, value) in [("date", date), ("payload_digest", digest)] {
        if !value.is_empty() {
            document[name] = value.into();
        }
    }
    document
}

fn insert(client: &Client, query: &str, document: &Value) -> Value {
    client.post(&format!("{DOCUMENTS}?{query}"), document).ok()
}

/// Returns the date and the digest that are stored.
fn stored(client: &Client, id: &str) -> [Value; 2] {
    let document = client.get(&format!("{DOCUMENTS}?id={id}")).ok();
    [document["date"].clone(), document["payload_digest"].clone()]
}

fn hint(id: &str, date: &str) -> Value {
    let mut hint = json!({"profile": Revisit::PROFILE, "refers_to_uri": id});
    if !date.is_empty() {
        hint["refers_to_date"] = date.into();
    }
    hint
}

#[test]
fn only_an_equal_digest_gives_a_hint_and_its_date_is_the_stored_one() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let first = insert(&client, "", &document("a", 1, FIRST, A));
    assert_eq!((&first["outcome"], &first["revisit"]), (&json!("inserted"), &Value::Null));
    let check = |client: &Client, document: &Value| client.post(CHECK, document).ok()["revisit"].clone();
    let hints = |client: &Client| {
        assert_eq!(check(client, &document("b", 1, LATER, A)), hint("a", FIRST));
        assert_eq!(check(client, &document("b", 1, "", &A.replace("sha1", "SHA1"))), hint("a", FIRST));
        // The stored page is checked again.
        assert_eq!(check(client, &document("a", 1, "", A)), hint("a", FIRST));
        // There is no hint for equal text without a digest, for equal text with another digest, and for other texts
        // with the same digest.
        assert_eq!(check(client, &document("b", 1, LATER, "")), Value::Null);
        assert_eq!(check(client, &document("b", 1, LATER, B)), Value::Null);
        assert_eq!(check(client, &document("b", 2, LATER, A)), Value::Null);
        assert_eq!(check(client, &document("a", 2, LATER, A)), Value::Null);
    };
    hints(&client);
    let again = insert(&client, "", &document("a", 1, LATER, A));
    assert_eq!((&again["outcome"], &again["revisit"]), (&json!("unchanged"), &hint("a", FIRST)));
    let skipped = insert(&client, "", &document("b", 1, LATER, A));
    assert_eq!((&skipped["outcome"], &skipped["revisit"]), (&json!("skipped"), &hint("a", FIRST)));
    server.kill();
    // Now the capture must be read from the disk.
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    hints(&client);
    let skipped = insert(&client, "", &document("b", 1, LATER, A));
    assert_eq!(skipped["revisit"], hint("a", FIRST));
    assert_eq!(stored(&client, "a"), [FIRST, A]);
    let page = client.get(DOCUMENTS).ok();
    assert_eq!((&page["documents"][0]["date"], &page["documents"][0]["payload_digest"]), (&json!(FIRST), &json!(A)));
    let exported = hapax(&["export", "--server", &server.url("")]).output().unwrap();
    assert!(printed(&exported.stdout).contains(&format!(r#""date":"{FIRST}","payload_digest":"{A}""#)));
}

#[test]
fn no_hint_refers_to_a_later_capture_or_to_itself() {
    let dir = dir();
    let local = Local::plain(&dir);
    let client = Client::of(&local);
    let revisit = |answer: Value| (answer["outcome"].as_str().unwrap().to_owned(), answer["revisit"].clone());
    for on_duplicate in ["link", "store"] {
        let [a, b, c] = ["a", "b", "c"].map(|id| format!("{on_duplicate}-{id}"));
        let number = on_duplicate.len() as u64;
        let insert = |id: &str, date: &str| {
            revisit(insert(&client, &format!("limit=1&on_duplicate={on_duplicate}"), &document(id, number, date, A)))
        };
        let stored = if on_duplicate == "link" { "linked" } else { "inserted" };
        assert_eq!(insert(&a, FIRST), ("inserted".to_owned(), Value::Null));
        // The client did not receive the answer, and sends the same capture again. This capture is not archived
        // anywhere yet.
        assert_eq!(insert(&a, FIRST), ("unchanged".to_owned(), Value::Null));
        assert_eq!(insert(&b, LATER), (stored.to_owned(), hint(&a, FIRST)));
        // This capture was archived as a revisit record.
        assert_eq!(insert(&b, LATER), ("unchanged".to_owned(), hint(&a, FIRST)));
        assert_eq!(insert(&b, "2026-11-09"), ("unchanged".to_owned(), hint(&a, FIRST)));
        assert_eq!(insert(&a, LATER), ("unchanged".to_owned(), hint(&a, FIRST)));
        let check = client.post(CHECK, &document(&b, number, "", A)).ok()["revisit"].clone();
        assert_eq!(check, hint(&a, FIRST));
        let later = insert(&c, "2026-11-10");
        assert_eq!(later.0, stored);
        assert_eq!(insert(&c, "2026-11-11").1, hint(&a, FIRST));
    }
}

#[test]
fn a_date_stays_with_its_digest_and_a_replacement_brings_its_own() {
    let dir = dir();
    let local = Local::plain(&dir);
    let client = Client::of(&local);
    let outcome = |query: &str, document: &Value| insert(&client, query, document)["outcome"].clone();
    assert_eq!(outcome("", &document("a", 1, "", "")), "inserted");
    assert_eq!(stored(&client, "a"), [Value::Null, Value::Null]);
    assert_eq!(outcome("on_existing=keep", &document("a", 1, FIRST, A)), "unchanged");
    assert_eq!(stored(&client, "a"), [Value::Null, Value::Null]);
    // A document without a capture takes the capture that is sent.
    assert_eq!(outcome("", &document("a", 1, FIRST, A)), "updated");
    assert_eq!(outcome("", &document("a", 1, LATER, A)), "unchanged");
    assert_eq!(outcome("", &document("a", 1, LATER, "")), "unchanged");
    assert_eq!(outcome("", &document("a", 1, "", "")), "unchanged");
    assert_eq!(stored(&client, "a"), [FIRST, A]);
    let mut metadata = document("a", 1, "", "");
    metadata["metadata"] = json!({"n": 1});
    assert_eq!(outcome("", &metadata), "updated");
    assert_eq!(stored(&client, "a"), [FIRST, A]);
    // The same text comes from another payload, so the capture that is sent replaces the stored one.
    assert_eq!(outcome("", &document("a", 1, LATER, B)), "updated");
    assert_eq!(stored(&client, "a"), [LATER, B]);
    assert_eq!(outcome("on_existing=replace", &document("a", 2, "", A)), "replaced");
    assert_eq!(stored(&client, "a"), [Value::Null, json!(A)]);
    // The stored capture has no date, so the hint has no date either.
    assert_eq!(client.post(CHECK, &document("b", 2, LATER, A)).ok()["revisit"], hint("a", ""));
    assert_eq!(outcome("on_existing=replace", &document("a", 1, "", "")), "replaced");
    assert_eq!(stored(&client, "a"), [Value::Null, Value::Null]);
}

#[test]
fn the_earliest_match_is_referred_to() {
    let dir = dir();
    let local = Local::plain(&dir);
    let client = Client::of(&local);
    for (id, date, digest) in
        [("other", FIRST, B), ("bare", "", A), ("dated", LATER, A), ("last", FIRST, A), ("later", LATER, A)]
    {
        insert(&client, "on_duplicate=store", &document(id, 1, date, digest));
    }
    let check = |query: &str| client.post(&format!("{CHECK}?{query}"), &document("x", 1, "", A)).ok();
    assert_eq!(check("")["revisit"], hint("last", FIRST));
    assert_eq!(check("limit=3")["revisit"], hint("dated", LATER));
    // Only matches in the list count.
    assert_eq!(check("limit=2")["revisit"], hint("bare", ""));
    assert_eq!(check("limit=1")["revisit"], Value::Null);
    assert_eq!(check("with=metadata")["revisit"], hint("last", FIRST));
    // The first verdicts of these documents named the matches that were stored before them.
    for id in ["last", "later"] {
        let again = insert(&client, "limit=1", &document(id, 1, "", A));
        assert_eq!((&again["outcome"], &again["revisit"]), (&json!("unchanged"), &hint("last", FIRST)));
    }
}

#[test]
fn raw_bodies_batches_and_bulk_carry_captures_too() {
    let dir = dir();
    let local = Local::plain(&dir);
    let client = Client::of(&local);
    let raw = client.text(&format!("{DOCUMENTS}?id=raw&date={FIRST}&payload_digest={A}"), words(1).as_bytes()).ok();
    assert_eq!((&raw["outcome"], stored(&client, "raw")), (&json!("inserted"), [json!(FIRST), json!(A)]));
    let page = format!("<p>{}</p>", words(2));
    let target = format!("{DOCUMENTS}?id=page&date={FIRST}&payload_digest={B}");
    client.send("POST", &target, &[("content-type", "text/html")], page.as_bytes()).ok();
    assert_eq!(stored(&client, "page"), [FIRST, B]);
    let target = format!("{CHECK}?payload_digest={A}");
    assert_eq!(client.text(&target, words(1).as_bytes()).ok()["revisit"], hint("raw", FIRST));
    let batch = json!({"op": "check", "documents": [document("x", 1, "", A), document("y", 1, "", ""),
        document("z", 2, "", A)]});
    let answer = client.post("/v1/collections/default/batch", &batch).ok();
    let revisits: Vec<_> = (0..3).map(|at| answer["results"][at]["revisit"].clone()).collect();
    assert_eq!(revisits, [hint("raw", FIRST), Value::Null, Value::Null]);
    // A line can refer to the capture of an earlier line that is not on disk yet.
    let lines = [document("n", 3, FIRST, A), document("n", 3, LATER, A), document("m", 3, LATER, A)];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = client.bulk("op=insert", &lines);
    let revisits: Vec<_> = answers.iter().take(3).map(|line| line["revisit"].clone()).collect();
    assert_eq!(revisits, [Value::Null, hint("n", FIRST), hint("n", FIRST)]);
}

#[test]
fn faulty_captures_are_refused_and_name_their_field() {
    let dir = dir();
    let local = Local::plain(&dir);
    let client = Client::of(&local);
    for (date, digest, field) in [("yesterday", "", "date"), ("", "nonsense", "payload_digest")] {
        for path in [DOCUMENTS, CHECK] {
            let problem = client.post(path, &document("a", 1, date, digest)).problem(422, "invalid_value");
            assert_eq!(fields(&problem), [field], "{path}");
        }
    }
    for (target, field) in [
        (format!("{DOCUMENTS}?id=a&date=20261101"), "date"),
        (format!("{CHECK}?payload_digest=sha1"), "payload_digest"),
        (format!("{CHECK}?date={FIRST}"), "date"),
    ] {
        let problem = client.text(&target, words(1).as_bytes()).problem(422, "invalid_value");
        assert_eq!(fields(&problem), [field], "{target}");
    }
    // With JSON, these values must be fields of the document, like an id. Parameters are refused.
    let target = format!("{DOCUMENTS}?date={FIRST}");
    let problem = client.post(&target, &document("a", 1, "", "")).problem(422, "invalid_value");
    assert_eq!(fields(&problem), ["date"]);
}

#[test]
fn check_shows_the_hint_for_records_of_warc() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    let record = |uri: &str, date: &str| {
        let body = words(7);
        format!(
            "WARC/1.1\r\nWARC-Type: resource\r\nContent-Type: text/plain\r\nWARC-Target-URI: {uri}\r\nWARC-Date: \
             {date}\r\nWARC-Payload-Digest: {A}\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
            body.len()
        )
    };
    let imported = record("https://a.example/", FIRST);
    let imported = run_with_input(&["import", "--server", &server.url(""), "-"], imported.as_bytes());
    assert!(imported.status.success(), "{}", printed(&imported.stderr));
    assert_eq!(stored(&client, "https%3A%2F%2Fa.example%2F"), [FIRST, A]);
    let check = |arguments: &[&str]| {
        let input = record("https://b.example/", LATER);
        let arguments = [&["check"], arguments, &["-"]].concat();
        let checked = run_with_input(&arguments, input.as_bytes());
        let verdict: Value = serde_json::from_slice(&checked.stdout).unwrap();
        verdict["revisit"].clone()
    };
    assert_eq!(check(&["--server", &server.url("")]), hint("https://a.example/", FIRST));
    assert!(server.terminate().success());
    assert_eq!(check(&["--data-dir", path(&dir.path().join("data"))]), hint("https://a.example/", FIRST));
}

#[test]
fn of_several_collections_one_with_a_date_gives_the_hint() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for name in ["old", "older", "new"] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({})).status, 201);
    }
    let put = |name: &str, query: &str, document: &Value| {
        client.post(&format!("/v1/collections/{name}/documents?{query}"), document).ok()
    };
    put("old", "", &document("b", 1, "", A));
    put("older", "", &document("c", 1, FIRST, A));
    let check = client.post("/v1/collections/new/check?collections=old,older", &document("a", 1, LATER, A)).ok();
    assert_eq!(check["revisit"], hint("c", FIRST));
    assert_eq!(put("new", "collections=old", &document("a", 1, LATER, A))["revisit"], hint("b", ""));
    // The collection `older` has an earlier capture than the collection `new`.
    let again = put("new", "collections=older", &document("a", 1, LATER, A));
    assert_eq!((&again["outcome"], &again["revisit"]), (&json!("unchanged"), &hint("c", FIRST)));
    let lines = format!("{}\n", document("d", 1, "", A));
    let target = "/v1/collections/new/bulk?op=check&collections=old,older";
    let answer = client.send("POST", target, &[("content-type", "application/x-ndjson")], lines.as_bytes());
    assert_eq!(answer.lines()[0]["revisit"], hint("c", FIRST));
    assert_eq!(check["collections"][1].get("revisit"), None);
}
