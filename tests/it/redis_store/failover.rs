//! If a primary fails, its replica takes over, and nothing that was acknowledged is lost. Meanwhile, clients are told to
//! try again.
//!
//! Without `redis.acks`, all replicas must have a write, so the failed node must come back before the new primary can
//! acknowledge one. With two replicas for each primary and `redis.acks` = 1, the other replica is enough.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::clients::{Clients, Load};
use super::nodes::primaries;
use super::one_winner::three_with;
use super::{seed, start, turn};
use crate::support::client::{CHECK, Client, DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::until::until_within;

/// The time in which writes must work again once there is a new primary that has a replica.
const AGAIN_MAX: Duration = Duration::from_secs(20);

const CLIENTS: u64 = 32;

/// Busy nodes and servers would need longer, whatever happens.
const PAUSE: Duration = Duration::from_millis(200);

pub fn until_elected(cluster: &RedisCluster) {
    let begun = Instant::now();
    while primaries(cluster).len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(30), "no election: {}", cluster.run("status", &[]));
        thread::sleep(Duration::from_millis(50));
    }
}

/// Lets the primary `node` fail under load. `alone`: each primary has only one replica.
fn a_failover_loses_nothing(kind: Kind, alone: bool) {
    let _turn = turn();
    let options: &[&str] = if alone { &[] } else { &["--replicas", "2"] };
    let Some(cluster) = RedisCluster::up_with(kind, options) else { return };
    let dir = dir();
    let servers = three_with(if alone { "" } else { "acks = 1" }, &cluster, dir.path());
    let clients = Clients::new(&servers, Load::new(CLIENTS, PAUSE));
    let needed = clients.during(seed("failover"), || {
        thread::sleep(Duration::from_secs(1));
        cluster.stop(0);
        let stopped = Instant::now();
        until_elected(&cluster);
        println!("failover: elected after {:?}", stopped.elapsed());
        if alone {
            cluster.start(0);
        }
        // All ids and groups together have all slots.
        let needed = clients.insert_pending();
        if !alone {
            cluster.start(0);
        }
        thread::sleep(Duration::from_secs(1));
        [needed, clients.insert_pending()]
    });
    println!("failover: writes worked {needed:?} after the election and later; {:?}", clients.verify());
    assert!(needed.iter().all(|needed| *needed < AGAIN_MAX), "writes needed {needed:?}");
}

#[test]
fn a_server_starts_without_replicas_and_writes_when_they_are_back() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let [document, other] = [1, 2].map(|number| json!({"id": number.to_string(), "text": words(number)}));
    let first = start(&cluster, dir.path(), "first").ready();
    Client::new(first.url("")).post(DOCUMENTS, &document).ok();
    let replicas = 3..6;
    replicas.clone().for_each(|node| cluster.stop(node));
    let second = start(&cluster, dir.path(), "second").ready();
    let client = Client::new(second.url(""));
    assert_eq!(client.post(CHECK, &json!({"text": words(1)})).ok()["duplicate_of"], "1");
    assert_eq!(client.post(DOCUMENTS, &other).json()["code"], "uncertain");
    replicas.for_each(|node| cluster.start(node));
    until_within(AGAIN_MAX, "a write works", || client.post(DOCUMENTS, &other).status == 200);
}

#[test]
fn a_failover_of_redis_loses_nothing() {
    a_failover_loses_nothing(Kind::Redis, false);
}

#[test]
fn a_failover_of_valkey_to_a_lone_primary_loses_nothing() {
    a_failover_loses_nothing(Kind::Valkey, true);
}
