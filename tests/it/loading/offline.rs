//! `hapax load --data-dir`.

use arrow_array::StringArray;
use serde_json::json;

use super::table::Table;
use super::text;
use crate::support::client::Client;
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::server::Server;

#[test]
fn what_was_loaded_counts_as_posted() {
    let dir = dir();
    let (file, data) = (dir.path().join("texts.parquet"), dir.path().join("data"));
    let rows = [(0, text(0)), (1, text(1)), (2, String::new()), (3, text(0) + " more"), (4, text(4))];
    let table = Table::of(rows.map(|(n, text)| (format!("page/{n}"), text)));
    let links = StringArray::from(vec![None, None, None, Some("page/0"), None]);
    table.with("representative", links).with("url", StringArray::from(vec!["x"; 5])).write(&file);
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let output = run(&["load", file, "--collection", "texts", "--data-dir", data]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for expected in [
        "columns that are not loaded: url",
        "loaded collection `texts`: 4 documents",
        "1 of them is a link",
        "left out 1 row without a signature",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let verified = run(&["verify", "--data-dir", data, "--collection", "texts"]);
    assert!(verified.status.success(), "{verified:?}");

    let server = Server::start(std::path::Path::new(data));
    let client = Client::new(server.url(""));
    let post =
        |id: &str, text: &str| client.post("/v1/collections/texts/documents", &json!({ "id": id, "text": text })).ok();
    assert_eq!(post("page/1", &text(1))["outcome"], "unchanged");
    let copy = post("copy", &text(1));
    assert_eq!((&copy["verdict"], &copy["duplicate_of"]), (&json!("exact_duplicate"), &json!("page/1")), "{copy}");
    assert_eq!(post("page/2", &text(2))["outcome"], "inserted", "an empty text was not stored");
    let link = client.get("/v1/collections/texts/documents?id=page/3").ok();
    assert_eq!((&link["linked"], &link["representative"]), (&json!(true), &json!("page/0")), "{link}");
    assert_eq!((&link["verdict"], &link["duplicate_of"]), (&json!("near_duplicate"), &json!("page/0")), "{link}");
    assert_eq!(post("page/3", &(text(0) + " more"))["outcome"], "unchanged");
}

#[test]
fn several_files_become_one_collection_in_their_order() {
    let dir = dir();
    for part in 0..3_u64 {
        let rows = (0..100).map(|n| (format!("page/{part}/{n}"), text(part * 100 + n)));
        Table::of(rows).write(&dir.path().join(format!("part-{part}.parquet")));
    }
    let (pattern, data) = (dir.path().join("part-*.parquet"), dir.path().join("data"));
    let (pattern, data) = (pattern.to_str().unwrap(), data.to_str().unwrap());
    let output = run(&["load", pattern, "--collection", "all", "--data-dir", data]);
    assert!(output.status.success(), "{output:?}");
    let export = run(&["export", "--data-dir", data, "--collection", "all"]);
    let lines = String::from_utf8(export.stdout).unwrap();
    let ids: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (0..3).flat_map(|part| (0..100).map(move |n| format!("page/{part}/{n}"))).collect();
    assert_eq!(ids, expected);
    let again = run(&["load", pattern, "--collection", "all", "--data-dir", data]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8(again.stderr).unwrap().contains("a collection already exists"));
}

#[test]
fn similar_rows_are_printed_on_request() {
    let dir = dir();
    let (file, data) = (dir.path().join("texts.parquet"), dir.path().join("data"));
    let near = text(1) + " more";
    let rows = [text(0), text(1), String::new(), near, text(2), text(2)];
    Table::of(rows.into_iter().enumerate().map(|(n, text)| (format!("page/{n}"), text))).write(&file);
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let output = run(&["load", file, "--collection", "texts", "--data-dir", data, "--check"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines: Vec<serde_json::Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let pairs = lines.iter().map(|line| (line["row"].as_u64(), line["duplicate_of"].as_str().unwrap()));
    let expected = [(1, "page/3"), (3, "page/1"), (4, "page/5"), (5, "page/4")].map(|(row, of)| (Some(row), of));
    assert_eq!(pairs.collect::<Vec<_>>(), expected, "{lines:?}");

    let checked = run(&["check", "--collection", "texts", "--data-dir", data, "--duplicates-only", file]);
    assert!(checked.status.code() == Some(2) && !checked.stdout.is_empty(), "a row has no content: {checked:?}");

    let other = dir.path().join("other.parquet");
    Table::of((7..9).map(|n| (format!("page/{n}"), text(n)))).write(&other);
    let output = run(&["load", other.to_str().unwrap(), "--collection", "alone", "--data-dir", data, "--check"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}
