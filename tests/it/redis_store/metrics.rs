//! The metrics of the client of the cluster: they have the names and labels of `names.rs`, and change when the event
//! happens that they count.

use std::collections::BTreeSet;
use std::fs;

use hapax::telemetry::names;
use serde_json::json;

use super::http::{agent, ask};
use super::nodes::{Node, primaries};
use super::{settings, start, start_with};
use crate::support::client::{DOCUMENTS, lines, words};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Server;
use crate::support::until::until;

/// The metrics of a server.
pub struct Scrape(String);

impl Scrape {
    pub fn of(server: &Server) -> Self {
        let mut answer = agent().get(server.url("/metrics")).call().expect("metrics");
        Self(answer.body_mut().with_config().limit(1 << 26).read_to_string().expect("text"))
    }

    /// Returns whether there is a series of a name that has `label`.
    pub fn has(&self, name: &str, label: &str) -> bool {
        self.0.lines().any(|line| line.strip_prefix(name).is_some_and(|of| of.starts_with('{') && of.contains(label)))
    }

    /// Returns the sum over all series of a name that have `label`, such as `kind="wait"`.
    pub fn sum(&self, name: &str, label: &str) -> f64 {
        let series = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (of, value) = rest.rsplit_once(' ')?;
            let is_of = (of.is_empty() || of.starts_with('{')) && of.contains(label);
            is_of.then(|| value.parse::<f64>().expect("a number"))
        });
        series.sum()
    }
}

#[test]
fn the_client_counts_what_it_sends() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    let server = start(&cluster, dir.path(), "server").ready();
    let agent = agent();
    let count = |name| Scrape::of(&server).sum(name, "");
    let before = [names::REDIS_ROUND_TRIPS, names::REDIS_PIPELINES, names::REDIS_COMMANDS].map(count);
    let url = server.url(DOCUMENTS);
    for (number, id) in ["a", "b"].into_iter().enumerate() {
        let answer = ask(&agent, "POST", &url, &json!({"id": id, "text": words(number as u64)})).expect("it answers");
        assert_eq!(answer.body["outcome"], "inserted");
    }
    let scrape = Scrape::of(&server);
    let [round_trips, pipelines, commands] =
        [names::REDIS_ROUND_TRIPS, names::REDIS_PIPELINES, names::REDIS_COMMANDS].map(|name| scrape.sum(name, ""));
    println!("{before:?}, then {round_trips} {pipelines} {commands}");
    // Each insert reads and writes 31 bands and a content, and several of its pipelines go to three nodes.
    assert!(round_trips >= before[0] + 6.0 && pipelines > round_trips && commands > before[2] + 2.0 * 64.0);
    let durations = format!("{}_count", names::REDIS_PIPELINE_SECONDS);
    for node in &cluster.nodes()[..3] {
        let label = format!("node=\"{node}\"");
        let [pipelines, commands] =
            [names::REDIS_PIPELINES, names::REDIS_COMMANDS].map(|name| scrape.sum(name, &label));
        let [plain, wait] = ["plain", "wait"].map(|kind| scrape.sum(&durations, &format!("{label},kind=\"{kind}\"")));
        println!("{node}: {pipelines} {commands} {plain} {wait}");
        // Both inserts wait for replicas once or more, and read without.
        assert!(plain >= 2.0 && wait >= 2.0 && commands > pipelines);
    }
    // The background reads other things meanwhile, so the times of some pipelines may be missing.
    assert!(scrape.sum(&durations, "") >= pipelines - 8.0);
    assert!(scrape.sum(names::REDIS_SENT_AGAIN, "reason=\"no_script\"") > 0.0);
    assert_eq!(scrape.sum(names::REDIS_SHORT_ACKNOWLEDGEMENTS, ""), 0.0);
    for kind in ["wait", "wound", "abort"] {
        assert!(scrape.has(names::REDIS_CONFLICTS, kind), "an alert must notice the first {kind}");
    }

    for replica in &cluster.nodes()[3..] {
        cluster.stop(replica);
    }
    assert_eq!(ask(&agent, "POST", &url, &json!({"id": "c", "text": words(3)})).expect("it answers").status, 503);
    let scrape = Scrape::of(&server);
    assert!(scrape.sum(names::REDIS_SHORT_ACKNOWLEDGEMENTS, "") > 0.0);
    assert_names_and_labels(&scrape);
}

#[test]
fn large_groups_of_postings_are_told_before_they_are_too_large() {
    let Some(cluster) = RedisCluster::up(Kind::Redis) else { return };
    let dir = dir();
    // All postings of a band are in one group.
    let server = start_with(&settings(cluster.nodes(), "documents_expected = 48"), dir.path(), "server").ready();
    let agent = agent();
    let bulk = |numbers| {
        let sent = ask(&agent, "POST", &server.url("/v1/collections/default/bulk?op=insert"), &json!(lines(numbers)));
        assert_eq!(sent.expect("it answers").status, 200);
    };
    let is = |expected: f64| {
        until("the documents are counted", || Scrape::of(&server).sum(names::REDIS_POSTINGS_PER_GROUP, "") == expected);
        let log = fs::read_to_string(dir.path().join("server.log")).expect("a log");
        log.matches("far more documents").count()
    };
    bulk(0..390);
    assert_eq!(is(390.0), 0);
    bulk(390..400);
    assert_eq!(is(400.0), 1);
    bulk(400..410);
    assert_eq!(is(410.0), 1);
}

/// Returns the label of a node.
fn of(node: &str) -> String {
    format!("node=\"{node}\"")
}

fn changes(scrape: &Scrape) -> [f64; 3] {
    ["failover", "restart", "other"]
        .map(|kind| scrape.sum(names::REDIS_REPLICATION_IDS_CHANGED, &format!("kind=\"{kind}\"")))
}

/// In an earlier version, a server without requests did not notice that a primary had become a replica. It found that
/// this node had no replicas, and refused writes.
#[test]
fn planned_failovers_are_counted_and_memory_is_that_of_the_new_primaries() {
    let Some(cluster) = RedisCluster::up_with(Kind::Redis, &["--maxmemory", "1gb"]) else { return };
    let dir = dir();
    let server = start_with(&settings(cluster.nodes(), "check_interval_s = 1"), dir.path(), "watching").ready();
    let other = start(&cluster, dir.path(), "other").ready();
    let (old, new) = cluster.nodes().split_at(3);
    let memory = |scrape: &Scrape, node: &String| {
        [names::REDIS_MEMORY_USED, names::REDIS_MEMORY_MAX].map(|name| scrape.sum(name, &of(node)))
    };
    let scrape = Scrape::of(&server);
    assert!(old.iter().all(|node| memory(&scrape, node)[0] > 1e6 && memory(&scrape, node)[1] == f64::from(1 << 30)));
    assert!(!new.iter().any(|node| scrape.has(names::REDIS_MEMORY_USED, &of(node))));
    assert_eq!(changes(&scrape), [0.0; 3]);

    for node in new {
        assert_eq!(Node::connect(node).tell("CLUSTER FAILOVER"), "+OK");
        until("it is a primary", || primaries(&cluster).contains(node));
    }
    until("the failovers are counted", || changes(&Scrape::of(&server)) == [3.0, 0.0, 0.0]);
    until("the old primaries are forgotten", || {
        let scrape = Scrape::of(&server);
        let shown = |node: &String| scrape.has(names::REDIS_MEMORY_USED, &of(node));
        new.iter().all(|node| shown(node) && memory(&scrape, node)[0] > 1e6) && !old.iter().any(shown)
    });
    assert_eq!(changes(&Scrape::of(&server)), [3.0, 0.0, 0.0]);
    let log = fs::read_to_string(dir.path().join("watching.log")).expect("a log");
    let told = ["has taken over from its primary", "is not fit"].map(|words| log.matches(words).count());
    assert_eq!(told, [3, 0], "{log}");
    assert!(old.iter().chain(new).all(|node| log.contains(node)), "{log}");

    // The other server notices the first failover when a node refers it to another one.
    let inserted = ask(&agent(), "POST", &other.url(DOCUMENTS), &json!({"id": "a", "text": words(1)}));
    assert_eq!(inserted.expect("it answers").status, 200);
    let scrape = Scrape::of(&other);
    let moved = |node: &String| scrape.sum(names::REDIS_SENT_AGAIN, &format!("{},reason=\"moved\"", of(node)));
    assert!(old.iter().map(moved).sum::<f64>() > 0.0 && new.iter().map(moved).sum::<f64>() == 0.0);
    assert_names_and_labels(&scrape);
}

fn a_restart_is_counted_and_a_node_that_left_is_forgotten(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let server = start_with(&settings(cluster.nodes(), "check_interval_s = 1"), dir.path(), "watching").ready();
    let (primary, replica) = (&cluster.nodes()[0], &cluster.nodes()[3]);
    // Otherwise, the replica takes over if the restart takes long.
    assert_eq!(Node::connect(replica).tell("CONFIG SET cluster-replica-no-failover yes"), "+OK");
    cluster.stop(primary);
    cluster.start(primary);
    until("the restart is counted", || changes(&Scrape::of(&server)) == [0.0, 1.0, 0.0]);
    let log = fs::read_to_string(dir.path().join("watching.log")).expect("a log");
    assert_eq!(log.matches("has restarted").count(), 1, "{log}");

    // A server that asks all nodes for changes has series of replicas, too.
    until("the replica was asked", || Scrape::of(&server).sum(names::REDIS_PIPELINES, &of(replica)) > 0.0);
    let id = Node::connect(replica).tell("CLUSTER MYID");
    cluster.stop(replica);
    for node in cluster.nodes().iter().filter(|node| *node != replica) {
        assert_eq!(Node::connect(node).tell(&format!("CLUSTER FORGET {id}")), "+OK", "{node}");
    }
    until("the node is forgotten", || !Scrape::of(&server).0.contains(&of(replica)));
    assert!(Scrape::of(&server).has(names::REDIS_PIPELINES, &of(primary)));
}

#[test]
fn a_restart_of_redis_is_counted_and_a_node_that_left_is_forgotten() {
    a_restart_is_counted_and_a_node_that_left_is_forgotten(Kind::Redis);
}

#[test]
fn a_restart_of_valkey_is_counted_and_a_node_that_left_is_forgotten() {
    a_restart_is_counted_and_a_node_that_left_is_forgotten(Kind::Valkey);
}

fn assert_names_and_labels(scrape: &Scrape) {
    for line in scrape.0.lines().filter(|line| line.starts_with("hapax_redis_")) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let is_of = |metric: &names::Metric, name: &str| match name.strip_prefix(metric.name) {
            Some("") => !matches!(metric.kind, names::Kind::Histogram(_)),
            Some("_bucket" | "_sum" | "_count") => matches!(metric.kind, names::Kind::Histogram(_)),
            _ => false,
        };
        let metric = names::all().find(|metric| is_of(metric, name)).unwrap_or_else(|| panic!("{name} is in no table"));
        let labels: BTreeSet<_> = match line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')) {
            Some((labels, _)) => labels.split("\",").filter_map(|label| label.split('=').next()).collect(),
            None => BTreeSet::new(),
        };
        let labels: BTreeSet<_> = labels.into_iter().filter(|label| *label != "le").collect();
        assert_eq!(labels, metric.labels.iter().copied().collect(), "{line}");
    }
}
