//! A key with `scores = "verdict"` learns whether a document is a duplicate. It does not learn how similar the document
//! is, to which document, or anything else.

use hapax::http::ROUTES;
use serde_json::{Value, json};

use super::file;
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::command::hapax;
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};

const SEEN: [&str; 6] = ["verdict", "outcome", "stored", "collection", "id", "complete"];

fn server(dir: &Dir) -> Local {
    let (coarse, all) =
        (["check", "insert", "delete"], ["check", "read", "insert", "delete", "sign", "admin", "metrics"]);
    let keys = [("coarse", &coarse[..], "scores = \"verdict\""), ("full", &all[..], "")];
    Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(dir) }.start()
}

/// A text that shares most of its words with `words(number)`.
fn near(number: u64) -> String {
    words(number).replacen(&format!("w{number}x39"), "changed", 1)
}

#[test]
fn every_other_route_is_forbidden() {
    let dir = dir();
    let server = server(&dir);
    let coarse = Client::of(&server).key("coarse");
    let allowed = [
        ("POST", CHECK),
        ("POST", DOCUMENTS),
        ("DELETE", DOCUMENTS),
        ("POST", "/v1/collections/default/documents/delete"),
        ("POST", "/v1/collections/default/batch"),
        ("POST", "/v1/collections/default/bulk"),
        ("GET", "/v1/access"),
    ];
    let mut open = 0;
    for route in ROUTES.iter().filter(|route| !["/livez", "/readyz"].contains(&route.path)) {
        let target = route.path.replace("{collection}", "default");
        let answer = coarse.send(route.method.as_str(), &target, &[], b"");
        let may = allowed.contains(&(route.method.as_str(), &*target));
        open += usize::from(may);
        assert_eq!(answer.status == 403, !may, "{} {target}: {}", route.method, answer.status);
        // The key may use every parameter of an allowed route, but some parameters only with their default value.
        for name in route.query.iter().filter(|_| may) {
            let value = match *name {
                "threshold" => "0.5",
                "limit" => "1",
                "with" => "metadata",
                "explain" => "true",
                _ => continue,
            };
            let answer = coarse.send(route.method.as_str(), &format!("{target}?{name}={value}"), &[], b"");
            let problem = answer.problem(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains(&format!("`{name}`")), "{problem}");
        }
    }
    assert_eq!(open, allowed.len());
}

/// Checks that the answer contains only the allowed fields, at any depth.
fn only_seen(answer: &Value) {
    let fields: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(fields.iter().all(|field| SEEN.contains(field)), "{answer}");
    for field in SEEN.iter().filter(|field| **field != "id") {
        assert!(fields.contains(field), "{field} of {answer}");
    }
}

#[test]
fn answers_have_six_fields() {
    let dir = dir();
    let server = server(&dir);
    let (coarse, full) = (Client::of(&server).key("coarse"), Client::of(&server).key("full"));
    full.post(DOCUMENTS, &json!({"id": "secret-id", "text": words(1), "metadata": {"secret": 1}})).ok();

    let checked = coarse.post(CHECK, &json!({"id": "x", "text": near(1)})).ok();
    only_seen(&checked);
    assert_eq!(checked["verdict"], "near_duplicate", "{checked}");
    only_seen(&coarse.text(CHECK, words(1).as_bytes()).ok());
    only_seen(&coarse.text(CHECK, near(1).repeat(200).as_bytes()).ok());
    let inserted = coarse
        .post(&format!("{DOCUMENTS}?on_duplicate=store&on_existing=keep"), &json!({"id": "x", "text": near(1)}))
        .ok();
    only_seen(&inserted);
    assert_eq!((&inserted["outcome"], &inserted["stored"]), (&json!("inserted"), &json!(true)));
    // The first request repeats a document, so its answer repeats the first verdict. The second has other content for
    // this id, so its answer could contain the earlier content.
    only_seen(&coarse.post(DOCUMENTS, &json!({"id": "x", "text": near(1)})).ok());
    only_seen(&coarse.post(CHECK, &json!({"id": "x", "text": words(1)})).ok());

    let documents =
        [json!({"id": "a", "text": near(1)}), json!({"id": "x", "text": words(7)}), json!({"id": "e", "text": ""})];
    let batch = coarse
        .post("/v1/collections/default/batch?on_duplicate=link", &json!({"op": "insert", "documents": documents}))
        .ok();
    only_seen(&batch["results"][0]);
    assert_eq!(batch["results"][1]["error"]["code"], "id_conflict", "{batch}");
    only_seen(&batch["results"][2]);
    let lines: String = documents.iter().map(|document| document.to_string() + "\n").collect();
    let target = "/v1/collections/default/bulk?op=check&duplex=true&invalid=replace";
    let lines = coarse.send("POST", target, &[("content-type", "application/x-ndjson")], lines.as_bytes()).lines();
    assert_eq!(lines.len(), 4);
    for line in &lines[..3] {
        let mut line = line.clone();
        assert_eq!(line.as_object_mut().unwrap().remove("kind"), Some(json!("verdict")));
        line.as_object_mut().unwrap().remove("line").expect("its number");
        only_seen(&line);
    }
    let conflict = coarse.post(DOCUMENTS, &json!({"id": "x", "text": words(7)}));
    conflict.problem(409, "id_conflict");
    for text in [checked.to_string(), inserted.to_string(), batch.to_string(), conflict.text(), format!("{lines:?}")] {
        assert!(!text.contains("secret") && !text.contains("0."), "{text}");
    }
    assert_eq!(coarse.delete(&format!("{DOCUMENTS}?id=x")).ok(), json!({"deleted": 1}));
    coarse.delete(&format!("{DOCUMENTS}?label=site:a")).problem(403, "forbidden");
    // The other key still sees everything.
    assert_eq!(full.post(CHECK, &json!({"text": words(1)})).ok()["duplicate_of"], "secret-id");
}

#[test]
fn several_collections_tell_no_more_than_each_of_them_alone() {
    let dir = dir();
    let server = server(&dir);
    let (coarse, full) = (Client::of(&server).key("coarse"), Client::of(&server).key("full"));
    assert_eq!(full.json("PUT", "/v1/collections/other", &json!({"threshold": 0.7})).status, 201);
    full.post("/v1/collections/other/documents", &json!({"id": "secret-id", "text": words(1)})).ok();
    let body = json!({"id": "x", "text": near(1)});
    let alone = ["default", "other"].map(|name| {
        let answer = coarse.post(&format!("/v1/collections/{name}/check"), &body).ok();
        json!({"collection": name, "verdict": answer["verdict"], "complete": answer["complete"]})
    });
    assert_eq!(alone[1]["verdict"], "near_duplicate");
    let batch = json!({"op": "insert", "documents": [body]});
    let requests = [("check", &body, "near_duplicate"), ("documents", &body, "unique"), ("batch", &batch, "unique")];
    for (route, body, verdict) in requests {
        let answer = coarse.post(&format!("/v1/collections/default/{route}?collections=other"), body).ok();
        let mut answer = answer.pointer("/results/0").unwrap_or(&answer).clone();
        assert!(!answer.to_string().contains("secret") && !answer.to_string().contains("0."), "{answer}");
        assert_eq!(answer["verdict"], verdict, "{answer}");
        assert_eq!(answer.as_object_mut().unwrap().remove("collections").unwrap(), json!(alone));
        only_seen(&answer);
        coarse.delete(&format!("{DOCUMENTS}?id=x")).ok();
    }
}

/// A client that was generated from `openapi.yaml` sends the default of each parameter. In an earlier version, it could
/// not use such a key at all.
#[test]
fn defaults_can_be_sent() {
    let dir = dir();
    let server = server(&dir);
    let coarse = Client::of(&server).key("coarse");
    let checked =
        coarse.post(&format!("{CHECK}?limit=10&with=none&invalid=refuse&explain=false"), &json!({"text": "a"}));
    only_seen(&checked.ok());
    let defaults = "limit=10&with=none&on_duplicate=skip&on_existing=conflict&invalid=refuse";
    only_seen(&coarse.post(&format!("{DOCUMENTS}?{defaults}&explain=false"), &json!({"id": "a", "text": "a"})).ok());
    let documents = json!({"op": "delete", "documents": [{"id": "a"}]});
    let batch = coarse.post(&format!("/v1/collections/default/batch?{defaults}"), &documents).ok();
    assert_eq!(batch["results"], json!([{"id": "a", "deleted": 1}]));
}

#[test]
fn check_and_import_work_with_their_defaults() {
    let dir = dir();
    let server = server(&dir);
    let (url, file, verdicts) = (server.url(), dir.path().join("in.jsonl"), dir.path().join("verdicts.jsonl"));
    std::fs::write(&file, json!({"id": "a", "text": words(1)}).to_string()).unwrap();
    let run = |verb: &str, more: &[&str]| {
        let arguments = [&[verb, "--server", &url, file.to_str().unwrap()], more].concat();
        let output = hapax(&arguments).env("HAPAX__AUTH__API_KEY", "coarse").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run("check", &[]), (Some(0), String::new()));
    assert_eq!(run("import", &["--verdicts", verdicts.to_str().unwrap()]), (Some(0), String::new()));
    for (verb, more, parameter) in [
        ("import", [].as_slice(), "limit"),
        ("check", &["--limit", "1"], "limit"),
        ("check", &["--threshold", "0.5"], "threshold"),
        ("check", &["--scope", "source:a"], "scope"),
    ] {
        let (code, said) = run(verb, more);
        assert!(code == Some(2) && said.contains(&format!("the parameter `{parameter}` is not allowed")), "{said}");
    }
}

#[test]
fn signatures_cannot_be_sent() {
    let dir = dir();
    let server = server(&dir);
    let (coarse, full) = (Client::of(&server).key("coarse"), Client::of(&server).key("full"));
    let signed = full.post("/v1/collections/default/sign", &json!({"text": words(1)})).ok();
    let document = json!({"id": "s", "signature": signed["signature"], "fingerprint": signed["fingerprint"]});
    full.post(CHECK, &document).ok();
    coarse.post(CHECK, &document).problem(403, "forbidden");
    coarse.post(CHECK, &json!({"set": ["a", "b"]})).problem(403, "forbidden");
    let batch = coarse.post("/v1/collections/default/batch", &json!({"op": "check", "documents": [document]})).ok();
    assert_eq!(batch["results"][0]["error"]["code"], "forbidden", "{batch}");
}

#[test]
fn a_key_for_verdicts_cannot_have_a_scope_that_shows_more() {
    for scope in ["read", "sign", "admin", "metrics", "explain"] {
        let dir = dir();
        let path = file::write(dir.path(), &[("coarse", &["check", scope][..], "scores = \"verdict\"")]);
        let refused = hapax::keys::KeysFile::read(&path).expect_err(scope).to_string();
        assert!(refused.contains(&format!("`{scope}`")), "{refused}");
    }
}
