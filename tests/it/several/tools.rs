//! `hapax check` and `hapax import` also ask several collections, with a server and without one.

use serde_json::Value;

use super::{create, places, store, text};
use crate::support::client::Client;
use crate::support::command::hapax;
use crate::support::library::dir;
use crate::support::server::Server;

/// Runs a command, and returns its exit status, its lines of JSON and its stderr.
fn run(arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let output = hapax(arguments).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    (output.status.code().unwrap(), lines, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_tools_ask_several_collections() {
    let dir = dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let url = server.url("");
    let client = Client::new(url.clone());
    create(&client);
    store(&client, "b", "b1", &text(1, 0));
    store(&client, "c", "c1", &text(1, 20));
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (input, verdicts) = (path("in.jsonl"), path("verdicts.jsonl"));
    let line = |number| serde_json::json!({"id": format!("n{number}"), "text": text(number, 40)}).to_string() + "\n";
    std::fs::write(&input, line(1) + &line(2)).unwrap();

    let check = ["check", "--collection", "a", "--collections", "b,c", &input];
    let (status, online, _) = run(&[&check[..], &["--server", &url]].concat());
    assert_eq!((status, places(&online[0]["matches"])), (1, vec![("b", "b1"), ("c", "c1")]), "{online:?}");
    assert_eq!(online[1]["verdict"], "unique");
    let import =
        ["import", "--collection", "a", "--collections", "b,c", "--server", &url, "--verdicts", &verdicts, &input];
    assert_eq!(run(&import).0, 0);
    let told = std::fs::read_to_string(&verdicts).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told[0]["elsewhere"], online[0]["matches"]);
    assert_eq!((&told[0]["outcome"], &told[1]["outcome"]), (&"inserted".into(), &"inserted".into()));
    let (status, _, error) = run(&["check", "--collections", "b,b", "--server", &url, &input]);
    assert!(status == 2 && error.contains("names `b` twice"), "{status}: {error}");
    client.delete("/v1/collections/a/documents?id=n1").ok();
    client.delete("/v1/collections/a/documents?id=n2").ok();
    assert!(server.terminate().success());

    let data = data.to_str().unwrap();
    let (status, offline, error) = run(&[&check[..], &["--data-dir", data]].concat());
    assert_eq!((status, &offline), (1, &online), "{error}");
    let (status, _, error) = run(&["check", "--collections", "default", "--data-dir", data, &input]);
    assert!(status == 2 && error.contains("--collections: names `default`, which is always asked first"), "{error}");
}
