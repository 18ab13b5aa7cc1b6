//! A dropped collection is gone on all servers soon after, and its data is removed from the cluster, even if the server
//! that dropped it is killed.

use std::time::Duration;

use serde_json::json;

use super::nodes::Node;
use super::{settings, start_with};
use crate::support::client::{Client, documents, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::until::until_within;

const SEEN_MAX: Duration = Duration::from_secs(2);
/// The data is removed after ten seconds, unless the machine is busy.
const REMOVED_MAX: Duration = Duration::from_secs(60);

fn path(name: &str) -> String {
    format!("/v1/collections/{name}")
}

/// Returns the keys of all primaries, except those that name the servers that walk through the collections.
fn keys(cluster: &RedisCluster) -> Vec<String> {
    let mut keys: Vec<_> = cluster.nodes()[..3].iter().flat_map(|node| Node::connect(node).keys("*")).collect();
    keys.retain(|key| !key.ends_with(":w"));
    keys.sort();
    keys
}

fn dropped_data_is_removed(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let settings = settings(cluster.nodes(), "documents_expected = 1000");
    let [first, second] = ["a", "b"].map(|name| start_with(&settings, dir.path(), name).ready());
    let [at_first, at_second] = [&first, &second].map(|server| Client::new(server.url("")));
    let before = keys(&cluster);
    for name in ["c", "d"] {
        assert_eq!(at_first.json("PUT", &path(name), &json!({})).status, 201);
        for number in 0..40 {
            let document = json!({"id": number.to_string(), "text": words(number), "metadata": {"n": number}});
            assert_eq!(at_second.post(&documents(name), &document).ok()["outcome"], "inserted");
        }
    }
    let filled = keys(&cluster);
    assert!(filled.len() > before.len() + 500, "{}", filled.len());

    let drop = |client: &Client, name: &str| client.delete(&format!("{}?confirm={name}", path(name)));
    drop(&at_first, "c").ok();
    at_first.get(&path("c")).problem(404, "collection_not_found");
    drop(&at_first, "c").problem(404, "collection_not_found");
    drop(&at_first, "d").ok();
    first.kill();
    for name in ["c", "d"] {
        let needed = until_within(SEEN_MAX, "the other server has forgotten the collection", || {
            at_second.get(&path(name)).status == 404
        });
        println!("drops: the other server has forgotten `{name}` after {needed:?}");
    }
    // A collection of the same name has nothing to do with it.
    assert_eq!(at_second.json("PUT", &path("c"), &json!({})).status, 201);
    let document = json!({"id": "0", "text": words(0)});
    assert_eq!(at_second.post(&documents("c"), &document).ok()["verdict"], "unique");

    let is_old = |key: &String| filled.contains(key) && !before.contains(key);
    let needed = until_within(REMOVED_MAX, "the keys are removed", || !keys(&cluster).iter().any(is_old));
    println!("drops: {} keys were removed after {needed:?}", filled.len() - before.len());
    assert_eq!(at_second.post(&documents("c"), &document).ok()["outcome"], "unchanged");
    drop(&at_second, "c").ok();
    until_within(REMOVED_MAX, "the last keys are removed", || keys(&cluster) == before);
    drop(&at_second, "default").problem(403, "default_stays");
}

#[test]
fn dropped_data_is_removed_from_redis() {
    dropped_data_is_removed(Kind::Redis);
}

#[test]
fn dropped_data_is_removed_from_valkey() {
    dropped_data_is_removed(Kind::Valkey);
}
