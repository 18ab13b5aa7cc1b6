//! Of several similar documents, at most one is stored at a time, whichever server they are sent to.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::clients::{Clients, Load};
use super::nodes::records;
use super::{seed, settings, start_with, turn, variable};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::{Server, Starting};
use crate::support::until::until_within;

const CLIENTS: u64 = 32;

/// Starts three servers at once.
pub fn three(cluster: &RedisCluster, dir: &Path) -> Vec<Server> {
    three_with("", cluster, dir)
}

/// Does the same with more lines of the section `[redis]`.
pub fn three_with(more: &str, cluster: &RedisCluster, dir: &Path) -> Vec<Server> {
    let settings = settings(cluster.nodes(), more);
    let starting: Vec<Starting> = (0..3).map(|number| start_with(&settings, dir, &format!("server{number}"))).collect();
    starting.into_iter().map(Starting::ready).collect()
}

fn three_servers_store_one_of_each_group(kind: Kind) {
    let _turn = turn();
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let servers = three(&cluster, dir.path());
    let clients = Clients::new(&servers, Load::new(CLIENTS, Duration::ZERO));
    let seconds = variable("HAPAX_REDIS_SECONDS").unwrap_or(4);
    clients.during(seed("one_winner"), || thread::sleep(Duration::from_secs(seconds)));
    let counts = clients.verify();
    println!("one_winner: {counts:?}; {} documents; records: {:?}", clients.held(), records(&cluster));
    // Once, a document that another one had wounded stayed pending after its insertion had ended, and others waited for it.
    until_within(Duration::from_secs(20), "no document is pending", || !records(&cluster).contains_key("p"));
    for answer in ["Insert Stored", "Insert Duplicate", "Insert Conflict", "Delete Deleted(true)", "Check Unique"] {
        assert!(counts.contains_key(answer), "no {answer}: {counts:?}");
    }
    // Of two deletes of one id, the later one may not learn which of them has deleted the document.
    let is_clear = |answer: &String| answer == "Delete Unclear" || !answer.contains("Unclear");
    assert!(counts.keys().all(|answer| is_clear(answer) && !answer.contains("Refused")), "{counts:?}");
}

#[test]
fn three_servers_on_redis_store_one_of_each_group() {
    three_servers_store_one_of_each_group(Kind::Redis);
}

#[test]
fn three_servers_on_valkey_store_one_of_each_group() {
    three_servers_store_one_of_each_group(Kind::Valkey);
}
