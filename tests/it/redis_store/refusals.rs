//! A server does not start with wrong settings, or on a cluster that is not fit. It ends with status 2 and one line, which
//! names the node or the setting, and the remedy.

use std::fs;
use std::path::Path;
use std::process::Child;

use hapax::telemetry::names;
use serde_json::{Value, json};

use super::http::{agent, ask};
use super::metrics::Scrape;
use super::nodes::Node;
use super::{settings, start_at_level, start_with};
use crate::support::client::{DOCUMENTS, words};
use crate::support::command;
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::sources::root;
use crate::support::until::until;

/// Starts a server that must not start. Returns its line.
pub fn refused(settings: &str, dir: &Path) -> String {
    let name = "refused";
    let log = dir.join(format!("{name}.log"));
    _ = fs::remove_file(&log);
    let Err((status, tail)) = start_with(settings, dir, name).ready_or_ended() else {
        panic!("it started: {settings}");
    };
    let said = fs::read_to_string(&log).expect("a log");
    // Before this line, the log has warnings about connections that failed.
    let lines: Vec<_> = said.lines().filter(|line| !line.starts_with('{')).collect();
    assert_eq!((status.code(), lines.len()), (Some(2), 1), "{settings}{tail}");
    lines[0].to_owned()
}

pub fn assert_says(said: &str, words: &[&str]) {
    println!("{said}");
    assert!(words.iter().all(|word| said.contains(word)), "not {words:?}: {said}");
}

fn set(node: &str, setting: &str) {
    assert_eq!(Node::connect(node).tell(&format!("CONFIG SET {setting}")), "+OK", "{setting}");
}

#[test]
fn wrong_settings_are_refused() {
    let dir = dir();
    let node = ["127.0.0.1:1".to_owned()];
    for (settings, words) in [
        (settings(&[], ""), &["redis.nodes", "must name a node"][..]),
        (settings(&node, "prefix = \"a{b}\""), &["redis.prefix", "a{b}", "no braces"]),
        (settings(&node, "prefix = \"\""), &["redis.prefix", "1 to 64 bytes"]),
        (settings(&node, "timeout_ms = 9"), &["redis.timeout_ms", "9", "between 10 and 60000"]),
        (settings(&node, "acks = 6"), &["redis.acks", "6", "between 0 and 5"]),
        (settings(&node, "documents_expected = 0"), &["redis.documents_expected", "0"]),
        (settings(&node, "password_file = \"/no-file\""), &["redis.password_file", "/no-file"]),
        (settings(&["no address".to_owned()], ""), &["redis.nodes", "no address", "host:port"]),
        (settings(&node, ""), &["127.0.0.1:1", "cannot be reached", "check that it is running"]),
    ] {
        assert_says(&refused(&settings, dir.path()), words);
    }
}

fn unfit_clusters_are_refused(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let node = &*cluster.nodes()[1];
    let refused = |more: &str| refused(&settings(cluster.nodes(), more), dir.path());
    assert_says(&refused("acks = 2"), &["127.0.0.1:", "has 1 replica,", "redis.acks is 2", "add replicas"]);
    let password = dir.path().join("password");
    fs::write(&password, "wrong").unwrap();
    let wrong = format!("username = \"nobody\"\npassword_file = {:?}", password.to_str().unwrap());
    assert_says(&refused(&wrong), &["127.0.0.1:", "refused the login", "redis.password"]);

    set(node, "maxmemory-policy allkeys-lru");
    assert_says(&refused(""), &[node, "maxmemory-policy allkeys-lru", "noeviction"]);
    set(node, "maxmemory-policy noeviction");
    set(node, "appendonly no");
    assert_says(&refused(""), &[node, "appendonly no", "appendonly yes"]);
    start_with(&settings(cluster.nodes(), "acks = 0"), dir.path(), "without_acks").ready().terminate();
    set(node, "appendonly yes");
    set(node, "cluster-allow-reads-when-down yes");
    assert_says(&refused(""), &[node, "cluster-allow-reads-when-down yes", "to no"]);
    set(node, "cluster-allow-reads-when-down no");
    start_with(&settings(cluster.nodes(), ""), dir.path(), "fit").ready().terminate();
    assert_eq!(Node::connect(node).tell("CLUSTER DELSLOTS 9000"), "+OK");
    assert_says(&refused(""), &[node, "16383 of 16384 slots", "assign all slots"]);
}

#[test]
fn unfit_redis_clusters_are_refused() {
    unfit_clusters_are_refused(Kind::Redis);
}

#[test]
fn unfit_valkey_clusters_are_refused() {
    unfit_clusters_are_refused(Kind::Valkey);
}

/// Sets a key of the cluster.
fn set_key(cluster: &RedisCluster, key: &str, value: &str) {
    let line = format!("SET {key} {value}");
    let answers: Vec<_> = cluster.nodes()[..3].iter().map(|node| Node::connect(node).tell(&line)).collect();
    assert!(answers.iter().any(|answer| answer == "+OK"), "{answers:?}");
}

#[test]
fn servers_that_would_not_understand_each_other_are_refused() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let with = |more: &str| settings(cluster.nodes(), more);
    let keyed = |secret: &str| {
        let secret = secret.repeat(32);
        with(&format!("[hashing]\nsecret = \"{secret}\"\n[default_collection]\nkey = \"configured\""))
    };
    start_with(&keyed("a"), dir.path(), "first").ready().terminate();
    let said = refused(&keyed("b"), dir.path());
    assert_says(&said, &["collection `default`", "spec `", "hashing.secret", "fingerprint"]);
    assert!(!said.contains("aaaa") && !said.contains("bbbb"), "{said}");
    start_with(&keyed("a"), dir.path(), "same").ready().terminate();

    // Another collection has a secret, and `default` has none.
    let other = |secret: &str| format!("prefix = \"other\"\n[hashing]\nsecret = \"{}\"", secret.repeat(32));
    let first = start_with(&with(&other("a")), dir.path(), "other").ready();
    let url = first.url("/v1/collections/keyed");
    assert_eq!(ask(&agent(), "PUT", &url, &json!({"key": "configured"})).expect("it answers").status, 201);
    first.terminate();
    let said = refused(&with(&other("b")), dir.path());
    assert_says(&said, &["collection `keyed`", "spec `", "hashing.secret", "fingerprint"]);
    let said = refused(&with("prefix = \"other\""), dir.path());
    assert_says(&said, &["collection `keyed`", "has no `hashing.secret`"]);

    let shingles = "prefix = \"shingles\"\n[default_collection]\nshingle";
    start_with(&with(&format!("{shingles} = \"word4\"")), dir.path(), "word4").ready().terminate();
    assert_says(&refused(&with(&format!("{shingles} = \"word5\"")), dir.path()), &["word4", "word5"]);
    // As on disk, other settings than the spec have no effect on a collection that exists.
    let bands = format!("{shingles} = \"word4\"\nbands = 20\nrows = 5");
    start_with(&with(&bands), dir.path(), "bands").ready().terminate();

    set_key(&cluster, "shingles:format", "1");
    let said = refused(&with(&format!("{shingles} = \"word4\"")), dir.path());
    assert_says(&said, &["shingles", "redis.prefix", "format \"1\"", "set another redis.prefix"]);
}

/// Makes a user on all nodes.
fn permit(cluster: &RedisCluster, rules: &str) {
    for node in cluster.nodes() {
        assert_eq!(Node::connect(node).tell(&format!("ACL SETUSER {rules}")), "+OK", "{rules}");
    }
}

fn commands_that_are_not_permitted_are_named(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let password = dir.path().join("password");
    fs::write(&password, "guest").unwrap();
    let as_user =
        |more: &str| settings(cluster.nodes(), &format!("username = \"hapax\"\npassword_file = {password:?}\n{more}"));
    permit(&cluster, "hapax on >guest ~hapax:* +@all -set -zadd -evalsha");
    let said = refused(&as_user(""), dir.path());
    assert_says(&said, &["127.0.0.1:", "the user hapax", "hapax: EVALSHA, ZADD, SET;"]);
    assert_says(&said, &["ACL SETUSER hapax ~hapax:* +evalsha +zadd +set"]);
    // These are needed to find the other nodes.
    permit(&cluster, "hapax -cluster");
    let said = refused(&as_user(""), dir.path());
    assert_says(&said, &["CLUSTER INFO, CLUSTER NODES, CLUSTER SLOTS, EVALSHA, ZADD, SET;"]);
    permit(&cluster, "hapax +@all");
    let said = refused(&as_user("prefix = \"other\""), dir.path());
    assert_says(&said, &["on keys that begin with other:", "HSETNX", "~other:* +evalsha"]);
}

#[test]
fn commands_that_redis_does_not_permit_are_named() {
    commands_that_are_not_permitted_are_named(Kind::Redis);
}

#[test]
fn commands_that_valkey_does_not_permit_are_named() {
    commands_that_are_not_permitted_are_named(Kind::Valkey);
}

/// Returns the rules for a user in docs/redis.md.
fn documented_rules() -> String {
    let page = fs::read_to_string(root().join("docs/redis.md")).unwrap();
    let rules = page.split("\nACL SETUSER ").nth(1).and_then(|rest| rest.split("\n```").next()).expect("the rules");
    rules.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_documented_user_may_do_all_that_a_server_does() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let password = dir.path().join("password");
    fs::write(&password, "PASSWORD").unwrap();
    permit(&cluster, &documented_rules());
    let more = format!("username = \"hapax\"\npassword_file = {password:?}");
    let server = start_with(&settings(cluster.nodes(), &more), dir.path(), "permitted").ready();
    let agent = agent();
    let send = |method, path: &str, body| ask(&agent, method, &server.url(path), &body).expect("it answers");
    let document = |id: &str| json!({"id": id, "text": words(1)});
    assert_eq!(send("POST", DOCUMENTS, document("a")).body["outcome"], "inserted");
    assert_eq!(send("POST", &format!("{DOCUMENTS}?on_duplicate=store"), document("b")).body["outcome"], "inserted");
    assert_eq!(send("POST", DOCUMENTS, document("c")).body["outcome"], "skipped");
    assert_eq!(send("POST", "/v1/collections/default/check", json!({"text": words(1)})).status, 200);
    assert_eq!(send("GET", &format!("{DOCUMENTS}?id=a"), Value::Null).status, 200);
    assert_eq!(send("DELETE", &format!("{DOCUMENTS}?id=a"), Value::Null).status, 200);
    assert_eq!(send("PUT", "/v1/collections/second", json!({})).status, 201);
    server.terminate();
    for node in &cluster.nodes()[..3] {
        assert_eq!(Node::connect(node).tell("ACL LOG"), "*0", "{node} has refused something");
    }
}

/// Looks at the cluster each second. While it is not fit, writes are refused and checks work.
#[test]
fn a_cluster_that_is_no_longer_fit_gets_no_writes() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let settings = settings(cluster.nodes(), "check_interval_s = 1");
    let server = start_at_level("info", &settings, dir.path(), "watching").ready();
    let agent = agent();
    let insert = |id: u64| {
        let document = json!({"id": id.to_string(), "text": words(id)});
        ask(&agent, "POST", &server.url(DOCUMENTS), &document).expect("it answers")
    };
    assert_eq!(insert(1).status, 200);
    let node = &*cluster.nodes()[2];
    set(node, "maxmemory-policy allkeys-lru");
    until("writes are refused", || insert(2).status == 503);
    let refused = insert(3);
    assert_eq!((refused.code(), refused.has_retry_after), ("store_unavailable", true));
    assert_says(
        refused.body["detail"].as_str().expect("a detail"),
        &[node, "maxmemory-policy allkeys-lru", "noeviction"],
    );
    let delete = ask(&agent, "DELETE", &server.url(&format!("{DOCUMENTS}?id=1")), &Value::Null).expect("it answers");
    let create = ask(&agent, "PUT", &server.url("/v1/collections/new"), &json!({})).expect("it answers");
    assert_eq!((delete.code(), create.code()), ("store_unavailable", "store_unavailable"));
    let check = server.url("/v1/collections/default/check");
    assert_eq!(
        ask(&agent, "POST", &check, &json!({"text": words(1)})).expect("it answers").body["verdict"],
        "exact_duplicate"
    );
    assert_eq!(Scrape::of(&server).sum(names::REDIS_UNFIT, ""), 1.0);
    std::thread::sleep(std::time::Duration::from_millis(2500));

    set(node, "maxmemory-policy noeviction");
    until("writes are accepted", || insert(4).status == 200);
    assert_eq!(Scrape::of(&server).sum(names::REDIS_UNFIT, ""), 0.0);
    server.terminate();
    let log = fs::read_to_string(dir.path().join("watching.log")).expect("a log");
    assert_eq!(["is not fit", "fit again"].map(|words| log.matches(words).count()), [1, 1], "{log}");
}

/// A node that was started without the script. It ends when this is dropped.
pub struct Single(pub Child);

impl Drop for Single {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_single_node_is_refused() {
    let Some(server) = Kind::Redis.server() else { return };
    let dir = dir();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut command = std::process::Command::new(server);
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]).current_dir(dir.path());
    command.stdout(std::process::Stdio::null());
    let _single = Single(command.spawn().expect("it starts"));
    let node = format!("127.0.0.1:{port}");
    until("it listens", || std::net::TcpStream::connect(&node).is_ok());
    let said = refused(&settings(std::slice::from_ref(&node), ""), dir.path());
    assert_says(&said, &[&node, "not part of a cluster", "cluster-enabled yes"]);
}

#[test]
fn the_settings_are_checked_without_a_cluster() {
    let dir = dir();
    let file = dir.path().join("hapax.toml");
    fs::write(&file, settings(&["127.0.0.1:1".to_owned()], "")).unwrap();
    let checked = command::run(&["serve", "--check-config", "--config", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}
