//! Clusters of a server: in pages, and after a kill.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::given::{Signature, base, with};
use crate::support::client::{Client, encode};
use crate::support::library::{self};
use crate::support::local::Local;
use crate::support::server::Server;

fn body(name: &str, signature: &Signature) -> Value {
    json!({ "id": name, "signature": STANDARD.encode(signature) })
}

const COLLECTION: &str = "/v1/collections/given";

fn put(client: &Client) {
    let settings = json!({ "spec": "external:test:64x8", "banding": { "bands": 32, "rows": 2 }, "threshold": 0.8 });
    assert_eq!(client.json("PUT", COLLECTION, &settings).status, 201);
}

#[test]
fn a_cluster_is_paged_while_its_documents_come_and_go() {
    let dir = library::dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    put(&client);
    let post = |name: &str, on_duplicate: &str| {
        let target = format!("{COLLECTION}/documents?on_duplicate={on_duplicate}");
        client.post(&target, &body(name, &base())).ok()
    };
    let get = |query: &str| client.get(&format!("{COLLECTION}/clusters?{query}"));
    let ids = |page: &Value| -> Vec<String> {
        let members = page["members"].as_array().unwrap();
        members.iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(get("").ok(), json!({ "members": [] }));
    get("id=nobody").problem(404, "document_not_found");
    get("id=nobody&cursor=AAAA").problem(422, "invalid_value");
    get("limit=0").problem(422, "invalid_value");
    get("limit=1001").problem(422, "invalid_value");

    let name = |number: u32| format!("http://a.example/?{number}#&=");
    assert_eq!(post(&name(0), "store").get("representative"), None);
    let alone = get(&format!("id={}", encode(&name(0)))).ok();
    assert_eq!((&alone["documents"], ids(&alone)), (&json!(1), vec![name(0)]));
    assert_eq!(get("").ok(), json!({ "members": [] }), "one that is alone is not listed");
    for number in 1..10 {
        let verdict = post(&name(number), if number % 2 == 0 { "store" } else { "link" });
        assert_eq!(verdict["representative"], name(0));
    }
    let record = client.get(&format!("{COLLECTION}/documents?id={}", encode(&name(3)))).ok();
    assert_eq!((&record["representative"], &record["seq"]), (&json!(name(0)), &json!(4)));

    let first = get(&format!("id={}&limit=4", encode(&name(7)))).ok();
    assert_eq!(ids(&first), (0..4).map(name).collect::<Vec<_>>());
    assert_eq!((&first["documents"], &first["representative"]), (&json!(10), &json!(name(0))));
    assert_eq!(first["members"][0].get("similarity"), None);
    assert_eq!(first["members"][1]["similarity"], 1.0);
    for gone in [0, 3, 4, 7] {
        client.delete(&format!("{COLLECTION}/documents?id={}", encode(&name(gone)))).ok();
    }
    post(&name(10), "store");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = get(&format!("id={}&limit=4&cursor={cursor}", encode(&name(7)))).ok();
    assert_eq!(ids(&second), [5, 6, 8, 9].map(name), "though the document asked for is gone");
    assert_eq!((second.get("documents"), &second["representative"]), (None, &json!(name(1))));
    let cursor = second["next_cursor"].as_str().unwrap();
    let third = get(&format!("id={}&limit=4&cursor={cursor}", encode(&name(8)))).ok();
    assert_eq!((ids(&third), third.get("next_cursor")), (vec![name(10)], None));
    get(&format!("id={}", encode(&name(7)))).problem(404, "document_not_found");

    let all = get("limit=3").ok();
    assert_eq!(ids(&all), [1, 2, 5].map(name));
    assert_eq!(all["members"][0].get("representative"), None);
    assert_eq!(all["members"][2]["representative"], name(1));
}

#[test]
fn clusters_and_promotions_outlive_a_killed_process() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    put(&client);
    let post = |client: &Client, name: &str, signature: &Signature, on_duplicate: &str| {
        client.post(&format!("{COLLECTION}/documents?on_duplicate={on_duplicate}"), &body(name, signature)).ok()
    };
    let finds = |client: &Client, signature: &Signature| {
        let check = json!({ "signature": STANDARD.encode(signature) });
        client.post(&format!("{COLLECTION}/check"), &check).ok()["duplicate_of"].clone()
    };
    post(&client, "a", &base(), "store");
    post(&client, "b", &with(0, 10, 200), "link");
    post(&client, "c", &with(50, 60, 200), "store");
    server.kill();

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(finds(&client, &with(0, 20, 200)), Value::Null);
    assert_eq!(post(&client, "d", &with(50, 55, 200), "store")["representative"], "a");
    client.delete(&format!("{COLLECTION}/documents?id=a")).ok();
    server.kill();

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    assert_eq!(finds(&client, &with(0, 20, 200)), "b");
    let page = client.get(&format!("{COLLECTION}/clusters?id=c")).ok();
    let ids: Vec<_> = page["members"].as_array().unwrap().iter().map(|member| member["id"].clone()).collect();
    assert_eq!(ids, ["b", "c", "d"]);
    assert_eq!(client.get(COLLECTION).ok()["linked"], 0);
    assert_eq!(post(&client, "e", &with(0, 12, 200), "link")["representative"], "b");
    assert!(server.terminate().success());
}
