//! The metrics of the client of the cluster: they have the names and labels of `names.rs`, and change when the event
//! happens that they count.

use std::collections::BTreeSet;

use hapax::telemetry::names;
use serde_json::json;

use super::http::{agent, ask};
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
    for node in &cluster.nodes()[..3] {
        let label = format!("node=\"{node}\"");
        assert!(scrape.sum(names::REDIS_PIPELINES, &label) > 0.0 && scrape.sum(names::REDIS_COMMANDS, &label) > 0.0);
    }
    assert!(scrape.sum(names::REDIS_SENT_AGAIN, "reason=\"no_script\"") > 0.0);
    assert_eq!(scrape.sum(names::REDIS_SHORT_ACKNOWLEDGEMENTS, ""), 0.0);

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
        let log = std::fs::read_to_string(dir.path().join("server.log")).expect("a log");
        log.matches("far more documents").count()
    };
    bulk(0..390);
    assert_eq!(is(390.0), 0);
    bulk(390..400);
    assert_eq!(is(400.0), 1);
    bulk(400..410);
    assert_eq!(is(410.0), 1);
}

fn assert_names_and_labels(scrape: &Scrape) {
    for line in scrape.0.lines().filter(|line| line.starts_with("hapax_redis_")) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let metric = names::all().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name} is in no table"));
        let labels: BTreeSet<_> = match line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')) {
            Some((labels, _)) => labels.split("\",").filter_map(|label| label.split('=').next()).collect(),
            None => BTreeSet::new(),
        };
        assert_eq!(labels, metric.labels.iter().copied().collect(), "{line}");
    }
}
