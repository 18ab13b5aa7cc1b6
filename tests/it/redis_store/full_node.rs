//! While a node has no memory left, inserts that need it are refused and undone. Everything else goes on.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::Agent;

use super::contents::Content;
use super::http::{agent, ask};
use super::nodes::{Node, each_record, primaries};
use super::start;
use crate::support::client::{CHECK, DOCUMENTS, encode};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Server;
use crate::support::until::until;

const STORED: u64 = 12;
const REFUSED: u64 = 12;
/// Less than a node needs at its start.
const FULL: &str = "1mb";

/// Returns all keys with their sizes, without the counters.
fn contents(cluster: &RedisCluster) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for address in primaries(cluster) {
        let mut node = Node::connect(&address);
        for key in node.keys("hapax:*") {
            let size = match &*node.tell(&format!("TYPE {key}")) {
                // It was removed since the keys were listed.
                "+none" => continue,
                "+string" if key.ends_with(":n") || key.ends_with(":d") => continue,
                "+string" => node.tell(&format!("STRLEN {key}")),
                "+hash" => node.tell(&format!("HLEN {key}")),
                "+zset" => node.tell(&format!("ZCARD {key}")),
                other => panic!("{key} is {other}"),
            };
            contents.insert(key, size);
        }
    }
    contents
}

/// Waits until the contents are those of before.
fn nothing_more_is_left(cluster: &RedisCluster, before: &BTreeMap<String, String>) {
    let begun = Instant::now();
    loop {
        let now = contents(cluster);
        if now == *before {
            return;
        }
        let more: Vec<_> = now.iter().filter(|(key, size)| before.get(*key) != Some(size)).collect();
        assert!(begun.elapsed() < Duration::from_secs(20), "left: {more:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the states of all records.
fn states(cluster: &RedisCluster) -> Vec<String> {
    let mut states = Vec::new();
    each_record(cluster, |node, key| states.push(node.tell(&format!("GETRANGE {key} 0 0"))));
    states.sort();
    states
}

fn set_memory(cluster: &RedisCluster, bytes: &str) {
    let said = Node::connect(&cluster.nodes()[0]).tell(&format!("CONFIG SET maxmemory {bytes}"));
    assert_eq!(said, "+OK");
}

struct Session<'a> {
    cluster: &'a RedisCluster,
    agent: Agent,
    server: &'a Server,
}

impl Session<'_> {
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = ask(&self.agent, method, &self.server.url(path), body).expect("it answers");
        (answer.status, answer.body)
    }

    fn insert(&self, group: u64) -> (u16, Value) {
        self.ask("POST", DOCUMENTS, &json!({"id": id(group), "text": content(group).text()}))
    }

    fn assert_inserted(&self, group: u64) {
        let (status, body) = self.insert(group);
        assert_eq!((status, &body["outcome"]), (200, &json!("inserted")), "{body}");
    }

    fn delete(&self, group: u64) -> Value {
        let (status, body) = self.ask("DELETE", &format!("{DOCUMENTS}?id={}", encode(&id(group))), &Value::Null);
        assert_eq!(status, 200, "{body}");
        body["deleted"].clone()
    }

    fn get(&self, group: u64) -> u16 {
        self.ask("GET", &format!("{DOCUMENTS}?id={}", encode(&id(group))), &Value::Null).0
    }

    fn check(&self, group: u64) -> Value {
        let (status, body) = self.ask("POST", CHECK, &json!({"text": Content { group, variant: 1 }.text()}));
        assert_eq!(status, 200, "{body}");
        body["duplicate_of"].clone()
    }

    fn documents(&self) -> Value {
        self.ask("GET", "/v1/collections/default", &Value::Null).1["documents"].clone()
    }

    /// Waits until each record is sealed, and nothing is removed in the background. Returns all contents.
    fn settled(&self, documents: u64) -> BTreeMap<String, String> {
        until("each record is sealed", || states(self.cluster) == vec!["s"; documents as usize]);
        contents(self.cluster)
    }

    /// Inserts are refused, and nothing of them is left.
    fn inserts_are_undone(&self, before: &BTreeMap<String, String>) {
        for group in STORED..STORED + REFUSED {
            let (status, body) = self.insert(group);
            assert_eq!((status, &body["code"]), (507, &json!("memory_budget_reached")), "{body}");
            assert!(body["detail"].as_str().is_some_and(|detail| detail.contains(&self.cluster.nodes()[0])), "{body}");
        }
        nothing_more_is_left(self.cluster, before);
        for group in STORED..STORED + REFUSED {
            assert_eq!((self.get(group), self.check(group)), (404, Value::Null));
        }
    }

    /// Checks and deletes go on, and what was deleted is removed.
    fn the_rest_goes_on(&self) {
        for group in 0..STORED {
            assert_eq!((self.get(group), self.check(group)), (200, json!(id(group))));
        }
        for group in 0..STORED / 2 {
            assert_eq!((self.delete(group), self.delete(group)), (json!(1), json!(0)));
            assert_eq!((self.get(group), self.check(group)), (404, Value::Null));
        }
    }

    /// A document that a dead server was inserting is given up. Then the node gets memory again.
    fn a_pending_document_is_aborted(&self) {
        let set_states =
            |state| each_record(self.cluster, |node, key| _ = node.tell(&format!("SETRANGE {key} 0 {state}")));
        // A full node refuses this command.
        set_memory(self.cluster, "0");
        set_states("p");
        set_memory(self.cluster, FULL);
        for group in STORED / 2..STORED {
            assert_eq!(self.check(group), Value::Null);
        }
        // The lease ends after two seconds.
        assert_eq!(self.delete(STORED - 1), json!(0));
        assert!(states(self.cluster).contains(&"a".to_owned()), "{:?}", states(self.cluster));
        set_memory(self.cluster, "0");
        set_states("s");
    }
}

fn id(group: u64) -> String {
    format!("https://a.example/{group}")
}

fn content(group: u64) -> Content {
    Content { group, variant: 0 }
}

fn a_full_node_refuses_only_inserts(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "server").ready();
    let session = Session { cluster: &cluster, agent: agent(), server: &server };
    (0..STORED).for_each(|group| session.assert_inserted(group));
    let before = session.settled(STORED);

    set_memory(&cluster, FULL);
    session.inserts_are_undone(&before);
    session.the_rest_goes_on();
    session.settled(STORED - STORED / 2);
    let postings = |contents: &BTreeMap<String, String>| {
        let sizes =
            contents.iter().filter(|(key, _)| key.split(':').nth(2).is_some_and(|part| part.starts_with(['b', 'c'])));
        sizes.map(|(_, size)| size.trim_start_matches(':').parse::<u64>().expect("a size")).sum::<u64>()
    };
    until("the postings of deleted documents are removed", || postings(&contents(&cluster)) == postings(&before) / 2);
    until("deletes are counted", || session.documents() == json!(STORED - STORED / 2));
    // Another server can start.
    start(&cluster, dir.path(), "other").ready().terminate();
    session.a_pending_document_is_aborted();

    (STORED..STORED + REFUSED).for_each(|group| session.assert_inserted(group));
    (0..STORED / 2).for_each(|group| session.assert_inserted(group));
}

#[test]
fn a_full_node_of_redis_refuses_only_inserts() {
    a_full_node_refuses_only_inserts(Kind::Redis);
}

#[test]
fn a_full_node_of_valkey_refuses_only_inserts() {
    a_full_node_refuses_only_inserts(Kind::Valkey);
}
