//! Collections on real Redis and Valkey Clusters. One server answers as a server with a disk does (`same_answers`).
//! Several servers, which share a cluster, store at most one of several similar documents (`one_winner`), also if servers
//! are killed (`kills`, `leases`), or a node of the cluster fails (`failover`) or is full (`full_node`). Operations need
//! few round trips (`round_trips`). A server does not start on a cluster that is not fit (`refusals`). Changed settings and
//! drops reach all servers (`changes`, `drops`). Documents that share bands are found in the order of their
//! numbers (`postings`). Shingles may decide which documents are duplicates (`exact`). A copied collection answers as the
//! original (`copies`). `hapax reconcile` repairs what a cluster has lost (`reconciling`). A document may replace another one
//! (`replacements`) or expire (`expiry`), or others delete it all the time (`disturbances`). While all kinds of faults happen,
//! the answers of several servers are linearizable (`faults`).
//!
//! `proxy` is a proxy between a server and a cluster, which sees each command.
//!
//! `HAPAX_REDIS_OPERATIONS` sets the number of operations of `same_answers`, `HAPAX_REDIS_KILLS` the number of kills, and
//! `HAPAX_REDIS_SECONDS` the time of the load of `one_winner`. `HAPAX_SEED` repeats the random choices of a run.

mod changes;
mod clients;
mod commands;
mod compared;
mod contents;
mod copies;
mod deaths;
mod disturbances;
mod drops;
mod exact;
mod expiry;
mod failover;
mod faults;
mod full_node;
mod http;
mod judge;
mod killed;
mod kills;
mod leases;
mod metrics;
mod nodes;
mod notes;
mod one_winner;
mod operations;
mod postings;
mod proxy;
mod reconciling;
mod refusals;
mod replacements;
mod resp;
mod round_trips;
mod rounds;
mod same_answers;
mod tls;

use std::fmt::Write as _;
use std::path::Path;

use parking_lot::{Mutex, MutexGuard};

use crate::support::redis::RedisCluster;
use crate::support::server::Starting;

/// Returns the settings of a server on these nodes, with more lines of the section `[redis]`.
fn settings(nodes: &[String], more: &str) -> String {
    let mut text = format!("[data]\nstore = \"redis\"\n[redis]\nnodes = {nodes:?}\n");
    writeln!(text, "{more}").expect("a string takes everything");
    text
}

/// Starts a server on the cluster. `name` names its files in `dir`.
fn start(cluster: &RedisCluster, dir: &Path, name: &str) -> Starting {
    start_with(&settings(cluster.nodes(), ""), dir, name)
}

fn start_with(settings: &str, dir: &Path, name: &str) -> Starting {
    start_at_level("warn", settings, dir, name)
}

fn start_at_level(level: &str, settings: &str, dir: &Path, name: &str) -> Starting {
    start_in(&[], level, settings, dir, name)
}

/// Starts a server with more variables in its environment.
fn start_in(environment: &[(&str, &str)], level: &str, settings: &str, dir: &Path, name: &str) -> Starting {
    let file = dir.join(format!("{name}.toml"));
    std::fs::write(&file, settings).expect("the settings are written");
    let file = file.to_str().expect("UTF-8");
    Starting::spawn_with(&dir.join(name), &["--config", file, "--log-level", level], environment)
}

/// Reads a number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Waits until no other test has many clients, because these tests have bounds on times.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

/// Returns the seed of a run, and prints it.
fn seed(test: &str) -> u64 {
    let seed = variable("HAPAX_SEED").unwrap_or_else(rand::random);
    println!("{test}: HAPAX_SEED={seed}");
    seed
}
