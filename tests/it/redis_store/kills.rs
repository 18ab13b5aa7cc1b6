//! Servers are killed before and after each kind of command that they send, while many clients insert, delete and check
//! documents of a few groups under a few ids. Nothing that was acknowledged is lost, nothing is invented, and at most one
//! document of a group is stored. Nothing stays that other servers wait for longer than a few seconds.
//!
//! Between each server and the cluster is a proxy, which kills the server (SIGKILL) before the node gets a chosen command,
//! or after the node has executed it and before the answer arrives. Meanwhile one primary fails.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::clients::{Clients, Load};
use super::commands::{CommandKind, OF_DOCUMENTS};
use super::deaths::{Moment, Plan};
use super::failover::until_elected;
use super::killed::{Killed, plans};
use super::nodes::{dangling, records};
use super::one_winner::three;
use super::proxy::Proxy;
use super::{seed, turn, variable};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::{Address, Server};

/// Each killed server leaves documents pending. An insertion that meets one of them waits for two seconds, and most servers
/// are killed again before. So the clients go on to other groups and ids.
const LOAD: Load = Load { clients: 64, pause: Duration::ZERO, groups: 200, ids: 2000 };
/// Kills on one cluster. Judging the answers takes longer for each answer if there are more of them.
const KILLS_AT_ONCE: u64 = 200;
/// A document that a killed server was inserting is given up by others after two seconds.
const PENDING_MAX: Duration = Duration::from_secs(20);

/// Then the walk goes through few groups.
const MORE: &str = "documents_expected = 10000";
/// The servers remove everything that killed servers have left within this time.
const LEFT_MAX: Duration = Duration::from_secs(60);

/// How many servers died at each kind of command.
type Hits = BTreeMap<(CommandKind, Moment), u64>;

/// Kills servers by these plans. Meanwhile, one primary fails, and comes back as a replica.
fn kill_all(cluster: &RedisCluster, killed: &[Killed<'_>], plans: Vec<Plan>, hits: &Mutex<Hits>) {
    let half = plans.len() / 2;
    let plans = Mutex::new(plans);
    let next = || plans.lock().pop();
    let servers: Vec<Server> = thread::scope(|scope| {
        let work = |killed: &Killed<'_>| {
            while let Some(plan) = next() {
                *hits.lock().entry(killed.die(plan)).or_default() += 1;
            }
            killed.start_for_good()
        };
        let threads: Vec<_> = killed.iter().map(|killed| scope.spawn(move || work(killed))).collect();
        while plans.lock().len() > half {
            thread::sleep(Duration::from_millis(20));
        }
        cluster.stop(0);
        until_elected(cluster);
        cluster.start(0);
        threads.into_iter().map(|thread| thread.join().expect("no server fails")).collect()
    });
    thread::sleep(Duration::from_millis(300));
    // All of them die at once, so no server finishes their insertions.
    servers.into_iter().for_each(Server::kill);
}

fn some_kills(kind: Kind, random: &mut ChaCha8Rng, kills: u64, hits: &Mutex<Hits>) -> Option<()> {
    let cluster = RedisCluster::up(kind)?;
    let dir = dir();
    let clients = Clients::new(&[], LOAD);
    let moved = |number, address: Option<&Address>| clients.moved(number, address);
    let proxy = || Proxy::start(cluster.nodes());
    let proxy = |number| Killed { number, proxy: proxy(), dir: dir.path(), moved: &moved, more: MORE };
    let killed: Vec<_> = (0..3).map(proxy).collect();
    let begun = Instant::now();
    clients.during(random.random(), || kill_all(&cluster, &killed, plans(random, kills), hits));
    let took = begun.elapsed();
    let servers = three(&cluster, dir.path());
    servers.iter().enumerate().for_each(|(number, server)| clients.moved(number, Some(server.address())));
    let needed = clients.insert_pending();
    let verified = clients.verify();
    println!("kills: {kills} in {took:?}; pending documents were inserted within {needed:?}; {verified:?}");
    println!("kills: {} documents; records: {:?}", clients.held(), records(&cluster));
    assert!(needed < PENDING_MAX, "an insertion needed {needed:?}");
    // Nobody does anything for it: the servers end and remove what the killed ones have left.
    let begun = Instant::now();
    loop {
        let (records, dangling) = (records(&cluster), dangling(&cluster));
        if records.keys().all(|state| state == "s" || state == "a bare") && dangling.is_empty() {
            break;
        }
        let some = dangling.iter().take(5).collect::<Vec<_>>();
        let count = dangling.len();
        let left = format!("{records:?}, {count} postings and ids that lead to no document: {some:?}");
        assert!(begun.elapsed() < LEFT_MAX, "after {LEFT_MAX:?}, there are {left}");
        thread::sleep(Duration::from_millis(200));
    }
    let took = begun.elapsed();
    println!("kills: everything is removed after {took:?}; records: {:?}", records(&cluster));
    assert!(clients.verify() == verified, "the walk has changed which documents are stored");
    Some(())
}

fn killed_servers_lose_and_block_nothing(kind: Kind) {
    let _turn = turn();
    let mut random = ChaCha8Rng::seed_from_u64(seed("kills"));
    let all = variable("HAPAX_REDIS_KILLS").unwrap_or(KILLS_AT_ONCE);
    let hits = Mutex::default();
    let mut left = all;
    while left > 0 {
        let some = left.min(KILLS_AT_ONCE);
        if some_kills(kind, &mut random, some, &hits).is_none() {
            return;
        }
        left -= some;
    }
    let hits = hits.into_inner();
    println!("kills: {} kills: {hits:?}", hits.values().sum::<u64>());
    let chosen = OF_DOCUMENTS.into_iter().flat_map(|kind| [(kind, Moment::Before), (kind, Moment::After)]);
    let missed: Vec<_> = chosen.filter(|chosen| !hits.contains_key(chosen)).collect();
    // Few kills cannot hit all kinds.
    assert!(missed.is_empty() || all < KILLS_AT_ONCE, "no server died at {missed:?}");
}

#[test]
fn killed_servers_on_redis_lose_and_block_nothing() {
    killed_servers_lose_and_block_nothing(Kind::Redis);
}

#[test]
fn killed_servers_on_valkey_lose_and_block_nothing() {
    killed_servers_lose_and_block_nothing(Kind::Valkey);
}
