//! All forms of a document, and all ways to send it, get the same answer.

use serde_json::{Value, json};

use super::{create, places, store, text};
use crate::support::client::{Client, documents};
use crate::support::library::dir;
use crate::support::local::Local;
use crate::support::server::Server;
use crate::support::signatures;

const CHECK_A: &str = "/v1/collections/a/check?collections=b,c";

fn filled(client: &Client) {
    create(client);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        for changed in [0, 40, 9] {
            store(client, name, &format!("{name}{changed}"), &text(at as u64, changed));
        }
        store(client, name, "everywhere", &text(9, 12 + at));
    }
}

#[test]
fn json_texts_batches_and_bulk_get_the_same_answer() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    filled(&client);
    let texts: Vec<String> = (0..10).map(|number| text(number, 20)).collect();
    let alone: Vec<Value> = texts.iter().map(|text| client.post(CHECK_A, &json!({"text": text})).ok()).collect();
    assert!(alone.iter().any(|answer| answer["matches"].as_array().unwrap().len() > 2), "{alone:?}");
    for (text, alone) in texts.iter().zip(&alone) {
        assert_eq!(client.text(CHECK_A, text.as_bytes()).ok(), *alone);
    }
    let documents: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    let batch = json!({"op": "check", "documents": documents});
    let batch = client.post("/v1/collections/a/batch?collections=b,c", &batch).ok();
    assert_eq!(batch["results"], json!(alone));
    let lines: String = documents.iter().map(|document| document.to_string() + "\n").collect();
    let target = "/v1/collections/a/bulk?op=check&collections=b,c";
    let lines = client.send("POST", target, &[("content-type", "application/x-ndjson")], lines.as_bytes()).lines();
    for (at, (mut line, alone)) in lines[..10].iter().cloned().zip(&alone).enumerate() {
        let fields = line.as_object_mut().unwrap();
        assert_eq!((fields.remove("kind"), fields.remove("line")), (Some(json!("verdict")), Some(json!(at + 1))));
        assert_eq!(line, *alone);
    }
    assert_eq!(lines[10]["summary"], batch["summary"]);
}

#[test]
fn a_long_text_is_signed_for_each_spec_while_it_arrives() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let banding = json!({"bands": 64, "rows": 2});
    for (name, shingle) in [("a", "word2"), ("b", "char6"), ("c", "word2")] {
        let settings = json!({"shingle": shingle, "banding": banding});
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
    }
    // The text is longer than one piece of a body, and some pieces end inside a character of two bytes.
    let long = format!("\u{FEFF}{}", (0..40_000).map(|word| format!("wörd{word}é ")).collect::<String>());
    for name in ["b", "c"] {
        let near = format!("{long} and a few other words");
        client
            .send("POST", &format!("{}?id={name}", documents(name)), &[("content-type", "text/plain")], near.as_bytes())
            .ok();
    }
    let streamed = client.text(CHECK_A, long.as_bytes()).ok();
    assert_eq!(places(&streamed["matches"]).len(), 2, "{streamed}");
    assert_eq!(client.post(CHECK_A, &json!({"text": long.trim_start_matches('\u{FEFF}')})).ok(), streamed);
}

#[test]
fn pages_are_extracted_as_each_collection_says() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (name, extract) in [("a", "article"), ("b", "visible"), ("c", "article")] {
        let settings = json!({"extract": extract, "shingle": "word2"});
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
    }
    let menu: String = (0..200).map(|at| format!("<li><a href='/{at}'>menu{at} entry{at}</a></li>")).collect();
    let page = |menu: &str| {
        let paragraphs: String =
            (0..8).map(|at| format!("<p>{}, and so on, as it is said.</p>", text(at, 0))).collect();
        format!(
            "<html lang='en'><head><title>T</title></head><body><ul>{menu}</ul><article>{paragraphs}</article></body></html>"
        )
    };
    for name in ["a", "b", "c"] {
        client.post(&documents(name), &json!({"id": name, "html": page(&menu)})).ok();
    }
    // Without the menu, the main text is the same, but the visible text is different.
    let answer = client.post(CHECK_A, &json!({"html": page("")})).ok();
    assert_eq!(places(&answer["matches"]), [("a", "a"), ("c", "c")], "{answer}");
    assert_eq!((&answer["verdict"], &answer["page"]["title"]), (&json!("exact_duplicate"), &json!("T")));
    assert_eq!(answer["collections"][1]["verdict"], "unique");
    let raw = client.send("POST", CHECK_A, &[("content-type", "text/html")], page("").as_bytes()).ok();
    assert_eq!(raw, answer);
}

#[test]
fn a_set_is_hashed_for_each_spec() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    let set = json!({"set": (0..50).collect::<Vec<_>>()});
    for name in ["b", "c"] {
        client.post(&documents(name), &json!({"id": name, "set": set["set"]})).ok();
    }
    let answer = client.post(CHECK_A, &set).ok();
    assert_eq!(places(&answer["matches"]), [("b", "b"), ("c", "c")], "{answer}");
    assert_eq!(answer["verdict"], "exact_duplicate");
}

#[test]
fn a_signature_fits_only_collections_with_its_spec() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    let put = |name: &str, settings: &Value| client.json("PUT", &format!("/v1/collections/{name}"), settings).status;
    assert_eq!([put("x", &signatures::settings()), put("y", &signatures::settings())], [201, 201]);
    // Collection `z` has signatures of the same shape, but another spec.
    let mut other = signatures::settings();
    other["spec"] = json!("external:other:128x8");
    assert_eq!(put("z", &other), 201);
    let document = signatures::document("s", &signatures::unlike_others(1));
    client.post(&documents("y"), &document).ok();
    let signature = json!({"signature": document["signature"]});
    let answer = client.post("/v1/collections/x/check?collections=y", &signature).ok();
    assert_eq!(places(&answer["matches"]), [("y", "s")]);
    let problem = client.post("/v1/collections/x/check?collections=y,z", &signature).problem(409, "spec_mismatch");
    assert!(problem["detail"].as_str().unwrap().contains("collection `z`"), "{problem}");

    // A signature that one collection made of a text can be checked in another collection with an equal spec. If that
    // collection compares shingles, the signature is refused.
    let sign = client.post("/v1/collections/a/sign", &json!({"text": text(1, 0)})).ok();
    let signed = json!({"signature": sign["signature"], "fingerprint": sign["fingerprint"]});
    store(&client, "c", "in-c", &text(1, 0));
    let answer = client.post("/v1/collections/a/check?collections=c", &signed).ok();
    assert_eq!(places(&answer["matches"]), [("c", "in-c")], "{answer}");
    client.post("/v1/collections/a/check?collections=b", &signed).problem(422, "invalid_value");
    let insert = json!({"id": "new", "signature": sign["signature"], "fingerprint": sign["fingerprint"]});
    client.post(&format!("{}?collections=b", documents("a")), &insert).problem(422, "invalid_value");
    client.get(&format!("{}?id=new", documents("a"))).problem(404, "document_not_found");
    // A collection of signatures does not take a text.
    let problem = client.post("/v1/collections/a/check?collections=x", &json!({"text": "a b c"}));
    assert!(problem.problem(422, "invalid_value")["detail"].as_str().unwrap().contains("`x`"));
}

/// Returns how many texts the server has signed.
fn signed(client: &Client) -> u64 {
    let metrics = client.get("/metrics").text();
    let counts = metrics.lines().filter_map(|line| line.strip_prefix("hapax_sign_duration_seconds_count"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_text_is_signed_once_for_each_spec() {
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    create(&client);
    let (mut before, long) = (signed(&client), text(1, 0).repeat(1000));
    let mut signs = |request: &dyn Fn()| {
        request();
        let now = signed(&client);
        now - std::mem::replace(&mut before, now)
    };
    let check = |others: &str, text: &str| {
        client.post(&format!("/v1/collections/a/check?collections={others}"), &json!({"text": text})).ok();
    };
    assert_eq!(signs(&|| check("c", &text(1, 0))), 1);
    assert_eq!(signs(&|| check("c,b", &text(1, 0))), 2);
    assert_eq!(signs(&|| check("c,b", &long)), 2);
    let streamed = || drop(client.text("/v1/collections/a/check?collections=c", long.as_bytes()).ok());
    assert_eq!(signs(&streamed), 1);
    let insert = |to: &str, others: &str| {
        let target = format!("{}?collections={others}", documents(to));
        client.post(&target, &json!({"id": "x", "text": text(5, 0)})).ok();
    };
    assert_eq!(signs(&|| insert("a", "c")), 1);
    assert_eq!(signs(&|| insert("b", "a,c")), 2);
    // Collection `d` compares shingles. The collection of the path does not need them.
    let exact = json!({"shingle": "word2", "keep": "shingles", "verify": "exact"});
    assert_eq!(client.json("PUT", "/v1/collections/d", &exact).status, 201);
    store(&client, "d", "x", &text(7, 0));
    before = signed(&client);
    let mut signs = |request: &dyn Fn()| {
        request();
        let now = signed(&client);
        now - std::mem::replace(&mut before, now)
    };
    let target = format!("{}?collections=d,c", documents("a"));
    let found = std::cell::RefCell::new(Value::Null);
    let one = signs(&|| *found.borrow_mut() = client.post(&target, &json!({"id": "y", "text": text(7, 20)})).ok());
    assert_eq!((one, places(&found.borrow()["elsewhere"])), (1, vec![("d", "x")]));
    assert_eq!(found.borrow()["elsewhere"][0]["method"], "exact");
    assert_eq!(client.get(&format!("{}?id=y", documents("a"))).ok()["verdict"], "unique");
}

#[test]
fn a_scope_applies_in_each_collection() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    for name in ["a", "b", "c"] {
        for crawl in ["old", "new"] {
            let target = format!("{}?on_duplicate=store&label=crawl:{crawl}", documents(name));
            client.post(&target, &json!({"id": crawl, "text": text(1, 0)})).ok();
        }
    }
    let of = |scope: &str| client.post(&format!("{CHECK_A}{scope}"), &json!({"text": text(1, 0)})).ok();
    assert_eq!(places(&of("")["matches"]).len(), 6);
    assert_eq!(places(&of("&scope=crawl:new")["matches"]), [("a", "new"), ("b", "new"), ("c", "new")]);
    assert_eq!(places(&of("&scope=!crawl:new")["matches"]), [("a", "old"), ("b", "old"), ("c", "old")]);
}
