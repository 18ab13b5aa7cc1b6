//! Each decision has one line in the audit log, with the right fields, and without texts, metadata and keys.

use serde_json::{Value, json};

use super::{Audited, audit, near};
use crate::keys::file;
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::until::until;

/// Words that must not be in any file.
const SECRETS: [&str; 4] = ["w1x", "zanzibar", "metadatum", "coarse-secret-key"];

fn of<'a>(lines: &'a [Value], id: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["id"] == id).collect()
}

#[test]
fn each_decision_has_one_line_with_its_evidence() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    let document = |id: &str, text: &str| json!({"id": id, "text": text, "metadata": {"m": "metadatum"}});
    let first = client.send(
        "POST",
        DOCUMENTS,
        &[("content-type", "application/json"), ("x-request-id", "the-first")],
        document("a", &words(1)).to_string().as_bytes(),
    );
    assert_eq!(first.status, 200);
    let linked = client.post(&format!("{DOCUMENTS}?on_duplicate=link&with=metadata"), &document("b", &near(1))).ok();
    client.post(DOCUMENTS, &document("a", &words(1))).ok();
    client.post(CHECK, &document("c", &words(1))).ok();
    client.post(DOCUMENTS, &document("a", &words(2))).problem(409, "id_conflict");
    let batch = json!({"op": "insert", "documents": [document("d", &words(1)), document("e", "zanzibar …")]});
    client.post("/v1/collections/default/batch", &batch).ok();
    client.bulk("op=insert", &format!("{}\nzanzibar\n", document("f", &words(3))));
    client.bulk("op=delete", "{\"id\": \"f\"}\n{\"id\": \"none\"}\n");
    client.delete(&format!("{DOCUMENTS}?id=a")).ok();
    client.post("/v1/collections/default/documents/delete", &json!({"ids": ["b", "gone"]})).ok();
    assert!(server.terminate().success());

    let (text, lines) = (audited.text(), audited.lines());
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert_eq!(lines.len(), 11, "{text}");
    let [stored, again, deleted] = of(&lines, "a")[..] else { panic!("{text}") };
    assert_eq!((&stored["request_id"], &stored["key"]), (&json!("the-first"), &Value::Null));
    assert_eq!(
        (&stored["op"], &stored["verdict"], &stored["outcome"]),
        (&json!("insert"), &json!("unique"), &json!("inserted"))
    );
    assert_eq!((&stored["bands"], &stored["rows"], &stored["threshold"]), (&json!(31), &json!(8), &json!(0.8)));
    assert_eq!((&stored["stored"], &stored["complete"], &stored["matches"]), (&json!(true), &json!(true), &json!([])));
    assert_eq!((&again["outcome"], &again["content"]), (&json!("unchanged"), &stored["content"]));
    assert_eq!(stored["content"].as_str().unwrap().len(), 32);
    assert_eq!((&deleted["op"], &deleted["deleted"]), (&json!("delete"), &json!(true)));

    let [near, gone] = of(&lines, "b")[..] else { panic!("{text}") };
    for field in ["verdict", "outcome", "stored", "duplicate_of", "similarity", "representative", "complete"] {
        assert_eq!(near[field], linked[field], "{field}");
    }
    for field in ["id", "similarity", "low", "high", "method", "first_seen"] {
        assert_eq!(near["matches"][0][field], linked["matches"][0][field], "{field}");
    }
    assert!(near["matches"][0].get("metadata").is_none() && linked["matches"][0].get("metadata").is_some());
    assert_eq!(gone["deleted"], json!(true));
    assert_eq!(of(&lines, "d")[0]["verdict"], "exact_duplicate");
    assert_eq!(of(&lines, "f").len(), 2);
    assert_eq!([of(&lines, "none")[0], of(&lines, "gone")[0]].map(|line| line["deleted"].clone()), [false, false]);
    assert!(of(&lines, "c").is_empty(), "checks have no lines");
}

#[test]
fn a_merge_has_a_line_and_its_documents_have_none() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    client.json("PUT", "/v1/collections/crawl", &json!({}));
    client.post("/v1/collections/crawl/documents", &json!({"id": "a", "text": words(1)})).ok();
    let input = json!({"from": "crawl", "on_existing": "replace"});
    assert_eq!(client.post("/v1/collections/default/merge", &input).status, 202);
    until("the merge ends", || client.get("/v1/jobs?state=running").ok() == json!({ "jobs": [] }));
    client.delete(&format!("{DOCUMENTS}?label=a:b"));
    assert!(server.terminate().success());
    let lines = audited.lines();
    let shown: Vec<_> = lines.iter().map(|line| (&line["op"], &line["collection"])).collect();
    let expected = [("insert", "crawl"), ("merge", "default"), ("delete", "default")];
    assert_eq!(shown, expected.map(|(op, collection)| (json!(op), json!(collection))).each_ref().map(|(a, b)| (a, b)));
    let merge = &lines[1];
    assert_eq!(
        (&merge["from"], &merge["documents"], &merge["on_duplicate"], &merge["on_existing"]),
        (&json!("crawl"), &json!(1), &json!("skip"), &json!("replace"))
    );
    let table = audit(&audited.log(), &["--table", "--op", "merge"]);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.contains("begun") && table.contains("default: 1 document from crawl"), "{table}");
}

#[test]
fn checks_have_lines_if_asked_for_and_a_line_has_more_than_its_key_sees() {
    let audited = Audited::new(&[("AUDIT__CHECKS", "true")]);
    let keys = [
        ("coarse-secret-key", &["check", "insert", "delete"][..], "scores = \"verdict\""),
        ("full", &["check", "read", "insert"][..], ""),
    ];
    let keys_file = file::write(audited.dir.path(), &keys);
    // The name of a key is in the log, but its text is not.
    let keys_of = std::fs::read_to_string(&keys_file).unwrap();
    let named = keys_of.replace("name = \"coarse-secret-key\"", "name = \"crawler\"");
    let named = named.replace("id = \"coarse-secret-key\"", "id = \"k1\"");
    std::fs::write(&keys_file, named).unwrap();
    let mut audited = audited;
    audited.variables.push(("HAPAX__AUTH__KEYS_FILE".to_owned(), keys_file.to_str().unwrap().to_owned()));
    let server = audited.start();
    let (coarse, full) =
        (Client::new(server.url("")).key("coarse-secret-key"), Client::new(server.url("")).key("full"));
    full.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    assert!(coarse.post(CHECK, &json!({"id": "x", "text": near(1)})).ok().get("matches").is_none());
    coarse.text(CHECK, words(1).as_bytes()).ok();
    let batch = json!({"op": "check", "documents": [{"text": near(1)}, {"text": ""}]});
    coarse.post("/v1/collections/default/batch", &batch).ok();
    coarse.bulk("op=check", &format!("{}\n", json!({"text": near(1)})));
    full.post("/v1/collections/default/compare", &json!({"a": {"text": words(1)}, "b": {"text": near(1)}})).ok();
    assert!(server.terminate().success());

    let (text, lines) = (audited.text(), audited.lines());
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!((&lines[0]["op"], &lines[0]["key"]), (&json!("insert"), &json!("full")));
    for line in &lines[1..] {
        assert_eq!(
            (&line["op"], &line["key"], &line["outcome"]),
            (&json!("check"), &json!("crawler"), &json!("checked"))
        );
        let empty = line["verdict"] == "empty";
        assert_eq!((line.get("content").is_none(), line.get("duplicate_of").is_none()), (empty, empty), "{line}");
    }
    assert_eq!(lines[1]["matches"][0]["id"], "a");
    assert_eq!(lines[2]["content"], lines[0]["content"]);
}

#[test]
fn each_lookup_in_several_collections_has_a_line() {
    let audited = Audited::new(&[("AUDIT__CHECKS", "true")]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/other", &json!({"shingle": "char5", "threshold": 0.7})).status, 201);
    client.post("/v1/collections/other/documents", &json!({"id": "x", "text": words(1)})).ok();
    client.post(&format!("{CHECK}?collections=other"), &json!({"id": "c", "text": words(1)})).ok();
    client.post(&format!("{DOCUMENTS}?collections=other"), &json!({"id": "i", "text": words(1)})).ok();
    let batch = json!({"op": "insert", "documents": [{"id": "b", "text": words(1)}]});
    client.post("/v1/collections/default/batch?collections=other", &batch).ok();
    assert!(server.terminate().success());
    let lines = audited.lines();
    let facts = |line: &Value| {
        let text = |field: &str| line[field].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", text("op"), text("collection"), text("id"), text("verdict"))
    };
    let mut told: Vec<String> = lines[1..].iter().map(facts).collect();
    // The line of an insert is written when the insert is durable. This can be before or after the lines of lookups.
    told.sort_unstable();
    let expected = [
        "check default c unique",
        "check other - exact_duplicate",
        "check other - exact_duplicate",
        "check other - exact_duplicate",
        "insert default b exact_duplicate",
        "insert default i unique",
    ];
    assert_eq!(told, expected);
    let of = |name: &'static str| lines[1..].iter().filter(move |line| line["collection"] == name);
    assert!(of("other").all(|line| line["threshold"] == 0.7 && line["spec"] != lines[1]["spec"]), "{lines:?}");
    // The two lines of the check have one request id.
    assert_eq!(lines[1]["request_id"], lines[2]["request_id"]);
    let of_check = of("other").map(|line| &line["content"]).collect::<std::collections::HashSet<_>>();
    assert_eq!(of_check.len(), 1, "one content under one spec");
}
