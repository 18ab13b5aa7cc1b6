//! A server that is killed loses nothing that it has acknowledged, and leaves nothing that other servers wait for longer
//! than a few seconds.

use std::thread;
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::clients::Clients;
use super::nodes::records;
use super::one_winner::three;
use super::{seed, start, turn, variable};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Server;

/// A document that a killed server was inserting is given up by others after two seconds.
const PENDING_MAX: Duration = Duration::from_secs(20);

fn killed_servers_lose_and_block_nothing(kind: Kind) {
    let _turn = turn();
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let mut servers = three(&cluster, dir.path());
    let clients = Clients::new(&servers, Duration::ZERO);
    let seed = seed("kills");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    clients.during(seed, || {
        for _ in 0..variable("HAPAX_REDIS_KILLS").unwrap_or(10) {
            thread::sleep(Duration::from_millis(random.random_range(20..500)));
            let number = random.random_range(0..servers.len());
            servers.remove(number).kill();
            let again = start(&cluster, dir.path(), &format!("server{number}")).ready();
            clients.moved(number, again.address());
            servers.insert(number, again);
        }
        // All of them die at once, so no server finishes their insertions.
        servers.drain(..).for_each(Server::kill);
    });
    let servers = three(&cluster, dir.path());
    servers.iter().enumerate().for_each(|(number, server)| clients.moved(number, server.address()));
    let needed = clients.insert_pending();
    println!("kills: pending documents were inserted within {needed:?}; {:?}", clients.verify());
    println!("kills: {} documents; records: {:?}", clients.held(), records(&cluster));
    assert!(needed < PENDING_MAX, "an insertion needed {needed:?}");
}

#[test]
fn killed_servers_on_redis_lose_and_block_nothing() {
    killed_servers_lose_and_block_nothing(Kind::Redis);
}

#[test]
fn killed_servers_on_valkey_lose_and_block_nothing() {
    killed_servers_lose_and_block_nothing(Kind::Valkey);
}
