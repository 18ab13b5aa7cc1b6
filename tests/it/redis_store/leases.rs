//! Documents that dead servers were inserting are given up after two seconds, all of them at once.
//!
//! Once, an insertion waited two seconds for each of them, one after another: three servers that were killed at once
//! could block the insertions of similar documents for much longer.

use std::time::{Duration, Instant};

use hapax::telemetry::names;
use serde_json::json;

use super::http::{agent, ask};
use super::metrics::Scrape;
use super::nodes::each_record;
use super::start;
use crate::support::client::{DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};

/// Marks all stored documents as documents that a server is inserting. Returns their number.
fn make_pending(cluster: &RedisCluster) -> usize {
    each_record(cluster, |node, key| {
        assert_eq!(node.tell(&format!("GETRANGE {key} 0 0")), "s", "the document is not sealed");
        node.tell(&format!("SETRANGE {key} 0 p"));
    })
}

#[test]
fn documents_of_dead_servers_are_given_up_together() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "server").ready();
    let agent = agent();
    let text = words(1);
    let insert = |id: &str| {
        let url = server.url(&format!("{DOCUMENTS}?on_duplicate=store"));
        ask(&agent, "POST", &url, &json!({"id": id, "text": text})).expect("it answers")
    };
    for id in ["a", "b", "c", "d"] {
        assert_eq!(insert(id).body["outcome"], "inserted");
    }
    // They are sealed in the background.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(make_pending(&cluster), 4);

    let begun = Instant::now();
    let answer = insert("e");
    assert_eq!((&answer.body["outcome"], &answer.body["verdict"]), (&json!("inserted"), &json!("unique")));
    assert!(begun.elapsed() < Duration::from_secs(4), "it waited {:?}", begun.elapsed());
    assert_eq!(Scrape::of(&server).sum(names::REDIS_CONFLICTS, "kind=\"abort\""), 4.0);
    println!("leases: {:?}", begun.elapsed());
}
