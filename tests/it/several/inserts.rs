//! An insert is decided in its own collection. The matches in the other collections are in `elsewhere`, and change
//! nothing else.

use serde_json::{Value, json};

use super::{create, places, store, text};
use crate::support::client::{Client, documents};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

/// Removes the fields that are only in an answer about several collections.
fn own(mut answer: Value) -> Value {
    let fields = answer.as_object_mut().unwrap();
    assert!(fields.remove("elsewhere").is_some() && fields.remove("collections").is_some(), "{answer}");
    answer
}

/// Replaces the name of the collection and the times.
fn comparable(mut answer: Value, name: &str) -> Value {
    if answer["collection"] == name {
        answer["collection"] = json!("the collection");
    }
    for found in answer["matches"].as_array_mut().into_iter().flatten() {
        found["first_seen"] = json!("then");
    }
    if answer.get("previous").is_some() {
        answer["previous"]["first_seen"] = json!("then");
    }
    answer
}

#[test]
fn others_never_change_an_insert() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    for name in ["twin-1", "twin-2"] {
        let settings = json!({"shingle": "word2", "threshold": 0.6});
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &settings).status, 201);
    }
    for number in 0..8 {
        store(&client, "b", &format!("b{number}"), &text(number, 0));
        store(&client, "c", &format!("c{number}"), &text(number, 3));
    }
    let inserts = [
        ("a", 1, 0, "skip"),
        ("b", 1, 40, "skip"),
        ("c", 1, 30, "link"),
        ("d", 1, 20, "store"),
        ("a", 1, 0, "skip"),
        ("a", 2, 0, "replace"),
        ("e", 30, 0, "skip"),
        ("f", 30, 0, "link"),
    ];
    let mut found = 0;
    for (id, number, changed, how) in inserts {
        let how = if how == "replace" { "on_existing=replace".into() } else { format!("on_duplicate={how}") };
        let text = text(number, changed);
        let body = json!({"id": id, "text": text});
        let alone = client.post(&format!("{}?{how}", documents("twin-1")), &body).ok();
        let joint = client.post(&format!("{}?{how}&collections=b,c", documents("twin-2")), &body).ok();
        assert_eq!(comparable(own(joint.clone()), "twin-2"), comparable(alone, "twin-1"));
        // The other collections return the same matches as in a check that asks only them and has no id.
        let checked = client.post("/v1/collections/b/check?collections=c", &json!({"text": text})).ok();
        assert_eq!(joint["elsewhere"], checked["matches"]);
        let said = joint["collections"].as_array().unwrap();
        assert_eq!(json!(said[1..]), checked["collections"]);
        assert_eq!((&said[0]["verdict"], &said[0]["collection"]), (&joint["verdict"], &json!("twin-2")));
        found += joint["elsewhere"].as_array().unwrap().len();
    }
    assert!(found > 5, "{found}");
    let records = |name: &str| {
        let mut page = client.get(&documents(name)).ok();
        for document in page["documents"].as_array_mut().unwrap() {
            for field in ["first_seen", "id_first_seen"] {
                document[field] = json!("then");
            }
        }
        page
    };
    assert_eq!(records("twin-1"), records("twin-2"));
}

#[test]
fn a_batch_and_a_bulk_request_answer_as_single_inserts_do() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    for number in 0..4 {
        store(&client, "b", &format!("b{number}"), &text(number, 0));
    }
    for name in ["one", "batch", "bulk"] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({"shingle": "word2"})).status, 201);
    }
    let inserts: Vec<Value> =
        (0..8).map(|at| json!({"id": format!("d{at}"), "text": text(at % 6, 40), "metadata": {"at": at}})).collect();
    let target = |name: &str, route: &str| format!("/v1/collections/{name}/{route}collections=b,c&limit=2");
    let singles: Vec<Value> = inserts.iter().map(|body| client.post(&target("one", "documents?"), body).ok()).collect();
    assert_eq!(places(&singles[0]["elsewhere"]), [("b", "b0")], "{singles:?}");
    let batch = client.post(&target("batch", "batch?"), &json!({"op": "insert", "documents": inserts})).ok();
    let lines: String = inserts.iter().map(|document| document.to_string() + "\n").collect();
    let headers = [("content-type", "application/x-ndjson")];
    let lines = client.send("POST", &target("bulk", "bulk?op=insert&"), &headers, lines.as_bytes()).lines();
    let plain = |answer: &Value, name: &str| {
        let mut answer = comparable(answer.clone(), name);
        answer["collections"][0]["collection"] = json!("the collection");
        for found in answer["matches"].as_array_mut().unwrap() {
            found["collection"] = json!(null);
        }
        answer
    };
    for (at, single) in singles.iter().enumerate() {
        let single = plain(single, "one");
        assert_eq!(plain(&batch["results"][at], "batch"), single);
        let mut line = lines[at].clone();
        line.as_object_mut().unwrap().retain(|name, _| name != "kind" && name != "line");
        assert_eq!(plain(&line, "bulk"), single);
    }
}

#[test]
fn an_id_belongs_to_the_collection_of_the_path() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    for name in ["a", "c"] {
        store(&client, name, "x", &text(1, 0));
    }
    let body = json!({"id": "x", "text": text(1, 0)});
    let answer = client.post("/v1/collections/a/check?collections=c", &body).ok();
    assert_eq!((places(&answer["matches"]), &answer["stored"]), (vec![("c", "x")], &json!(true)), "{answer}");
    let answer = client.post(&format!("{}?collections=c", documents("a")), &body).ok();
    assert_eq!((&answer["outcome"], places(&answer["elsewhere"])), (&json!("unchanged"), vec![("c", "x")]));
}

#[test]
fn an_empty_document_is_empty_only_if_no_collection_finds_a_shingle_in_it() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (name, shingle) in [("words", "word2"), ("characters", "char4")] {
        assert_eq!(client.json("PUT", &format!("/v1/collections/{name}"), &json!({"shingle": shingle})).status, 201);
    }
    let check =
        |text: &str| client.post("/v1/collections/words/check?collections=characters", &json!({"text": text})).ok();
    let verdicts = |answer: &Value| {
        let said = answer["collections"].as_array().unwrap().iter().map(|said| said["verdict"].clone());
        std::iter::once(answer["verdict"].clone()).chain(said).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&check("")), ["empty", "empty", "empty"]);
    assert_eq!(verdicts(&check("!!!! ???? !!!!"))[1], "empty");
    let target = format!("{}?collections=characters", documents("words"));
    let inserted = client.post(&target, &json!({"id": "e", "text": ""})).ok();
    assert_eq!((&inserted["outcome"], &inserted["elsewhere"]), (&json!("skipped"), &json!([])), "{inserted}");
}

#[test]
fn an_answer_of_several_collections_stays_within_its_bytes() {
    let dir = dir();
    let bytes_max = 64 * 1024;
    let server = Setup::new(&dir).limits(|limits| limits.answer_bytes_max = bytes_max).start();
    let client = Client::of(&server);
    create(&client);
    let metadata = json!({"long": "m".repeat(10_000)});
    for number in 0..40 {
        for name in ["a", "c"] {
            let body = json!({"id": format!("{name}{number:02}"), "text": text(1, 0), "metadata": metadata});
            client.post(&format!("{}?on_duplicate=store", documents(name)), &body).ok();
        }
    }
    for (more, with) in [(0, "none"), (1, "metadata")] {
        let query = format!("collections=c&limit=1000&with={with}");
        let target = format!("/v1/collections/a/check?{query}");
        let answer = client.post(&target, &json!({"text": text(1, 0)}));
        assert!(answer.body.len() <= bytes_max, "{}", answer.body.len());
        let answer = answer.ok();
        let (listed, omitted) = (answer["matches"].as_array().unwrap(), &answer["omitted"]);
        let left_out = omitted["matches"].as_u64().unwrap_or(0);
        assert_eq!(listed.len() as u64 + left_out, 80 + more, "{omitted}");
        let expected: Vec<String> =
            ["a", "c"].iter().flat_map(|name| (0..40).map(move |number| format!("{name}{number:02}"))).collect();
        assert!(listed.iter().zip(&expected).all(|(found, id)| found["id"] == **id), "there is a hole");
        assert_eq!(omitted.is_null(), with == "none", "{omitted}");

        let target = format!("{}?{query}&on_duplicate=store", documents("a"));
        let body = json!({"id": format!("new-{with}"), "text": text(1, 40), "metadata": {"x": 1}});
        let answer = client.post(&target, &body);
        assert!(answer.body.len() <= bytes_max, "{}", answer.body.len());
        let answer = answer.ok();
        let lists = ["matches", "elsewhere"].map(|name| answer[name].as_array().unwrap().len() as u64);
        let left_out = answer["omitted"]["matches"].as_u64().unwrap_or(0);
        assert_eq!(lists[0] + lists[1] + left_out, 80 + more, "{lists:?} {}", answer["omitted"]);
        assert_eq!(answer["outcome"], "inserted");
    }
}
