//! Documents of one bulk request have their numbers in the order of their lines, although many are inserted at once. Of
//! equal matches, the first one is named. Few postings of a band key are in a field of a hash, the others in a sorted set.

use std::ops::Range;

use serde_json::{Value, json};

use super::{settings, start, start_with};
use crate::support::client::{CHECK, Client, DOCUMENTS, lines};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};

/// More than a server reserves numbers for at a time.
const LINES: u64 = 600;
const TEXT: &str = "the text of all copies";

#[test]
fn numbers_are_in_the_order_of_the_lines() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "server").ready();
    let client = Client::new(server.url(""));
    client.bulk("op=insert", &lines(0..LINES));
    let listed = client.get(&format!("{DOCUMENTS}?limit=1000")).ok();
    let listed = listed["documents"].as_array().expect("a list");
    let ids: Vec<_> = listed.iter().map(|document| document["id"].as_str().expect("an id")).collect();
    assert_eq!(ids, (0..LINES).map(|number| number.to_string()).collect::<Vec<_>>());

    client.bulk("op=insert&on_duplicate=store", &copies(LINES));
    assert_eq!(matches(&client.post(&format!("{CHECK}?limit=3"), &json!({"text": TEXT})).ok()), copy_ids(0..3));
}

#[test]
fn all_postings_of_a_key_are_found_and_those_of_deleted_documents_are_not() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "server").ready();
    let client = Client::new(server.url(""));
    let check = || client.post(&format!("{CHECK}?limit=1000"), &json!({"text": TEXT})).ok();
    // A field has room for five numbers.
    for count in [1, 2, 5, 6, 7, 20] {
        client.bulk("op=insert&on_duplicate=store&on_existing=keep", &copies(count));
        assert_eq!(matches(&check()), copy_ids(0..count));
    }
    let buckets = client.get("/v1/collections/default/buckets?limit=1").ok();
    assert_eq!(buckets["buckets"][0]["documents"], 20, "{buckets}");
    let delete = |numbers| client.post(&format!("{DOCUMENTS}/delete"), &json!({"ids": copy_ids(numbers)})).ok();
    delete(0..4);
    assert_eq!(matches(&check()), copy_ids(4..20));
    delete(4..20);
    assert_eq!(check()["verdict"], "unique");
    client.bulk("op=insert", &copies(1));
    assert_eq!(matches(&check()), copy_ids(0..1));
}

#[test]
fn no_more_postings_of_a_key_are_read_than_allowed() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let few = format!("{}[limits]\nbucket_read_max = 3\n", settings(cluster.nodes(), ""));
    let server = start_with(&few, dir.path(), "server").ready();
    let client = Client::new(server.url(""));
    for (count, unread) in [(3, 0), (5, 2), (20, 17)] {
        client.bulk("op=insert&on_duplicate=store&on_existing=keep", &copies(count));
        let found = client.post(&format!("{CHECK}?limit=1000"), &json!({"text": TEXT})).ok();
        let is_complete = unread == 0;
        assert_eq!((matches(&found).len(), &found["complete"]), (3, &json!(is_complete)), "{found}");
        // The key of the content and those of all bands have as many.
        let unread_each = found["unread"].as_u64().unwrap_or(0) / 32;
        assert_eq!(unread_each, unread, "{found}");
    }
}

/// Returns lines with documents that all have the same text.
fn copies(count: u64) -> String {
    let line = |number: u64| json!({"id": format!("copy {number}"), "text": TEXT}).to_string() + "\n";
    (0..count).map(line).collect()
}

fn copy_ids(numbers: Range<u64>) -> Vec<String> {
    numbers.map(|number| format!("copy {number}")).collect()
}

/// Returns the ids of the matches.
fn matches(found: &Value) -> Vec<String> {
    let matches = found["matches"].as_array().expect("matches");
    matches.iter().map(|found| found["id"].as_str().expect("an id").to_owned()).collect()
}
