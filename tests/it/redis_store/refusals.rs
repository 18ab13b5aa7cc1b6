//! A server does not start with wrong settings, or on a cluster that is not fit. It ends with status 2 and one line, which
//! names the node or the setting, and the remedy.

use std::fs;
use std::path::Path;
use std::process::Child;

use super::nodes::Node;
use super::{settings, start_with};
use crate::support::command;
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};

/// Starts a server that must not start. Returns its line.
fn refused(settings: &str, dir: &Path) -> String {
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

fn assert_says(said: &str, words: &[&str]) {
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
    assert_says(&refused("acks = 2"), &["127.0.0.1:", "has 1 replica", "redis.acks is 2", "add replicas"]);
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
    start_with(&settings(cluster.nodes(), ""), dir.path(), "fit").ready().terminate();
}

#[test]
fn unfit_redis_clusters_are_refused() {
    unfit_clusters_are_refused(Kind::Redis);
}

#[test]
fn unfit_valkey_clusters_are_refused() {
    unfit_clusters_are_refused(Kind::Valkey);
}

/// A node that is no part of a cluster. It ends when this is dropped.
struct Single(Child);

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
    crate::support::until::until("it listens", || std::net::TcpStream::connect(&node).is_ok());
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
