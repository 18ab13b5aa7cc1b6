//! `hapax audit`: the conditions that select lines, and the output.

use std::fs;

use serde_json::json;

use super::{Audited, audit, near, printed};
use crate::support::client::{Client, DOCUMENTS, words};
use crate::support::library::dir;

#[test]
fn conditions_choose_lines() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PUT", "/v1/collections/news", &json!({})).status, 201);
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    client.post(&format!("{DOCUMENTS}?on_duplicate=store"), &json!({"id": "b", "text": near(1)})).ok();
    client.post("/v1/collections/news/documents", &json!({"id": "a", "text": words(2)})).ok();
    client.send("DELETE", &format!("{DOCUMENTS}?id=b"), &[("x-request-id", "removal")], b"");
    assert!(server.terminate().success());
    let chosen = |arguments: &[&str]| {
        let (status, lines) = printed(&audit(&audited.log(), arguments));
        assert_eq!(status, 0, "{arguments:?}");
        lines
            .iter()
            .map(|line| format!("{}/{}", line["collection"].as_str().unwrap(), line["id"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let all = ["default/a", "default/b", "news/a", "default/b"];
    assert_eq!(chosen(&[]), all);
    assert_eq!(chosen(&["--collection", "news"]), ["news/a"]);
    assert_eq!(chosen(&["--id", "a"]), ["default/a", "news/a"]);
    assert_eq!(chosen(&["--matched", "a"]), ["default/b"]);
    assert_eq!(chosen(&["--verdict", "near_duplicate"]), ["default/b"]);
    assert_eq!(chosen(&["--op", "delete"]), ["default/b"]);
    assert_eq!(chosen(&["--request-id", "removal"]), ["default/b"]);
    assert_eq!(chosen(&["--key", "crawler"]), Vec::<String>::new());
    assert_eq!(chosen(&["--since", "1h"]), all);
    assert_eq!(chosen(&["--until", "1h"]), Vec::<String>::new());
    assert_eq!(chosen(&["--since", "2020-01-01", "--until", "2999-01-01T00:00:00Z", "--op", "insert"]).len(), 3);
    let table = String::from_utf8(audit(&audited.log(), &["--table", "--id", "b"]).stdout).unwrap();
    let rows: Vec<_> = table.lines().collect();
    assert!(rows.len() == 3 && rows[0].starts_with("TIME "), "{table}");
    assert!(rows[1].ends_with("  default: b ~ a") && rows[1].contains(" near_duplicate "), "{table}");
    assert!(rows[2].ends_with("  default: b") && rows[2].contains(" deleted "), "{table}");
}

#[test]
fn what_is_wrong_is_said() {
    let dir = dir();
    let said = |arguments: &[&str]| {
        let output = audit(dir.path(), arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, empty) = said(&[]);
    assert!(status == 0 && empty.contains("has no files of an audit log"), "{empty}");
    let (status, wrong) = said(&["--since", "yesterday"]);
    assert!(status == 2 && wrong.contains("--since yesterday: must be a time such as"), "{wrong}");
    let (status, missing) = said(&["/no/such/place"]);
    assert!(status == 2 && missing.contains("/no/such/place: there is no such file or directory"), "{missing}");
    let file = dir.path().join("notes.txt");
    fs::write(&file, "not JSON\n").unwrap();
    let (status, foreign) = said(&[file.to_str().unwrap()]);
    assert!(status == 1 && foreign.contains("line 1: not a line of an audit log"), "{foreign}");
    let (status, unreachable) = said(&["--compare", "--server", "http://127.0.0.1:9"]);
    assert!(status == 2 && unreachable.contains("cannot reach"), "{unreachable}");
}
