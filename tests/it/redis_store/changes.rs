//! Settings that are changed at one server hold on all servers soon after. The metadata of a stored document are changed
//! on a node that has room, and stay as they are on a full one.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::nodes::Node;
use super::start;
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::until::until_within;

const DEFAULT: &str = "/v1/collections/default";
/// A change must hold on all servers after this time.
const SEEN_MAX: Duration = Duration::from_secs(2);

#[test]
fn changed_settings_hold_on_all_servers_within_two_seconds() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let servers = ["a", "b"].map(|name| start(&cluster, dir.path(), name).ready());
    let [first, second] = servers.each_ref().map(|server| Client::new(server.url("")));
    let before = first.get(DEFAULT).ok();
    first.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    let near = json!({"text": format!("{} and one more", words(1))});
    assert_eq!(second.post(CHECK, &near).ok()["verdict"], "near_duplicate");

    let changed = first.json("PATCH", DEFAULT, &json!({"threshold": 0.99})).ok();
    assert_eq!((&changed["threshold"], &changed["banding"]), (&json!(0.99), &before["banding"]));
    assert_eq!(first.post(CHECK, &near).ok()["verdict"], "unique");
    let needed = until_within(SEEN_MAX, "the other server has the new threshold", || {
        second.get(DEFAULT).ok()["threshold"] == json!(0.99)
    });
    println!("changes: the other server has the new threshold after {needed:?}");
    assert_eq!(second.post(CHECK, &near).ok()["verdict"], "unique");
    // Its insertions have the new threshold, too, and the first verdict of a document stays.
    assert_eq!(second.post(DOCUMENTS, &json!({"id": "b", "text": near["text"]})).ok()["outcome"], "inserted");
    second.json("PATCH", DEFAULT, &json!({"threshold": 0.5})).ok();
    let again = second.post(DOCUMENTS, &json!({"id": "b", "text": near["text"]})).ok();
    assert_eq!((&again["outcome"], &again["threshold"]), (&json!("unchanged"), &json!(0.99)));
    // A change is kept: a server that starts later has it.
    let later = start(&cluster, dir.path(), "c").ready();
    assert_eq!(Client::new(later.url("")).get(DEFAULT).ok()["threshold"], json!(0.5));

    for other in [json!({"banding": {"bands": 20, "rows": 4}}), json!({"touch": true})] {
        first.json("PATCH", DEFAULT, &other).problem(501, "not_in_this_store");
    }
    assert_eq!(first.get(DEFAULT).ok()["touch"], before["touch"]);
}

fn metadata(client: &Client) -> Value {
    client.get(&format!("{DOCUMENTS}?id=a")).ok()["metadata"].clone()
}

#[test]
fn the_metadata_of_a_document_change_whole_or_not_at_all() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let servers = ["a", "b"].map(|name| start(&cluster, dir.path(), name).ready());
    let clients = servers.each_ref().map(|server| Client::new(server.url("")));
    let insert = |client: &Client, metadata: Value| {
        client.post(DOCUMENTS, &json!({"id": "a", "text": words(1), "metadata": metadata}))
    };
    let first = insert(&clients[0], json!({"n": 0})).ok();
    // Both servers change the same document at the same time. Each change is made.
    thread::scope(|scope| {
        for (client, name) in clients.iter().zip(["x", "y"]) {
            scope.spawn(move || {
                for number in 1..=50 {
                    let outcome = insert(client, json!({"n": number, "by": name})).ok()["outcome"].clone();
                    assert_eq!(outcome, "updated", "{name} {number}");
                }
            });
        }
    });
    let last = metadata(&clients[0]);
    assert_eq!((&last, last["n"] == 50), (&metadata(&clients[1]), true));
    let again = insert(&clients[1], last.clone()).ok();
    assert_eq!((&again["outcome"], &again["verdict"]), (&json!("unchanged"), &first["verdict"]));

    for node in &cluster.nodes()[..3] {
        assert_eq!(Node::connect(node).tell("CONFIG SET maxmemory 1"), "+OK");
    }
    insert(&clients[0], json!({"n": 51})).problem(507, "memory_budget_reached");
    assert_eq!(metadata(&clients[1]), last);
    // A document that is deleted can be dropped from a full node.
    assert_eq!(clients[0].delete(&format!("{DOCUMENTS}?id=a")).ok()["deleted"], 1);
}
