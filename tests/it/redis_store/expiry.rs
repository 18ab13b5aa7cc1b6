//! Documents that expire in a cluster: nothing finds them, and others are stored in their places.

use std::thread;
use std::time::Duration;

use hapax::telemetry::names;
use serde_json::{Value, json};

use super::metrics::Scrape;
use super::{settings, start, start_in};
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::clock;
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::until::until;

const DEFAULT: &str = "/v1/collections/default";

fn insert(client: &Client, id: &str, text: &str) -> Value {
    client.post(DOCUMENTS, &json!({"id": id, "text": text})).ok()
}

#[test]
fn an_expired_document_is_found_by_nothing_and_replaced_by_others() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "a").ready();
    let client = Client::new(server.url(""));
    assert_eq!(client.json("PATCH", DEFAULT, &json!({"ttl": 3600})).ok()["ttl"], 3600.0);
    for number in 1..=4 {
        assert_eq!(insert(&client, &format!("d{number}"), &words(number))["outcome"], "inserted");
    }
    let found = client.get(&format!("{DOCUMENTS}?id=d1")).ok();
    assert_eq!(found["last_seen"], found["first_seen"]);
    assert!(found["expires"].as_str() > found["last_seen"].as_str(), "{found}");

    client.json("PATCH", DEFAULT, &json!({"ttl": 1})).ok();
    let verdict = |number| client.post(CHECK, &json!({"text": words(number)})).ok()["verdict"].clone();
    until("all documents are expired", || (1..=4).all(|number| verdict(number) == "unique"));
    client.get(&format!("{DOCUMENTS}?id=d1")).problem(404, "document_not_found");
    assert_eq!(client.get(DOCUMENTS).ok()["documents"], json!([]));
    assert_eq!(client.delete(&format!("{DOCUMENTS}?id=d2")).ok()["deleted"], 0);

    // Under the same id, under another one, and in the place of an expired document.
    client.json("PATCH", DEFAULT, &json!({"ttl": 2})).ok();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(insert(&client, "d1", &words(1))["outcome"], "inserted");
    let other = insert(&client, "other", &words(2));
    assert_eq!((&other["outcome"], &other["verdict"]), (&json!("inserted"), &json!("unique")));
    let replaced =
        client.post(&format!("{DOCUMENTS}?on_existing=replace"), &json!({"id": "d3", "text": words(5)})).ok();
    assert_eq!(replaced["outcome"], "inserted");
    until("each expired document that was met is counted", || {
        Scrape::of(&server).sum(names::EXPIRED_DOCUMENTS, "default") == 3.0
    });
    until("they are not counted as stored", || client.get(DEFAULT).ok()["documents"] == 4);
}

#[test]
fn a_document_that_is_sent_again_stays() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let servers = ["a", "b"].map(|name| start(&cluster, dir.path(), name).ready());
    let [first, second] = servers.each_ref().map(|server| Client::new(server.url("")));
    first.json("PATCH", DEFAULT, &json!({"ttl": 2})).ok();
    until("the other server has the time to live", || second.get(DEFAULT).ok()["ttl"] == 2.0);
    insert(&first, "a", &words(1));
    insert(&first, "b", &words(2));
    let seen = |client: &Client| client.get(&format!("{DOCUMENTS}?id=a")).ok()["last_seen"].clone();
    let before = seen(&first);
    until("the other document is expired", || {
        let again = insert(&second, "a", &words(1));
        assert_eq!((&again["outcome"], &again["verdict"]), (&json!("unchanged"), &json!("unique")));
        first.post(CHECK, &json!({"text": words(2)})).ok()["verdict"] == "unique"
    });
    assert!(seen(&first).as_str() > before.as_str(), "{before} {}", seen(&first));
    // A change of the metadata is a sight, too.
    let changed = second.post(DOCUMENTS, &json!({"id": "a", "text": words(1), "metadata": {"n": 1}})).ok();
    assert_eq!(changed["outcome"], "updated");
}

#[test]
fn clocks_that_differ_shift_only_the_moment_of_expiry() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let late = start(&cluster, dir.path(), "late").ready();
    let settings = settings(cluster.nodes(), "");
    let ahead = start_in(&clock::ahead("120"), "warn", &settings, dir.path(), "ahead").ready();
    let [late, ahead] = [&late, &ahead].map(|server| Client::new(server.url("")));
    late.json("PATCH", DEFAULT, &json!({"ttl": 60})).ok();
    until("the other server has the time to live", || ahead.get(DEFAULT).ok()["ttl"] == 60.0);
    let verdict = |client: &Client, number| client.post(CHECK, &json!({"text": words(number)})).ok();

    for number in [1, 2] {
        assert_eq!(insert(&late, &format!("d{number}"), &words(number))["outcome"], "inserted");
        assert_eq!(verdict(&late, number)["verdict"], "exact_duplicate");
        assert_eq!(verdict(&ahead, number)["verdict"], "unique");
    }
    // As soon as the server with the other clock has stored a document in its place, it is deleted for both.
    assert_eq!(insert(&ahead, "copy", &words(1))["outcome"], "inserted");
    assert_eq!(insert(&ahead, "d2", &words(3))["outcome"], "inserted");
    for client in [&late, &ahead] {
        assert_eq!(verdict(client, 1)["duplicate_of"], "copy");
        assert_eq!(verdict(client, 2)["verdict"], "unique");
        assert_eq!(verdict(client, 3)["duplicate_of"], "d2");
        client.get(&format!("{DOCUMENTS}?id=d1")).problem(404, "document_not_found");
    }
    assert_eq!(insert(&late, "d1", &words(1))["duplicate_of"], "copy");
}
