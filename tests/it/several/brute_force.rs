//! The matches of several collections equal those of a comparison with every document.

use serde_json::{Value, json};

use super::{create, places, store, text};
use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::local::Local;

const NAMES: [&str; 3] = ["a", "b", "c"];
const THRESHOLDS: [f64; 3] = [0.6, 0.75, 0.45];

/// A stored document.
struct Stored {
    collection: usize,
    id: String,
    text: String,
}

/// Stores documents with different similarities to `text(number, 0)`, in turn in one, two or all collections.
fn fill(client: &Client) -> Vec<Stored> {
    let mut stored = Vec::new();
    for number in 0..6 {
        for (at, changed) in [0, 40, 20, 12, 9, 7, 5, 4, 3].into_iter().enumerate() {
            for (collection, name) in NAMES.iter().enumerate() {
                if (at + collection + number as usize).is_multiple_of(3) && changed > 0 {
                    continue;
                }
                // The ids are the same in all collections, because an id belongs to one collection.
                let (id, text) = (format!("{number}-{changed}"), text(number, changed));
                store(client, name, &id, &text);
                stored.push(Stored { collection, id, text });
            }
        }
    }
    stored
}

/// Compares a text with every document, as the collection of the document does.
fn truth(client: &Client, stored: &[Stored], text: &str, order: &[usize]) -> Vec<(usize, String, f64)> {
    let mut found = Vec::new();
    for (at, collection) in order.iter().enumerate() {
        for document in stored.iter().filter(|document| document.collection == *collection) {
            let pair = json!({"a": {"text": text}, "b": {"id": document.id}});
            let compared = client.post(&format!("/v1/collections/{}/compare", NAMES[*collection]), &pair).ok();
            let exact = &compared["exact"]["jaccard"];
            let similarity = exact.as_f64().unwrap_or_else(|| compared["estimate"]["similarity"].as_f64().unwrap());
            if similarity >= THRESHOLDS[*collection] {
                found.push((document.text == text, similarity, at, *collection, document.id.clone()));
            }
        }
    }
    // Documents of one collection are in the order in which they were stored, and a stable sort keeps this order.
    found.sort_by(|one, other| {
        let by_content = other.0.cmp(&one.0);
        by_content.then(other.1.total_cmp(&one.1)).then(one.2.cmp(&other.2))
    });
    found.into_iter().map(|(_, similarity, _, collection, id)| (collection, id, similarity)).collect()
}

/// Checks that an answer has these matches, and that its other fields agree with them.
fn agrees(answer: &Value, truth: &[(usize, String, f64)], order: &[usize], limit: usize) {
    let listed = &truth[..truth.len().min(limit)];
    let expected: Vec<(&str, &str)> = listed.iter().map(|(at, id, _)| (NAMES[*at], &**id)).collect();
    assert_eq!(places(&answer["matches"]), expected, "{answer}");
    for (found, (_, _, similarity)) in answer["matches"].as_array().unwrap().iter().zip(listed) {
        assert!((found["similarity"].as_f64().unwrap() - similarity).abs() < 1e-5, "{found}: {similarity}");
    }
    let kind = |of: &[&(usize, String, f64)]| match of.first() {
        None => "unique",
        Some((_, _, similarity)) if *similarity == 1.0 => "exact_duplicate",
        Some(_) => "near_duplicate",
    };
    assert_eq!(answer["verdict"], kind(&truth.iter().collect::<Vec<_>>()), "{answer}");
    assert_eq!(answer.get("duplicate_of"), truth.first().map(|(_, id, _)| json!(id)).as_ref());
    let said = answer["collections"].as_array().unwrap();
    assert_eq!(said.len(), order.len());
    for (said, at) in said.iter().zip(order) {
        assert_eq!((&said["collection"], &said["threshold"]), (&json!(NAMES[*at]), &json!(THRESHOLDS[*at])));
        let own: Vec<_> = truth.iter().filter(|(collection, _, _)| collection == at).collect();
        assert_eq!((&said["verdict"], &said["complete"]), (&json!(kind(&own)), &json!(true)), "{answer}");
    }
    let candidates = |said: &Value| said["candidates"].as_u64().unwrap();
    assert_eq!(candidates(answer), said.iter().map(candidates).sum::<u64>());
    assert_eq!(answer["threshold"], THRESHOLDS[order[0]]);
}

#[test]
fn a_check_of_three_collections_agrees_with_a_comparison_with_every_document() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    let stored = fill(&client);
    let (mut several, mut none) = (0, 0);
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let [own, one, other] = order.map(|at| NAMES[at]);
        for number in 0..7 {
            for changed in [0, 40, 9, 2] {
                let text = text(number, changed);
                let truth = truth(&client, &stored, &text, &order);
                several += usize::from(order.iter().all(|at| truth.iter().any(|(found, _, _)| found == at)));
                none += usize::from(truth.is_empty());
                for limit in [1, 4, 100] {
                    let target = format!("/v1/collections/{own}/check?collections={one},{other}&limit={limit}");
                    let answer = client.post(&target, &json!({"text": text})).ok();
                    assert_eq!((&answer["collection"], &answer["outcome"]), (&json!(own), &json!("checked")));
                    agrees(&answer, &truth, &order, limit);
                }
            }
        }
    }
    assert!(several > 20 && none > 2, "{several} texts are in all collections, and {none} in none");
}

#[test]
fn ties_keep_the_order_of_the_list_and_then_that_of_insertion() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    for id in ["second", "first", "third"] {
        for collection in NAMES {
            store(&client, collection, id, &text(1, 0));
        }
    }
    let of = |target: &str| client.post(target, &json!({"text": text(1, 0)})).ok();
    let ids = ["second", "first", "third"];
    let expected = |order: [&'static str; 3]| -> Vec<(&str, &str)> {
        order.into_iter().flat_map(|name| ids.map(|id| (name, id))).collect()
    };
    let answer = of("/v1/collections/b/check?collections=c,a");
    assert_eq!(places(&answer["matches"]), expected(["b", "c", "a"]), "{answer}");
    assert_eq!(places(&of("/v1/collections/a/check?collections=b,c&limit=4")["matches"]), expected(NAMES)[..4]);
}

#[test]
fn a_lowered_threshold_is_that_of_all_and_the_recall_is_the_least() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    fill(&client);
    let body = json!({"text": text(2, 9)});
    let joint = client.post("/v1/collections/a/check?collections=b,c&threshold=0.5&limit=100", &body).ok();
    let mut recalls = Vec::new();
    for (name, said) in NAMES.iter().zip(joint["collections"].as_array().unwrap()) {
        let alone = client.post(&format!("/v1/collections/{name}/check?threshold=0.5&limit=100"), &body).ok();
        for field in ["verdict", "threshold", "candidates", "complete", "unread", "expected_recall"] {
            assert_eq!(said.get(field), alone.get(field), "{field} of {name}");
        }
        recalls.extend(alone["expected_recall"].as_f64());
    }
    assert_eq!(recalls.len(), 2, "the threshold of c is lower: {joint}");
    assert_eq!(joint["expected_recall"].as_f64(), recalls.into_iter().reduce(f64::min));
    assert_eq!(joint["threshold"], 0.5);
}
