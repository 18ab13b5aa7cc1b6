//! If a list of collections is not valid, or the key is not for one of them, the request is refused before any work.

use serde_json::{Value, json};

use super::{create, places, store, text};
use crate::keys::file;
use crate::support::client::{Client, documents};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

#[test]
fn a_list_must_have_each_name_once_and_not_that_of_the_path() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    create(&client);
    let many = (0..16).map(|at| format!("n{at}")).collect::<Vec<_>>().join(",");
    let document = json!({"id": "x", "text": text(1, 0)});
    let batch = json!({"op": "insert", "documents": [document]});
    let routes = ["check?", "documents?", "batch?", "bulk?op=check&"];
    for route in routes {
        let body = if route == "batch?" { &batch } else { &document };
        let media = if route.starts_with("bulk") { "application/x-ndjson" } else { "application/json" };
        let send = |listed: &str| {
            let target = format!("/v1/collections/a/{route}collections={listed}");
            client.send("POST", &target, &[("content-type", media)], body.to_string().as_bytes())
        };
        for (listed, why) in [
            ("", "at least one other"),
            ("b,", "`` is not a name"),
            ("B", "`B` is not a name"),
            ("b,a", "`a`, which is always asked first"),
            ("b,c,b", "`b` twice"),
            (&*many, "names 16 collections; at most 15"),
        ] {
            let problem = send(listed).problem(422, "invalid_value");
            assert_eq!(problem["errors"][0]["field"], "collections");
            assert!(problem["detail"].as_str().unwrap().contains(why), "{listed}: {problem}");
        }
        let problem = send("b,none").problem(404, "collection_not_found");
        assert!(problem["detail"].as_str().unwrap().contains("`none`"), "{problem}");
    }
    assert_eq!(client.get("/v1/collections/a").ok()["documents"], 0);
    // An operation without a lookup cannot ask other collections.
    let delete = json!({"op": "delete", "documents": [{"id": "x"}]});
    let problem = client.post("/v1/collections/a/batch?collections=b", &delete).problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["field"], "collections");
    let target = "/v1/collections/a/bulk?op=delete&collections=b";
    client
        .send("POST", target, &[("content-type", "application/x-ndjson")], b"{\"id\":\"x\"}\n")
        .problem(422, "invalid_value");
    client.post("/v1/collections/a/sign?collections=b", &json!({"text": "a"})).problem(422, "invalid_value");
}

#[test]
fn a_key_must_be_for_each_collection_and_does_not_learn_which_exist() {
    let dir = dir();
    let keys = [
        ("some", &["check", "insert"][..], "collections = [\"a\", \"b\", \"mine-*\"]"),
        ("reader", &["check"][..], ""),
        ("all", &["check", "read", "insert", "admin", "explain"][..], ""),
    ];
    let server = Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(&dir) }.start();
    let (some, all) = (Client::of(&server).key("some"), Client::of(&server).key("all"));
    create(&all);
    store(&all, "b", "b1", &text(1, 0));
    let body = json!({"id": "x", "text": text(1, 20)});
    let allowed = some.post("/v1/collections/a/check?collections=b", &body).ok();
    assert_eq!(places(&allowed["matches"]), [("b", "b1")]);
    // `c` exists and `none` does not.
    let refused = |listed: &str, route: &str| {
        let answer = some.post(&format!("/v1/collections/a/{route}?collections={listed}"), &body);
        answer.problem(403, "forbidden")["detail"].as_str().unwrap().to_owned()
    };
    for route in ["check", "documents"] {
        for name in ["c", "none"] {
            assert_eq!(refused(name, route), format!("the key `some` is not for the collection `{name}`"));
        }
        // If a list has several names, the refusal does not reveal either whether a collection exists.
        assert_eq!(refused("mine-none,c", route), refused("b,c", route));
        some.post(&format!("/v1/collections/a/{route}?collections=b,mine-none"), &body)
            .problem(404, "collection_not_found");
    }
    assert_eq!(all.get("/v1/collections/a").ok()["documents"], 0, "nothing was stored");
    Client::of(&server)
        .key("reader")
        .post(&format!("{}?collections=b", documents("a")), &body)
        .problem(403, "forbidden");
    let explained = "/v1/collections/a/check?collections=b&explain=true";
    some.post(explained, &body).problem(403, "forbidden");
    let answer = all.post(explained, &body).ok();
    assert_eq!(answer["explanation"]["lookup"]["bands"], 64);
    assert_eq!(answer["collections"][1]["lookup"]["bands"], 64, "{answer}");
    let inserted = all.post(&format!("{}?collections=b,c&explain=true", documents("a")), &body).ok();
    let stages: Vec<&String> = inserted["explanation"]["stages_us"].as_object().unwrap().keys().collect();
    assert!(stages.iter().any(|stage| *stage == "elsewhere"), "{stages:?}");
    assert_eq!(inserted["collections"][2]["lookup"]["bands"], 64, "{inserted}");
}

#[test]
fn each_collection_counts_as_a_document_for_the_limits_of_a_key() {
    let dir = dir();
    let keys = [
        ("slow", &["check", "insert"][..], "limits = { documents_per_second = 1 }"),
        ("all", &["check", "read", "insert", "admin"][..], ""),
    ];
    let server = Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(&dir) }.start();
    create(&Client::of(&server).key("all"));
    let slow = Client::of(&server).key("slow");
    let wait = |answer: crate::support::client::Answer| {
        answer.problem(429, "rate_limited");
        answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap()
    };
    let documents: Vec<Value> = (0..100).map(|at| json!({"text": text(at, 0)})).collect();
    let batch = json!({"op": "check", "documents": documents});
    // An accepted request is done completely, and its lookups in the other collections are counted afterwards. In an
    // earlier version, such a batch was refused each time: its own documents left no allowance for these lookups.
    let answer = slow.post("/v1/collections/a/batch?collections=b,c", &batch).ok();
    assert_eq!(answer["results"].as_array().unwrap().len(), 100, "{answer}");
    let refused = slow.post("/v1/collections/a/check?collections=b", &json!({"text": text(0, 0)}));
    assert!((290..=301).contains(&wait(refused)));
}
