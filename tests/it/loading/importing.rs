//! `hapax import` and `hapax check` read Parquet files of texts or of signatures. Signatures are decided like texts.

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Int32Array, StringArray};
use serde_json::{Value, json};

use super::table::Table;
use super::text;
use crate::support::client::Client;
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::server::Server;

fn lines(text: &[u8]) -> Vec<Value> {
    std::str::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn rows_of_texts_are_documents() {
    let dir = dir();
    let (file, verdicts) = (dir.path().join("texts.parquet"), dir.path().join("verdicts.jsonl"));
    let kept = dir.path().join("kept.jsonl");
    let rows = 5000;
    let bodies = (0..rows).map(|n| match n {
        7 => None,
        8 => Some(text(3)),
        n => Some(text(n as u64)),
    });
    let mut labels = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        labels.values().append_value(format!("site:{}", row % 2));
        labels.append(true);
    }
    Table::empty()
        .with("url", Int32Array::from_iter_values(0..rows))
        .with("content", StringArray::from_iter(bodies))
        .with("labels", labels.finish())
        .with("metadata", StringArray::from_iter_values((0..rows).map(|n| format!("{{\"b\":1.50,\"a\":{n}}}"))))
        .with("score", Int32Array::from(vec![1; rows as usize]))
        .write(&file);
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let fields = ["--id-field", "url", "--text-field", "content", "--server", &url];
    let outputs = ["--verdicts", verdicts.to_str().unwrap(), "--kept", kept.to_str().unwrap()];
    let output = run(&[&["import"], &fields[..], &outputs[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("texts.parquet, row 7: no field \"content\""), "{said}");
    let verdicts = lines(&std::fs::read(&verdicts).unwrap());
    assert_eq!(verdicts.len(), rows as usize);
    assert_eq!(
        (&verdicts[8]["row"], &verdicts[8]["verdict"]),
        (&json!(8), &json!("exact_duplicate")),
        "{}",
        verdicts[8]
    );
    let kept = lines(&std::fs::read(&kept).unwrap());
    assert_eq!(kept.len(), rows as usize - 2);
    assert_eq!((&kept[1]["url"], &kept[1]["content"]), (&json!(1), &json!(text(1))));
    let client = Client::new(url);
    let document = client.get("/v1/collections/default/documents?id=4999").ok();
    assert_eq!((&document["labels"], &document["metadata"]), (&json!({"site": "1"}), &json!({"b": 1.5, "a": 4999})));
    let raw = client.get("/v1/collections/default/documents?id=4999").text();
    assert!(raw.contains(r#""metadata":{"b":1.50,"a":4999}"#), "{raw}");
}

#[test]
fn signatures_are_decided_like_texts() {
    let dir = dir();
    let file = dir.path().join("signatures.parquet");
    let rows = [(0, text(0)), (1, text(1)), (2, text(0) + " more"), (3, text(1))];
    Table::of(rows.map(|(n, text)| (format!("page/{n}"), text))).write(&file);
    let server = Server::start(&dir.path().join("data"));
    let (url, file) = (server.url(""), file.to_str().unwrap());
    let output = run(&["import", "--server", &url, file]);
    assert!(output.status.success(), "{output:?}");
    let counts = String::from_utf8(output.stdout).unwrap();
    for (count, expected) in [("unique", 2), ("near", 1), ("exact", 1)] {
        let row = counts.lines().find(|line| line.starts_with(count)).unwrap();
        assert!(row.ends_with(&format!(" {expected}")), "{counts}");
    }
    let client = Client::new(url.clone());
    let again = client.post("/v1/collections/default/documents", &json!({ "id": "page/1", "text": text(1) })).ok();
    assert_eq!(again["outcome"], "unchanged", "{again}");
    // If a file is loaded and then checked, the answers show which of its documents are alike.
    let loaded = run(&["load", file, "--collection", "loaded", "--server", &url]);
    assert!(loaded.status.success(), "{loaded:?}");
    let checked = run(&["check", file, "--collection", "loaded", "--server", &url]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let alike: Vec<_> = lines(&checked.stdout).iter().map(|line| line["duplicate_of"].clone()).collect();
    assert_eq!(alike, [json!("page/2"), json!("page/3"), json!("page/0"), json!("page/1")]);
}

#[test]
fn a_damaged_file_loses_only_what_is_behind_the_damage() {
    let dir = dir();
    let file = dir.path().join("texts.parquet");
    let rows = 20_000_u64;
    let table = Table::empty()
        .with("id", StringArray::from_iter_values((0..rows).map(|n| n.to_string())))
        .with("text", StringArray::from_iter_values((0..rows).map(text)));
    let mut bytes = table.bytes();
    let middle = bytes.len() * 3 / 4;
    bytes[middle..middle + 4000].fill(0xFF);
    std::fs::write(&file, bytes).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let output = run(&["import", "--server", &url, file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("texts.parquet") && said.contains("or soon after it"), "{said}");
}

#[test]
fn a_row_is_one_document_whatever_it_has() {
    let dir = dir();
    let file = dir.path().join("texts.parquet");
    let pretty = "{\n  \"a\": 1,\n  \"b\": [2]\n}";
    let injected = format!("[\n{}\n]", json!({ "id": "injected", "text": text(99) }));
    let mut labels = ListBuilder::new(StringBuilder::new());
    for label in ["site:a", "site:b", "no colon", "site:c"] {
        labels.values().append_value(label);
        labels.append(true);
    }
    Table::empty()
        .with("id", StringArray::from(vec!["pretty", "injected by", "label", "fine"]))
        .with("text", StringArray::from_iter_values((0..4).map(text)))
        .with("metadata", StringArray::from(vec![Some(pretty), Some(&*injected), None, None]))
        .with("labels", labels.finish())
        .write(&file);
    let server = Server::start(&dir.path().join("data"));
    let url = server.url("");
    let output = run(&["import", "--server", &url, file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("row 1 (id \"injected by\"): metadata: ") && said.contains("row 2 (id \"label\"): labels: "),
        "{said}"
    );
    let client = Client::new(url);
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 2);
    let pretty = client.get("/v1/collections/default/documents?id=pretty").text();
    assert!(pretty.contains(r#""metadata":{"a":1,"b":[2]}"#), "{pretty}");
    client.get("/v1/collections/default/documents?id=injected").problem(404, "document_not_found");
}
