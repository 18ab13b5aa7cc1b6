//! While all kinds of faults happen, the answers of several servers are linearizable: for all calls and their answers,
//! there is an order in which a single client could have received them. `history` says what PROMISES.md does not promise,
//! and what is therefore judged less strictly.
//!
//! A run has rounds on one cluster. In a round, clients insert, replace, delete and check documents of a few groups under a few ids
//! at three servers, one fault follows another, and in some rounds one of the servers is killed again and again, before
//! and after the commands that it sends. Then the nodes get well, all ids are read and all groups are checked, and the
//! whole history of the round is judged. The next round has other groups and ids, so histories do not grow.
//!
//! The clock of one server is two minutes ahead.
//!
//! `HAPAX_REDIS_FAULTS_SECONDS` sets the time of a run on one kind of cluster. Each fault happens at least once, however
//! short it is. `HAPAX_SEED` repeats the choices of a run, but not the times at which anything happens.

mod admin;
mod calls;
mod cell;
mod cell_histories;
mod clients;
mod figures;
mod history;
mod inject;
mod lies;
mod links;
mod moved;
mod nodes;
mod slots;
mod world;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::killed::{Killed, plans};
use super::{seed, turn, variable};
use crate::support::library::dir;
use crate::support::redis::Kind;
use crate::support::server::{Address, Server};
use clients::Clients;
use figures::Figures;
use history::{Times, judge};
use inject::Fault;
use world::{MORE, World};

const CLIENTS: u64 = 64;
/// Faults in one round.
const FAULTS: usize = 4;
/// The time of clients before the first fault of a round and after each.
const BETWEEN: Duration = Duration::from_millis(500);
/// The number of the server whose clock is two minutes ahead, and of the one that is killed.
const AHEAD: usize = 1;
const KILLED: usize = 2;

/// A run on one cluster.
struct Run<'a> {
    world: &'a World,
    clients: &'a Clients,
    killed: Killed<'a>,
    random: ChaCha8Rng,
    figures: Figures,
}

impl Run<'_> {
    /// Lets faults happen, one after another. Then judges all answers.
    fn round(&mut self, faults: &[Fault], with_kills: bool, server: Server) -> Server {
        let begun = Instant::now();
        let mut stale = Vec::new();
        let ended = AtomicBool::new(false);
        let plans = plans(&mut self.random, 1000);
        let seed: u64 = self.random.random();
        let (world, clients, killed) = (self.world, self.clients, &self.killed);
        let (random, figures) = (&mut self.random, &mut self.figures);
        let (server, kills) = clients.during(seed, || {
            std::thread::scope(|scope| {
                let killing = scope.spawn(|| {
                    if !with_kills {
                        return (server, 0);
                    }
                    server.kill();
                    let mut kills = 0;
                    for plan in plans.into_iter().take_while(|_| !ended.load(Ordering::Relaxed)) {
                        killed.die(plan);
                        kills += 1;
                    }
                    (killed.start_for_good(), kills)
                });
                // If a fault fails, the kills must end, too.
                let _end = SetAtEnd(&ended);
                for &fault in faults {
                    std::thread::sleep(BETWEEN);
                    let from = clients.now();
                    let name = world.happen(fault, random);
                    println!("faults: {name} took {:.1?}", clients.now() - from);
                    figures.add_faults(&name, 1);
                    if fault.leaves_a_stale_primary() {
                        stale.push((from, clients.now()));
                    }
                }
                std::thread::sleep(BETWEEN);
                ended.store(true, Ordering::Relaxed);
                killing.join().expect("a server can be killed")
            })
        });
        world.until_well();
        let times = Times { stale, quiet: clients.now() };
        clients.look(seed);
        self.judge(faults, kills, &times);
        println!("faults: {faults:?} and {kills} kills of a server in {:.1?}", begun.elapsed());
        server
    }

    fn judge(&mut self, faults: &[Fault], kills: u64, times: &Times) {
        let records = self.clients.take_records();
        self.figures.add_faults("KillServer", kills);
        self.figures.add(&records, times.quiet);
        let begun = Instant::now();
        let broken = judge(&records, times);
        println!("faults: {} answers were judged in {:.1?}", records.len(), begun.elapsed());
        assert!(broken.is_empty(), "{faults:?} and {kills} kills, {times:?}:\n{}", broken.join("\n"));
    }
}

/// Sets a flag when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs rounds until the time is over and each fault has happened.
fn answers_are_linearizable(kind: Kind) {
    let _turn = turn();
    let Some(world) = World::up(kind) else { return };
    let (dir, clients) = (dir(), Clients::new(CLIENTS));
    let moved = |number, address: Option<&Address>| clients.moved(number, address);
    let proxies: Vec<_> = (0..KILLED).map(|_| world.proxy(None)).collect();
    let servers = start_all(&world, &proxies, dir.path());
    servers.iter().enumerate().for_each(|(number, server)| moved(number, Some(server.address())));
    let killed = Killed { number: KILLED, proxy: world.proxy(None), dir: dir.path(), moved: &moved, more: MORE };
    let mut server = killed.start_for_good();

    let random = ChaCha8Rng::seed_from_u64(seed("faults"));
    let mut run = Run { world: &world, clients: &clients, killed, random, figures: Figures::default() };
    let time = Duration::from_secs(variable("HAPAX_REDIS_FAULTS_SECONDS").unwrap_or(0));
    let begun = Instant::now();
    let mut is_first = true;
    while is_first || begun.elapsed() < time {
        let mut faults = Fault::ALL;
        faults.shuffle(&mut run.random);
        for (number, faults) in faults.chunks(FAULTS).enumerate() {
            if is_first || begun.elapsed() < time {
                server = run.round(faults, number % 2 == 1, server);
            }
        }
        is_first = false;
    }
    println!("faults of {kind:?} in {:.0?}: {}", begun.elapsed(), run.figures);
    for answer in ["insert: stored", "insert: duplicate", "insert: id_conflict", "delete: deleted", "check: duplicate"]
    {
        assert!(run.figures.count(answer) > 0, "no {answer}");
    }
}

fn start_all(world: &World, proxies: &[super::proxy::Proxy], dir: &Path) -> Vec<Server> {
    proxies.iter().enumerate().map(|(number, proxy)| world.server(proxy, dir, number, number == AHEAD)).collect()
}

#[test]
#[ignore = "takes a minute; runs in `make redis-faults`"]
fn answers_are_linearizable_during_faults_of_redis() {
    answers_are_linearizable(Kind::Redis);
}

#[test]
#[ignore = "takes a minute; runs in `make redis-faults`"]
fn answers_are_linearizable_during_faults_of_valkey() {
    answers_are_linearizable(Kind::Valkey);
}
