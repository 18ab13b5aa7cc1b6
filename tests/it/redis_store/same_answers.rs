//! To a single client, a server on a cluster answers as a server with a disk does.

use std::collections::BTreeMap;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::compared::compared;
use super::operations::{Operations, Request};
use super::{seed, settings, start_with, variable};
use crate::support::client::{Client, DOCUMENTS};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Starting;

/// A run goes on for so many times its operations, at most, until each wanted outcome was seen.
const OPERATIONS_MAX: u64 = 4;

fn send(client: &Client, request: &Request, beside: bool) -> (u16, Value) {
    let headers = [("content-type", request.content_type)];
    let headers = if request.body.is_empty() { &[][..] } else { &headers };
    let answer = client.send(request.method, &request.target, headers, &request.body);
    let is_lines = answer.status == 200 && request.target.contains("/bulk?");
    let body = if is_lines { json!(answer.lines()) } else { answer.json() };
    (answer.status, compared(body, beside))
}

/// Counts the outcomes in an answer, so that it can be seen what a run has tried.
fn count(answer: &Value, counts: &mut BTreeMap<String, u64>) {
    let outcome = answer["outcome"].as_str().or(answer["code"].as_str());
    if let Some(outcome) = outcome {
        let verdict = answer["verdict"].as_str().unwrap_or_default();
        *counts.entry(format!("{outcome} {verdict}")).or_default() += 1;
    }
    let inner = answer["results"].as_array().or(answer.as_array());
    inner.into_iter().flatten().for_each(|answer| count(answer, counts));
}

/// `part`: the share of all operations. `verify`: how matches are verified.
fn a_cluster_answers_as_a_disk_does(kind: Kind, part: u64, verify: &str) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let keep = if verify == "estimate" { "signature" } else { "shingles" };
    let default = format!("[default_collection]\nkeep = \"{keep}\"\nverify = \"{verify}\"\n");
    let disk = dir.path().join("disk.toml");
    std::fs::write(&disk, &default).expect("the settings are written");
    let disk = ["--config", disk.to_str().expect("UTF-8")];
    let on_disk = Starting::spawn_with(&dir.path().join("disk"), &disk, &[]);
    let on_cluster = start_with(&settings(cluster.nodes(), &default), dir.path(), "cluster");
    let (on_cluster, on_disk) = (on_cluster.ready(), on_disk.ready());
    let [cluster_client, disk_client] = [&on_cluster, &on_disk].map(|server| Client::new(server.url("")));
    let seed = seed("same_answers");
    let mut operations = Operations::new(ChaCha8Rng::seed_from_u64(seed), disk_client.clone());
    let (mut counts, mut differences) = (BTreeMap::new(), Vec::new());
    let all = variable("HAPAX_REDIS_OPERATIONS").unwrap_or(2000) / part;
    let often = ["inserted unique", "inserted exact_duplicate", "skipped near_duplicate", "updated unique"];
    let seldom = ["replaced unique", "inserted near_duplicate", "removed near_duplicate"];
    let wanted: Vec<_> = often.into_iter().chain(seldom.into_iter().filter(|_| part == 1)).collect();
    for number in 0..OPERATIONS_MAX * all {
        if number >= all && wanted.iter().all(|outcome| counts.contains_key(*outcome)) {
            break;
        }
        let beside = number > all / 3;
        let request = if number == all / 3 + 1 { operations.begin_beside() } else { operations.next() };
        let (in_cluster, here) = (send(&cluster_client, &request, beside), send(&disk_client, &request, beside));
        count(&here.1, &mut counts);
        if in_cluster != here {
            let (in_cluster, here) = (told(&in_cluster), told(&here));
            let request = request.told();
            differences.push(format!("operation {number}: {request}\n  the cluster: {in_cluster}\n  the disk: {here}"));
        }
        // After different decisions, later answers differ, too.
        if differences.len() > variable("HAPAX_REDIS_DIFFERENCES").unwrap_or(0) as usize {
            break;
        }
    }
    println!("same_answers: {counts:?}");
    if differences.is_empty() {
        assert_eq!(all_documents(&cluster_client), all_documents(&disk_client));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    for outcome in wanted {
        assert!(counts.contains_key(outcome), "no {outcome}: {counts:?}");
    }
}

/// Returns all documents of a server, in pages.
fn all_documents(client: &Client) -> BTreeMap<String, Value> {
    let (mut documents, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = client.get(&format!("{DOCUMENTS}?limit=7{cursor}")).ok();
        for document in page["documents"].as_array().expect("a list") {
            let id = document["id"].as_str().expect("an id").to_owned();
            assert!(documents.insert(id, compared(document.clone(), true)).is_none(), "twice: {document}");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return documents,
        }
    }
}

fn told((status, body): &(u16, Value)) -> String {
    format!("{status} {body}")
}

#[test]
fn a_redis_cluster_answers_as_a_disk_does() {
    a_cluster_answers_as_a_disk_does(Kind::Redis, 1, "estimate");
}

#[test]
fn a_valkey_cluster_answers_as_a_disk_does() {
    a_cluster_answers_as_a_disk_does(Kind::Valkey, 1, "estimate");
}

#[test]
fn a_redis_cluster_compares_all_shingles_as_a_disk_does() {
    a_cluster_answers_as_a_disk_does(Kind::Redis, 2, "exact");
}

#[test]
fn a_valkey_cluster_compares_doubtful_shingles_as_a_disk_does() {
    a_cluster_answers_as_a_disk_does(Kind::Valkey, 2, "borderline");
}
