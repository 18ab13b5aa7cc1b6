//! HTML pages over HTTP: how they are sent, the facts that answers contain about them, and when a page that is sent
//! again counts as unchanged.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::server::Server;

const DOCUMENTS: &str = "/v1/collections/default/documents";
const CHECK: &str = "/v1/collections/default/check";
const EXTRACT: &str = "/v1/collections/default/extract";

const TEXT: &str = "After eleven years without a boat, the northern islands have a ferry again. It sails three times a week, \
                    and on Sundays if the weather allows it, which it rarely does in this part of the world.";

/// Returns a page with this text among menus.
fn page(text: &str, menu: &str) -> String {
    format!(
        "<!DOCTYPE html><html lang=en><head><title>Ferry</title><link rel=canonical href=/ferry></head><body>\
         <nav><a href=/>{menu}</a> <a href=/news>News of {menu}</a></nav><main><p>{text}</p></main>\
         <footer>© {menu}</footer></body></html>"
    )
}

fn raw(client: &Client, target: &str, content_type: &str, body: &[u8]) -> Value {
    client.send("POST", target, &[("content-type", content_type)], body).ok()
}

#[test]
fn pages_and_texts_are_duplicates_of_each_other() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let stored = raw(&client, &format!("{DOCUMENTS}?id=a"), "text/html", page(TEXT, "Harbour").as_bytes());
    assert_eq!((&stored["verdict"], &stored["outcome"]), (&json!("unique"), &json!("inserted")));
    let facts = json!({"title": "Ferry", "canonical_url": "/ferry", "language": "en", "extracted": "article"});
    assert_eq!(stored["page"], facts);
    let elsewhere = client.post(CHECK, &json!({"html": page(TEXT, "Islands")})).ok();
    assert_eq!((&elsewhere["verdict"], &elsewhere["duplicate_of"]), (&json!("exact_duplicate"), &json!("a")));
    assert_eq!(elsewhere["page"], facts);
    let text = client.post(CHECK, &json!({"text": TEXT})).ok();
    assert_eq!((&text["verdict"], text.get("page")), (&json!("exact_duplicate"), None));
    let nothing = raw(&client, CHECK, "text/html", b"<script>only()</script>");
    assert_eq!((&nothing["verdict"], &nothing["page"]["extracted"]), (&json!("empty"), &json!("visible")));
}

#[test]
fn an_extracted_text_that_is_longer_than_an_answer_may_be_is_refused() {
    const BOUND: usize = 1 << 17;
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.answer_bytes_max = BOUND).start();
    let client = Client::of(&server);
    let html = [("content-type", "text/html")];
    let answer = client.send("POST", EXTRACT, &html, page(&TEXT.repeat(400), "Harbour").as_bytes());
    assert!(answer.ok()["text"].as_str().unwrap().len() > BOUND / 2);
    // Each quotation mark is two bytes of JSON.
    let quoted = page(&TEXT.replace(' ', " \"").repeat(500), "Harbour");
    let problem = client.send("POST", EXTRACT, &html, quoted.as_bytes()).problem(422, "invalid_value");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(&BOUND.to_string()) && detail.contains("server.answer_bytes_max"), "{problem}");
}

#[test]
fn pages_are_decoded_by_their_charset() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let text = "Паром вернулся на северные острова и ходит теперь три раза в неделю, если позволяет погода на море";
    client.post(DOCUMENTS, &json!({"id": "a", "text": text})).ok();
    let cyrillic: Vec<u8> = text
        .chars()
        .map(|letter| match letter as u32 {
            code @ 0x410..=0x44F => (code - 0x410 + 0xC0) as u8,
            code => code as u8,
        })
        .collect();
    let declared = [b"<meta charset=windows-1251><p>".as_slice(), &cyrillic].concat();
    for (content_type, body) in [
        ("text/html; charset=windows-1251", [b"<p>".as_slice(), &cyrillic].concat()),
        ("text/html", declared.clone()),
        ("application/xhtml+xml", declared),
        ("text/html;charset=UTF-8", format!("<p>{text}").into_bytes()),
    ] {
        assert_eq!(raw(&client, CHECK, content_type, &body)["verdict"], "exact_duplicate", "{content_type}");
    }
}

#[test]
fn batches_and_bulk_take_pages_too() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let documents = json!([
        {"id": "a", "html": page(TEXT, "Harbour")},
        {"id": "b", "html": page(TEXT, "Islands"), "metadata": {"n": 1}},
    ]);
    let target = "/v1/collections/default/batch?on_duplicate=store&page_metadata=true";
    let batch = client.post(target, &json!({"op": "insert", "documents": documents})).ok();
    assert_eq!(batch["results"][1]["verdict"], "exact_duplicate");
    assert_eq!(batch["results"][1]["page"]["title"], "Ferry");
    let stored = client.get(&format!("{DOCUMENTS}?id=b")).ok();
    assert_eq!((&stored["metadata"]["n"], &stored["metadata"]["page"]["language"]), (&json!(1), &json!("en")));
    let line = json!({"html": page(TEXT, "Pier")}).to_string();
    let target = "/v1/collections/default/bulk?op=check";
    let answer = client.send("POST", target, &[("content-type", "application/x-ndjson")], line.as_bytes()).text();
    let first: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    assert_eq!((&first["verdict"], &first["page"]["extracted"]), (&json!("exact_duplicate"), &json!("article")));
    let taken = json!({"id": "c", "html": page("other", "Pier"), "metadata": {"page": 7}});
    client.post(&format!("{DOCUMENTS}?page_metadata=true"), &taken).problem(422, "invalid_value");
    client.post(CHECK, &json!({"html": "<p>", "text": "a"})).problem(422, "invalid_value");
}

#[test]
fn a_page_that_comes_again_is_unchanged_by_its_html_or_by_its_text() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let insert = |html: &str| client.post(DOCUMENTS, &json!({"id": "a", "html": html})).ok()["outcome"].clone();
    assert_eq!(insert(&page(TEXT, "Harbour")), "inserted");
    let seq = client.get(&format!("{DOCUMENTS}?id=a")).ok()["seq"].clone();
    assert_eq!(insert(&page(TEXT, "Harbour")), "unchanged", "the same page");
    assert_eq!(insert(&page(TEXT, "New menu")), "unchanged", "the same text");
    assert_eq!(insert(&page(TEXT, "New menu")), "unchanged", "its hash is the one that is stored now");
    assert_eq!(client.post(DOCUMENTS, &json!({"id": "a", "text": TEXT})).ok()["outcome"], "unchanged");
    let document = client.get(&format!("{DOCUMENTS}?id=a")).ok();
    assert_eq!((&document["seq"], document.get("metadata")), (&seq, None), "it is the same document");
    client
        .post(DOCUMENTS, &json!({"id": "a", "html": page("Another text of a few words.", "Harbour")}))
        .problem(409, "id_conflict");
}

#[test]
fn the_text_of_a_page_can_be_asked() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    let html = page(TEXT, "Harbour");
    let seen = raw(&client, EXTRACT, "text/html", html.as_bytes());
    assert_eq!((&seen["text"], &seen["extracted"], &seen["extractor"]), (&json!(TEXT), &json!("article"), &json!(2)));
    let visible = client.post(&format!("{EXTRACT}?extract=visible"), &json!({"html": html})).ok();
    assert!(visible["text"].as_str().unwrap().starts_with("Harbour News of Harbour\nAfter"), "{visible}");
    client.post(EXTRACT, &json!({"text": "a"})).problem(422, "invalid_value");
    client.post(&format!("{EXTRACT}?extract=all"), &json!({"html": html})).problem(422, "invalid_value");
    assert_eq!(client.get(DOCUMENTS).ok()["documents"], json!([]), "nothing is stored");
    let metrics = client.get("/metrics").text();
    for series in ["hapax_pages_total{extracted=\"article\"} 1", "hapax_pages_total{extracted=\"visible\"} 1"] {
        assert!(metrics.lines().any(|line| line == series), "no {series}");
    }
}

#[test]
fn a_collection_keeps_the_text_that_it_was_made_for() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    let client = Client::of(&server);
    let made = client.json("PUT", "/v1/collections/all", &json!({"extract": "visible"}));
    assert_eq!((made.status, &made.json()["extract"]), (201, &json!("visible")));
    let insert = client.post("/v1/collections/all/documents", &json!({"id": "a", "html": page(TEXT, "Harbour")})).ok();
    assert_eq!(insert["page"]["extracted"], "visible");
    let elsewhere = client.post("/v1/collections/all/check", &json!({"html": page(TEXT, "Islands")})).ok();
    assert_ne!(elsewhere["verdict"], "exact_duplicate", "the menus differ");
    assert_eq!(client.json("PUT", "/v1/collections/all", &json!({"extract": "visible"})).status, 200);
    client.json("PUT", "/v1/collections/all", &json!({"extract": "article"})).problem(409, "collection_exists");
    client.json("PATCH", "/v1/collections/all", &json!({"extract": "article"})).problem(422, "invalid_value");
    client.json("PUT", "/v1/collections/other", &json!({"extract": "some"})).problem(422, "invalid_value");
}
