//! The log says which key changed a collection or a backup.

use serde_json::{Value, json};

use super::file;
use crate::support::client::Client;
use crate::support::library::dir;
use crate::support::server::Starting;

#[test]
fn admin_actions_are_logged_with_the_name_of_the_key() {
    let dir = dir();
    let data = dir.path().join("data");
    let keys_file = file::write(dir.path(), &[("ops", &["admin", "read"], ""), ("crawler", &["check"], "")]);
    let backups = dir.path().join("backups");
    let environment = [
        ("HAPAX__AUTH__KEYS_FILE", keys_file.to_str().unwrap()),
        ("HAPAX__BACKUP__DIR", backups.to_str().unwrap()),
        // The lines are logged at every level.
        ("HAPAX__LOG__LEVEL", "error"),
    ];
    let server = Starting::spawn_with(&data, &["--log-format", "json"], &environment).ready();
    let (ops, crawler) = (Client::new(server.url("")).key("ops"), Client::new(server.url("")).key("crawler"));
    assert_eq!(ops.json("PUT", "/v1/collections/n%65ws", &json!({})).status, 201);
    assert_eq!(ops.json("PATCH", "/v1/collections/news", &json!({"threshold": 0.7})).status, 200);
    ops.delete("/v1/collections/news/golden").ok();
    assert_eq!(ops.post("/v1/backups", &json!({"name": "first"})).status, 202);
    assert_eq!(ops.delete("/v1/backups").status, 200);
    ops.delete("/v1/collections/news?confirm=news").ok();
    // Refused actions and actions that change nothing have no line.
    crawler.json("PUT", "/v1/collections/other", &json!({})).problem(403, "forbidden");
    ops.json("PUT", "/v1/collections/OTHER", &json!({})).problem(422, "invalid_value");
    ops.delete("/v1/collections/other?confirm=other").problem(404, "collection_not_found");
    ops.get("/v1/backups").ok();
    ops.get("/v1/collections").ok();
    assert!(server.terminate().success());

    let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let actions: Vec<_> = lines.filter(|line| line["message"] == "admin action").collect();
    let seen: Vec<_> = actions
        .iter()
        .map(|line| {
            assert_eq!(line["key"], "ops", "{line}");
            (line["method"].as_str().unwrap(), line["collection"].as_str(), line["status"].as_u64().unwrap())
        })
        .collect();
    let news = Some("news");
    let expected = [
        ("PUT", news, 201),
        ("PATCH", news, 200),
        ("DELETE", news, 200),
        ("POST", None, 202),
        ("DELETE", None, 200),
        ("DELETE", news, 200),
    ];
    assert_eq!(seen, expected, "{actions:?}");
}
