//! `?collections=` asks several collections about a document.

mod brute_force;
mod failures;
mod forms;
mod inserts;
mod refusals;
mod tools;

use serde_json::{Value, json};

use crate::support::client::{Client, documents};

/// Creates the collections of most tests, each with its own settings. The first and the last have the same spec. The
/// bands have so few rows that all documents above a threshold are certainly candidates.
fn create(client: &Client) {
    let banding = json!({"bands": 64, "rows": 2});
    for (name, settings) in [
        ("a", json!({"shingle": "word2", "threshold": 0.6, "banding": banding})),
        ("b", json!({"shingle": "char4", "threshold": 0.75, "banding": banding, "keep": "text", "verify": "exact"})),
        ("c", json!({"shingle": "word2", "threshold": 0.45, "banding": banding})),
    ] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
    }
}

/// Returns a text of 60 words. Every `changed`-th word differs from the text of the same `number`; if `changed` is 0,
/// none does.
fn text(number: u64, changed: usize) -> String {
    let word = |at: usize| match changed {
        0 => format!("w{number}x{at}"),
        every if at % every == 1 => format!("other{changed}x{at}"),
        _ => format!("w{number}x{at}"),
    };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

fn store(client: &Client, collection: &str, id: &str, text: &str) {
    let target = format!("{}?on_duplicate=store", documents(collection));
    let answer = client.post(&target, &json!({"id": id, "text": text})).ok();
    assert_eq!(answer["outcome"], "inserted", "{answer}");
}

/// Returns the collection and the id of each match.
fn places(matches: &Value) -> Vec<(&str, &str)> {
    let list = matches.as_array().unwrap_or_else(|| panic!("no list: {matches}"));
    list.iter().map(|found| (found["collection"].as_str().unwrap(), found["id"].as_str().unwrap())).collect()
}
