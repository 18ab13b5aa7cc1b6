//! `POST /v1/dedup` keeps the documents of a list that a new collection stores, and changes no collection.

use serde_json::{Value, json};

use crate::dedup::corpus;
use crate::support::client::{Client, fields};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const KEYED: &str =
    "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=char5;sketch=fss256x8;key=217a1ccd4b38d306";

/// Returns the kept places of the list, each with the places that it stands for.
fn kept(answer: &Value) -> Vec<(u64, Vec<u64>)> {
    let index = |document: &Value| document["index"].as_u64().expect("a number");
    let all = answer["kept"].as_array().expect("a list");
    all.iter()
        .map(|one| (index(one), one["duplicates"].as_array().expect("a list").iter().map(index).collect()))
        .collect()
}

#[test]
fn a_list_keeps_what_a_new_collection_stores() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (number, settings) in [
        json!({}),
        json!({"threshold": 0.6, "shingle": "char5", "verify": "exact"}),
        json!({"banding": {"bands": 16, "rows": 4}, "sketch": "fss128x8", "verify": "borderline"}),
    ]
    .iter()
    .enumerate()
    {
        let documents: Vec<_> =
            corpus(400, 31).iter().map(|one| json!({"id": one["id"], "text": one["text"]})).collect();
        let answer = client.post("/v1/dedup", &json!({"documents": documents, "settings": settings})).ok();
        let collection = format!("/v1/collections/c{number}");
        assert_eq!(client.json("PUT", &collection, settings).status, 201);
        let batch = json!({"op": "insert", "documents": documents});
        let results = client.post(&format!("{collection}/batch"), &batch).ok();
        let results = results["results"].as_array().expect("a list");
        let with = |verdict: &str| results.iter().filter(|one| one["verdict"] == *verdict).count() as u64;
        let summary = json!({
            "documents": 400, "kept": with("unique"), "near": with("near_duplicate"), "exact": with("exact_duplicate"),
            "empty": with("empty"), "failed": 0,
        });
        assert_eq!(answer["summary"], summary);
        assert!(with("near_duplicate") > 20 && with("exact_duplicate") > 5 && with("empty") > 0, "{summary}");
        let mut repeats = 0;
        for one in answer["kept"].as_array().expect("a list") {
            let index = one["index"].as_u64().expect("a number") as usize;
            assert!(one["id"] == results[index]["id"] && results[index]["stored"] == true, "{one}");
            for repeat in one["duplicates"].as_array().expect("a list") {
                let result = &results[repeat["index"].as_u64().expect("a number") as usize];
                assert_eq!((&repeat["id"], &one["id"]), (&result["id"], &result["duplicate_of"]));
                assert_eq!(repeat["verdict"], result["verdict"]);
                for field in ["similarity", "low", "high", "method"] {
                    assert_eq!(repeat[field], result["matches"][0][field], "{repeat}");
                }
                repeats += 1;
            }
        }
        assert_eq!(repeats, with("near_duplicate") + with("exact_duplicate"));
    }
    let collections = client.json("GET", "/v1/collections", &json!({})).ok();
    assert_eq!(collections["collections"].as_array().expect("a list").len(), 4);
}

#[test]
fn the_longest_is_kept_and_faulty_documents_are_listed() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen";
    let longer = format!("{words} seventeen");
    let documents = json!([{"text": words}, {"id": "x"}, {"text": ""}, {"id": "a", "text": longer}, {"text": 5}, 7, {"text": words}]);
    let answer = client.post("/v1/dedup", &json!({"documents": documents, "keep": "longest"})).ok();
    assert_eq!(kept(&answer), [(3, vec![0, 6])]);
    assert_eq!(answer["kept"][0]["id"], "a");
    assert_eq!(answer["empty"], json!([{"index": 2}]));
    let failed: Vec<_> =
        answer["failed"].as_array().unwrap().iter().map(|one| (&one["index"], &one["error"]["code"])).collect();
    let invalid = json!("invalid_value");
    assert_eq!(failed, [(&json!(1), &invalid), (&json!(4), &invalid), (&json!(5), &invalid)]);
    assert_eq!(answer["failed"][0]["id"], Value::Null);
    assert_eq!(answer["summary"], json!({"documents": 7, "kept": 1, "near": 2, "exact": 0, "empty": 1, "failed": 3}));
    let first = client.post("/v1/dedup", &json!({"documents": documents})).ok();
    assert_eq!(kept(&first), [(0, vec![3, 6])]);
    assert_eq!(first["kept"][0]["duplicates"][1]["verdict"], "exact_duplicate");
    let nothing = client.post("/v1/dedup", &json!({"documents": []})).ok();
    assert_eq!((&nothing["kept"], &nothing["summary"]["documents"]), (&json!([]), &json!(0)));
}

#[test]
fn the_results_of_a_search_may_have_other_fields() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let text = "one two three four five six seven eight nine ten eleven twelve";
    let body = json!({"documents": [{"text": text, "score": 1.5, "date": "today"}, {"text": text, "rank": {"n": 2}}]});
    let ignored = client.post("/v1/dedup?extra=ignore", &body).ok();
    assert_eq!(kept(&ignored), [(0, vec![1])]);
    let refused = client.post("/v1/dedup", &body).ok();
    assert_eq!(refused["summary"]["failed"], 2);
    assert_eq!(refused["failed"][1]["error"]["errors"][0]["field"], "rank");
}

#[test]
fn a_list_that_cannot_be_compared_is_refused() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.batch_documents_max = 3).start();
    let client = Client::of(&server);
    let refused = |body: &Value| client.post("/v1/dedup", body).problem(422, "invalid_value");
    for (body, field) in [
        (json!({}), "documents"),
        (json!({"documents": 5}), "documents"),
        (json!({"documents": [], "keep": "last"}), "keep"),
        (json!({"documents": [], "settings": []}), "settings"),
        (json!({"documents": [], "settings": {"threshold": 2}}), "settings.threshold"),
        (json!({"documents": [], "settings": {"size": 2}}), "settings.size"),
        (json!({"documents": [], "size": 2}), "size"),
        (json!({"documents": [], "settings": {"key": "configured"}}), "settings.key"),
        (json!({"documents": [], "settings": {"spec": KEYED}}), "settings.key"),
    ] {
        assert_eq!(fields(&refused(&body)), [field], "{body}");
    }
    let many: Vec<_> = (0..4).map(|number| json!({"text": format!("word {number}")})).collect();
    client.post("/v1/dedup", &json!({"documents": many})).problem(413, "too_large");
    assert_eq!(client.post("/v1/dedup", &json!({"documents": &many[1..]})).ok()["summary"]["kept"], 3);
}
