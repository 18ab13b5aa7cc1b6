//! `hapax reconcile` repairs a collection whose cluster has lost postings and ids, while servers go on.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::contents::Content;
use super::nodes::{Node, dangling, primaries};
use super::{settings, start_with};
use crate::support::client::{CHECK, Client, DOCUMENTS};
use crate::support::command::run;
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Starting;
use crate::support::until::until;

const GROUPS: u64 = 40;

/// Starts a server whose collections have few groups of postings.
fn start(cluster: &RedisCluster, dir: &Path) -> Starting {
    start_with(&settings(cluster.nodes(), "documents_expected = 480"), dir, "a")
}

fn text(group: u64, variant: u64) -> String {
    Content { group, variant }.text()
}

fn insert(client: &Client, id: &str, group: u64, variant: u64) -> Value {
    client.post(DOCUMENTS, &json!({"id": id, "text": text(group, variant)})).ok()
}

/// Removes all keys that match one of the patterns from all primaries.
fn lose(cluster: &RedisCluster, patterns: &[&str]) {
    for address in primaries(cluster) {
        let mut node = Node::connect(&address);
        for key in patterns.iter().flat_map(|pattern| node.keys(pattern)).collect::<Vec<_>>() {
            assert_eq!(node.tell(&format!("UNLINK {key}")), ":1");
        }
    }
}

/// Adds a posting that leads to no document.
fn add_dangling(cluster: &RedisCluster) {
    let added = primaries(cluster).iter().any(|address| {
        let answer = Node::connect(address).tell("HSET hapax:1:b0.3 5 1000009999");
        answer == ":1"
    });
    assert!(added);
}

fn reconcile(file: &str) -> (Option<i32>, Vec<Value>, String) {
    let Output { status, stdout, stderr } = run(&["reconcile", "--config", file, "--rate", "100000"]);
    let lines = String::from_utf8(stdout).expect("UTF-8");
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (status.code(), lines, String::from_utf8(stderr).expect("UTF-8"))
}

/// Inserts and deletes other documents until `ended`.
fn go_on(client: &Client, ended: &AtomicBool) {
    for number in 0.. {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("other-{}", number % 7);
        assert_eq!(insert(client, &id, 1000 + number, 0)["outcome"], "inserted");
        assert_eq!(client.delete(&format!("{DOCUMENTS}?id={id}")).ok()["deleted"], 1);
    }
}

fn lost_postings_and_ids_come_back(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path()).ready();
    let client = Client::new(server.url(""));
    for group in 0..GROUPS {
        assert_eq!(insert(&client, &format!("d{group}"), group, 0)["verdict"], "unique");
    }
    let beside = client.post(&format!("{DOCUMENTS}?on_duplicate=store"), &json!({"id": "beside", "text": text(0, 1)}));
    assert_eq!(beside.ok()["outcome"], "inserted");

    lose(&cluster, &["hapax:1:b*", "hapax:1:c*", "hapax:1:i*"]);
    add_dangling(&cluster);
    assert_eq!(insert(&client, "copy", 3, 1)["verdict"], "unique", "the posting is lost");
    assert_eq!(insert(&client, "d5", 100, 0)["outcome"], "inserted", "the id is lost");
    let verdict = |group| client.post(CHECK, &json!({"text": text(group, 2)})).ok()["verdict"].clone();
    assert_eq!(verdict(7), "unique");

    let file = dir.path().join("a.toml");
    let file = file.to_str().expect("UTF-8");
    let ended = AtomicBool::new(false);
    let (status, mut lines, told) = std::thread::scope(|scope| {
        let going = scope.spawn(|| go_on(&client, &ended));
        let done = reconcile(file);
        ended.store(true, Ordering::Relaxed);
        going.join().expect("requests succeed meanwhile");
        done
    });
    assert_eq!(status, Some(1), "{told}");
    lines.sort_by_key(|line| line["other"].to_string());
    let [copy, id] = &lines[..] else { panic!("{lines:?}: {told}") };
    for (line, ids) in [(copy, ["copy", "d3"]), (id, ["d5", "d5"])] {
        let mut named = [&line["id"], &line["other"]].map(|id| id.as_str().expect("an id"));
        named.sort_unstable();
        assert_eq!((named, &line["collection"]), (ids, &json!("default")), "{lines:?}");
    }
    assert!(copy["similarity"].as_f64().is_some_and(|similarity| (0.8..1.0).contains(&similarity)), "{copy}");
    assert!(id.get("similarity").is_none(), "{id}");
    // Each document but the new ones has lost the postings of its bands and of its content.
    let added = format!("added {} postings and {} ids", (GROUPS + 1) * 32, GROUPS);
    assert!(told.contains(&added), "{told}");

    for group in 0..GROUPS {
        assert_eq!(verdict(group), "near_duplicate", "{group}");
        let found = client.get(&format!("{DOCUMENTS}?id=d{group}")).ok();
        assert_eq!(found["id"], json!(format!("d{group}")));
    }
    until("no posting and no id leads to nothing", || dangling(&cluster).is_empty());

    // The pair of one id: the document that holds the id goes, and the other one gets it.
    for id in ["copy", "d5"] {
        assert_eq!(client.delete(&format!("{DOCUMENTS}?id={id}")).ok()["deleted"], 1);
    }
    until("the deleted documents have left no posting", || dangling(&cluster).is_empty());
    let (status, lines, told) = reconcile(file);
    assert_eq!((status, lines), (Some(0), Vec::new()), "{told}");
    assert!(told.contains("added 0 postings and 1 id;"), "{told}");
    assert_eq!(client.get(&format!("{DOCUMENTS}?id=d5")).ok()["id"], "d5");
}

#[test]
fn lost_postings_and_ids_come_back_on_redis() {
    lost_postings_and_ids_come_back(Kind::Redis);
}

#[test]
fn lost_postings_and_ids_come_back_on_valkey() {
    lost_postings_and_ids_come_back(Kind::Valkey);
}

/// A number that was used before leads from an old id to a new document.
#[test]
fn an_id_never_leads_to_the_document_of_another_id() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let file = dir.path().join("a.toml");
    let file = file.to_str().expect("UTF-8");
    let with_server = |act: &dyn Fn(&Client)| {
        let server = start(&cluster, dir.path()).ready();
        act(&Client::new(server.url("")));
        server.terminate();
    };
    with_server(&|client| {
        for group in 0..3 {
            insert(client, &format!("d{group}"), group, 0);
        }
    });
    lose(&cluster, &["hapax:1:r*", "hapax:1:n"]);
    with_server(&|client| {
        for group in 10..13 {
            assert_eq!(insert(client, &format!("new{group}"), group, 0)["outcome"], "inserted");
        }
        client.get(&format!("{DOCUMENTS}?id=d0")).problem(404, "document_not_found");
        assert_eq!(client.delete(&format!("{DOCUMENTS}?id=d0")).ok()["deleted"], 0);
        let replace = format!("{DOCUMENTS}?on_existing=replace");
        let replaced = client.post(&replace, &json!({"id": "d1", "text": text(20, 0)})).ok();
        assert_eq!(replaced["outcome"], "inserted");
        assert_eq!(insert(client, "d2", 21, 0)["outcome"], "inserted");
        for group in 10..13 {
            assert_eq!(client.get(&format!("{DOCUMENTS}?id=new{group}")).ok()["id"], json!(format!("new{group}")));
        }
    });

    // Without the counter, numbers would be used again.
    lose(&cluster, &["hapax:1:n"]);
    let (status, lines, told) = reconcile(file);
    assert_eq!((status, lines), (Some(0), Vec::new()), "{told}");
    with_server(&|client| {
        assert_eq!(insert(client, "later", 30, 0)["outcome"], "inserted");
        assert_eq!(client.get(&format!("{DOCUMENTS}?id=d2")).ok()["id"], "d2");
    });
}

#[test]
fn a_collection_or_a_cluster_that_is_not_there_is_an_error() {
    let dir = dir();
    let local = dir.path().join("local.toml");
    std::fs::write(&local, "").expect("it is written");
    let told = |arguments: &[&str]| {
        let Output { status, stderr, .. } = run(&[&["reconcile", "--config"], arguments].concat());
        assert_eq!(status.code(), Some(2));
        String::from_utf8(stderr).expect("UTF-8")
    };
    let local = local.to_str().expect("UTF-8");
    assert!(told(&[local]).contains("data.store = \"redis\""), "{}", told(&[local]));
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let server = start(&cluster, dir.path()).ready();
    let file = dir.path().join("a.toml");
    let file = file.to_str().expect("UTF-8");
    assert!(told(&[file, "--collection", "nowhere"]).contains("nowhere"));
    assert!(told(&[file, "--collection", "a b"]).contains("--collection"));
    server.terminate();
}
