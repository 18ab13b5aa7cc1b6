//! The size of answers is limited, for each answer and for all answers together. Without such limits, a batch of 281 KB
//! that requested the metadata of a thousand near-copies got an answer of 1.6 GB, and the process took 3.4 GB of memory
//! for it.

use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, encode};
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};

const BATCH: &str = "/v1/collections/default/batch";
const COPIES: usize = 60;
const BOUND: usize = 256 << 10;
/// The size of a verdict without the parts that can be left out: its ids, its best match, and the text around them.
const LEAST: usize = 4 << 10;

/// Returns one of many texts that are nearly the same.
fn copy(number: usize) -> String {
    let word = |at: usize| if at == number % 300 { format!("only{number}") } else { format!("word{at}") };
    (0..300).map(word).collect::<Vec<_>>().join(" ")
}

fn metadata(number: usize) -> Value {
    json!({ "number": number, "fill": "x".repeat(15_000) })
}

/// Starts a server with copies of one text, each with much metadata.
fn server(id: impl Fn(usize) -> String) -> (Dir, Local, Client) {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.answer_bytes_max = BOUND).start();
    let client = Client::of(&server);
    let line = |number| json!({ "id": id(number), "text": copy(number), "metadata": metadata(number) }).to_string();
    let lines: Vec<_> = (0..COPIES).map(line).collect();
    let answers = client.bulk("op=insert&on_duplicate=store", &lines.join("\n"));
    assert_eq!(answers.last().unwrap()["summary"]["stored"], COPIES);
    (dir, server, client)
}

/// Checks a verdict whose lookup found `matches_max` matches. Returns the number of matches that have metadata in it.
fn complete(verdict: &Value, matches_max: usize) -> usize {
    let matches = verdict["matches"].as_array().unwrap();
    assert_eq!(verdict["duplicate_of"], matches[0]["id"], "the best match stays");
    let with_metadata = matches.iter().filter(|found| found["metadata"].is_object()).count();
    assert!(matches[..with_metadata].iter().all(|found| found["metadata"].is_object()), "the best keep theirs");
    let omitted = |what: &str| verdict["omitted"][what].as_u64().unwrap_or(0) as usize;
    assert_eq!(matches.len() + omitted("matches"), matches_max, "{}", verdict["omitted"]);
    assert_eq!(with_metadata + omitted("metadata"), matches.len(), "{}", verdict["omitted"]);
    assert!(omitted("matches") == 0 || with_metadata == 0, "metadata goes first: {}", verdict["omitted"]);
    with_metadata
}

#[test]
fn a_verdict_is_cut_to_the_bound_and_says_what_is_missing() {
    let (_dir, _server, client) = server(|number| format!("d{number}"));
    let text = json!({ "text": copy(1000) });
    let few = client.post(&format!("{CHECK}?limit=5&with=metadata"), &text);
    assert_eq!(complete(&few.ok(), 5), 5);
    assert!(few.ok().get("omitted").is_none(), "nothing is omitted");
    let many = client.post(&format!("{CHECK}?limit=1000&with=metadata"), &text);
    assert!(many.body.len() <= BOUND, "{}", many.body.len());
    let brought = complete(&many.ok(), COPIES);
    // Only as much as necessary is left out.
    assert!((BOUND / 15_000 - 3..COPIES).contains(&brought), "{brought}");
    let without = client.post(&format!("{CHECK}?limit=1000"), &text).ok();
    assert_eq!(without["matches"].as_array().unwrap().len(), COPIES);
    assert!(without.get("omitted").is_none());

    // The document is inserted, however long the answer is.
    for (outcome, on_existing) in [("inserted", "conflict"), ("unchanged", "conflict")] {
        let target = format!("{DOCUMENTS}?limit=1000&with=metadata&on_duplicate=store&on_existing={on_existing}");
        let answer = client.post(&target, &json!({ "id": "new", "text": copy(1000) }));
        assert_eq!((answer.ok()["outcome"].as_str(), &answer.ok()["stored"]), (Some(outcome), &json!(true)));
        assert!(answer.body.len() <= BOUND);
        let shown = answer.ok()["matches"].as_array().unwrap().len();
        complete(&answer.ok(), shown);
    }
}

#[test]
fn long_ids_are_cut_too() {
    // Control characters take six bytes each in JSON.
    let (_dir, _server, client) = server(|number| format!("{number:03}{}", "\u{1}".repeat(2000)));
    let answer = client.post(&format!("{CHECK}?limit=1000&with=metadata"), &json!({ "text": copy(1000) }));
    assert!(answer.body.len() <= BOUND, "{}", answer.body.len());
    assert_eq!(complete(&answer.ok(), COPIES), 0);
    assert!(answer.ok()["matches"].as_array().unwrap().len() > 10);
    let page = client.get("/v1/collections/default/buckets?limit=100");
    assert!(page.ok()["buckets"].is_array() && page.body.len() <= BOUND, "{}", page.body.len());
}

#[test]
fn the_answers_of_a_batch_share_the_bound_and_every_document_is_done() {
    let (_dir, _server, client) = server(|number| format!("d{number}"));
    let check = |documents: usize| {
        let documents: Vec<_> = (0..documents).map(|number| json!({ "text": copy(1000 + number) })).collect();
        let body = json!({ "op": "check", "documents": documents });
        client.post(&format!("{BATCH}?limit=1000&with=metadata"), &body)
    };
    for documents in [1, 3, 200] {
        let answer = check(documents);
        assert!(answer.body.len() <= BOUND.max(documents * LEAST) + LEAST, "{documents}: {}", answer.body.len());
        let results = answer.ok()["results"].clone();
        for (at, result) in results.as_array().unwrap().iter().enumerate() {
            let brought = complete(result, COPIES);
            assert!(at > 0 || documents > 3 || brought > 0, "the first have what there is");
        }
        assert_eq!(results, check(documents).ok()["results"], "the same batch has the same answer");
    }
    let documents: Vec<_> =
        (0..200).map(|number| json!({ "id": format!("n{number}"), "text": copy(1000 + number) })).collect();
    let target = format!("{BATCH}?limit=1000&with=metadata&on_duplicate=store");
    let answer = client.post(&target, &json!({ "op": "insert", "documents": documents }));
    assert!(answer.body.len() <= BOUND + 200 * LEAST, "{}", answer.body.len());
    assert_eq!(answer.ok()["summary"]["stored"], 200);
    // For bulk requests, the limit applies to each line.
    let lines: Vec<_> =
        (0..50).map(|number| json!({ "id": format!("b{number}"), "text": copy(2000 + number) }).to_string()).collect();
    let target = "/v1/collections/default/bulk?op=insert&limit=1000&with=metadata&on_duplicate=store";
    let answer = client.send("POST", target, &[("content-type", "application/x-ndjson")], lines.join("\n").as_bytes());
    assert!(answer.text().lines().all(|line| line.len() <= BOUND));
    assert_eq!(answer.lines().last().unwrap()["summary"]["stored"], 50);
}

#[test]
fn pages_end_earlier_and_lead_on() {
    let (_dir, _server, client) = server(|number| format!("d{number:02}"));
    let mut seen = Vec::new();
    let mut target = format!("{DOCUMENTS}?limit=1000");
    loop {
        let page = client.get(&target);
        assert!(page.body.len() <= BOUND, "{}", page.body.len());
        let page = page.ok();
        seen.extend(page["documents"].as_array().unwrap().iter().map(|document| {
            assert!(document["metadata"].is_object());
            document["id"].as_str().unwrap().to_owned()
        }));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        target = format!("{DOCUMENTS}?limit=1000&cursor={}", encode(cursor));
    }
    let all: Vec<_> = (0..COPIES).map(|number| format!("d{number:02}")).collect();
    assert_eq!(seen, all);

    let answer = client.post("/v1/collections/default/documents/get", &json!({ "ids": all }));
    assert!(answer.body.len() <= BOUND, "{}", answer.body.len());
    let found = answer.ok();
    let documents = found["documents"].as_array().unwrap();
    assert!(documents.len() > 5 && documents.len() + found["omitted"].as_u64().unwrap() as usize == COPIES);
    assert!(documents.iter().zip(&all).all(|(document, id)| document["id"] == id.as_str()), "the first are answered");
    let few = client.post("/v1/collections/default/documents/get", &json!({ "ids": ["d01", "none", "d00"] })).ok();
    assert!(few.get("omitted").is_none() && few["missing"] == json!(["none"]));
}

#[test]
fn pages_of_clusters_end_earlier_and_lead_on() {
    let (_dir, _server, client) = server(|number| format!("{number:03}{}", "\u{1}".repeat(2000)));
    for id in ["", &format!("&id={}", encode(&format!("000{}", "\u{1}".repeat(2000))))] {
        let mut seen = Vec::new();
        let mut target = format!("/v1/collections/default/clusters?limit=1000{id}");
        loop {
            let page = client.get(&target);
            assert!(page.body.len() <= BOUND + (16 << 10), "{}", page.body.len());
            let page = page.ok();
            let members = page["members"].as_array().unwrap();
            seen.extend(members.iter().map(|member| member["id"].as_str().unwrap()[..3].to_owned()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            target = format!("/v1/collections/default/clusters?limit=1000{id}&cursor={}", encode(cursor));
        }
        assert_eq!(seen, (0..COPIES).map(|number| format!("{number:03}")).collect::<Vec<_>>());
    }
}

#[test]
fn without_memory_for_the_answer_nothing_is_begun() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.answers_bytes_max = 0).start();
    let client = Client::of(&server);
    let document = json!({ "id": "a", "text": "one two three" });
    for (target, body) in [
        (DOCUMENTS, document.clone()),
        (CHECK, document.clone()),
        (BATCH, json!({ "op": "insert", "documents": [document] })),
        ("/v1/collections/default/documents/get", json!({ "ids": ["a"] })),
    ] {
        let answer = client.post(target, &body);
        answer.problem(503, "overloaded");
        assert!(answer.headers.contains_key("retry-after"), "{target}");
    }
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 0);
    client.get(DOCUMENTS).problem(503, "overloaded");
}

#[test]
fn the_names_of_unknown_fields_come_back_short() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let fields: Vec<_> = (0..60).map(|field| format!("\"{field}{}\":1", "é".repeat(50_000))).collect();
    let body = format!("{{{}}}", fields.join(","));
    let answer = client.send("POST", CHECK, &[("content-type", "application/json")], body.as_bytes());
    answer.problem(422, "invalid_value");
    assert!(answer.body.len() < 10_000, "{}", answer.body.len());
}
