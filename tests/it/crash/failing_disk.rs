//! In each run, one operation on the disk fails. The number of this operation grows from run to run, until a run ends
//! before it reaches the operation. The server either refuses to start and reports the reason, or continues to run and
//! answers 5xx for writes that it could not store. Reads continue to work, and all acknowledged writes are there after
//! a restart. After a failed sync, a collection does not acknowledge further writes.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::json;

use super::http::{Failure, agent, answer, whole};
use super::{Load, citer, collections, labelled, merges, variable, writer};
use crate::support::disk::{self, Kind, Operation};
use crate::support::server::{Address, Server, Starting};

/// An error of the device.
const EIO: i32 = 5;
/// This error ends when there is room again.
const ENOSPC: i32 = 28;
const SEED: u64 = 11;

/// The data directory with which a server starts, and its expected contents.
struct Start<'a> {
    data_dir: Option<&'a Path>,
    load: Load,
}

#[test]
fn one_failure_of_the_disk_loses_nothing() {
    // The step between the numbers of the operations that fail. A test of every operation takes minutes.
    let step = variable("HAPAX_FAULTS").unwrap_or(151);
    let parent = tempfile::tempdir().unwrap();
    let before = parent.path().join("before");
    let server = Server::start(&before);
    Load::prepare(server.address(), true);
    let mut load = Load::with_lines(SEED, 3);
    script(&mut load, server.address(), &mut |_, _| {});
    server.kill();
    let tried = AtomicU64::new(0);
    for start in [Start { data_dir: None, load: Load::with_lines(SEED, 3) }, Start { data_dir: Some(&before), load }] {
        thread::scope(|scope| {
            let (start, tried) = (&start, &tried);
            for error in [EIO, ENOSPC] {
                scope.spawn(move || {
                    let mut number = step.div_ceil(2);
                    while fails_at(start, number, error) {
                        tried.fetch_add(1, Ordering::Relaxed);
                        number += step;
                    }
                    eprintln!("a run with error {error} takes fewer than {number} operations");
                });
            }
        });
    }
    let tried = tried.into_inner();
    eprintln!("{tried} failures of the disk, nothing acknowledged was lost");
    assert!(tried * step > 300, "only {tried} operations failed");
}

/// Makes the operation with this number fail in a run. Returns false if the run ended before this operation.
fn fails_at(start: &Start<'_>, number: u64, error: i32) -> bool {
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let notes = parent.path().join("notes");
    if let Some(from) = start.data_dir {
        copy(from, &data_dir);
    }
    let mut load = start.load.clone();
    let fail = format!("{number}:{error}");
    let mut environment = disk::preloaded(&data_dir, &notes).to_vec();
    environment.push(("HAPAX_DISK_FAIL", fail));
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let what = || format!("operation {number} fails with {error}: {:?}", failed(&notes));
    match Starting::spawn_with(&data_dir, &[], &environment).ready_or_ended() {
        Err((status, log)) => {
            assert_eq!(status.code(), Some(2), "{}; {log}", what());
            let says = ["Input/output error", "No space left", "disk I/O error", "disk is full"];
            assert!(says.iter().any(|says| log.contains(says)), "{}: it does not say why; {log}", what());
        }
        Ok(server) => {
            let mut acknowledged_at_failed_sync = None;
            script(&mut load, server.address(), &mut |load, outcome| {
                match outcome {
                    Ok(()) => {}
                    Err(Failure::Gone) => panic!("{}: the server is gone; {}", what(), server.log_tail()),
                    Err(Failure::Refused(problem)) => {
                        assert!(failed(&notes).is_some(), "nothing failed yet: {problem}");
                        let told = (problem["status"].as_u64(), problem["code"].as_str());
                        // Clients must not be told to free space if the device failed.
                        let full = error == ENOSPC && told == (Some(507), Some("storage_full"));
                        assert!(
                            full || told == (Some(503), Some("write_failed")),
                            "{}: {problem}; {}",
                            what(),
                            server.log_tail()
                        );
                    }
                }
                reads_go_on(server.address());
                // Only the files of `default` count, because the writers use this collection. An unfinished collection
                // of another name is created again.
                let failed_sync = failed(&notes).is_some_and(|failed| {
                    let name = failed.path.file_name().expect("a file has a name").to_string_lossy().into_owned();
                    matches!(failed.kind, Kind::Sync) && ["default.sqlite", "default.sqlite-wal"].contains(&&*name)
                });
                if failed_sync {
                    let acknowledged = load.writers[0].acknowledged();
                    let before = *acknowledged_at_failed_sync.get_or_insert(acknowledged);
                    assert_eq!(acknowledged, before, "{}: acknowledged after a failed sync", what());
                }
            });
            server.terminate();
        }
    }
    let came_to_it = failed(&notes).is_some();
    let server = Server::start(&data_dir);
    Load::prepare(server.address(), true);
    load.verify(&server);
    came_to_it
}

/// In an earlier version, a delete whose sync failed was undone in memory. Verdicts then named the document again,
/// although it was gone on disk.
#[test]
fn what_a_failed_sync_was_to_remove_is_cited_by_no_answer() {
    let parent = tempfile::tempdir().unwrap();
    let text = super::random_text(5);
    // This is a whole run: an insert, a removal, and a check. It also returns the numbers of the disk operations after
    // the insert.
    let life = |name: String, replacement: Option<&str>, fail: Option<u64>| {
        let (data_dir, notes) = (parent.path().join(&name), parent.path().join(format!("{name}.notes")));
        let mut environment = disk::preloaded(&data_dir, &notes).to_vec();
        environment.extend(fail.map(|number| ("HAPAX_DISK_FAIL", format!("{number}:{}", EIO))));
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let server = Starting::spawn_with(&data_dir, &[], &environment).ready_or_ended().ok()?;
        let documents = server.url(writer::DOCUMENTS);
        let put = |text: &str| {
            agent().post(format!("{documents}?on_existing=replace")).send_json(json!({ "id": "x", "text": text }))
        };
        if put(&text).unwrap().status() != 200 {
            return None;
        }
        let before = disk::operations(&notes).len() as u64;
        let removed = match replacement {
            None => agent().delete(&documents).query("id", "x").call(),
            Some(text) => put(text),
        };
        let status = removed.unwrap().status().as_u16();
        let check = json!({ "text": text });
        let verdict = whole(agent().post(server.url("/v1/collections/default/check")).send_json(&check));
        let after = disk::operations(&notes).len() as u64;
        server.kill();
        let failed_sync = failed(&notes).is_some_and(|failed| matches!(failed.kind, Kind::Sync));
        let next = Server::start(&data_dir);
        let there = whole(agent().post(next.url("/v1/collections/default/check")).send_json(&check));
        Some((status, verdict, there, failed_sync, before..=after))
    };
    let other = super::random_text(6);
    for (how, replacement) in [("delete", None), ("replace", Some(other.as_str())), ("remove", Some(""))] {
        let (.., operations) = life(how.into(), replacement, None).expect("nothing fails");
        let mut tried = 0;
        for number in operations {
            let Some((status, verdict, there, true, _)) = life(format!("{how}{number}"), replacement, Some(number))
            else {
                continue;
            };
            if status == 200 {
                continue;
            }
            tried += 1;
            assert_eq!((status, &verdict["complete"]), (503, &json!(false)), "{how} at {number}: {verdict}");
            let cited = verdict["verdict"] != "unique";
            assert!(!cited || there["verdict"] != "unique", "{how} at {number}: {verdict}, and then {there}");
            assert!(!cited, "{how} at {number}: {verdict}");
        }
        assert!(tried > 0, "no sync of a {how} failed");
    }
}

/// Sends the requests of a run, one after the other. `then` receives the outcome of each.
fn script(load: &mut Load, server: &Address, then: &mut dyn FnMut(&Load, Result<(), Failure>)) {
    let [likes, labelled, merged, ..] = collections();
    let mut missing = vec![likes, labelled, merged];
    for round in 0..3 {
        for _ in 0..3 {
            let outcome = load.writers[0].work(server);
            then(load, outcome);
        }
        missing.retain(|(collection, settings)| {
            let outcome = answer(agent().put(server.url(collection)).send_json(settings));
            let fails = outcome.is_err();
            then(load, outcome.map(drop));
            fails
        });
        let there = |collection| missing.iter().all(|(missing, _)| *missing != collection);
        if there(citer::COLLECTION) {
            let outcome = load.citers[0].work(server);
            then(load, outcome);
        }
        if there(labelled::COLLECTION) {
            for _ in 0..2 {
                let outcome = load.labelled[0].work(server);
                then(load, outcome);
            }
            let outcome = load.golden[0].work(server);
            then(load, outcome);
        }
        if there(merges::COLLECTION) {
            for _ in 0..3 {
                let outcome = load.merges[0].work(server);
                then(load, outcome);
            }
        }
        if round % 2 == 0 {
            let outcome = load.folders[0].work(server);
            then(load, outcome);
        }
    }
}

fn reads_go_on(server: &Address) {
    whole(agent().get(server.url(writer::DOCUMENTS)).call());
    let check = json!({ "text": super::random_text(1) });
    whole(agent().post(server.url("/v1/collections/default/check")).send_json(check));
}

fn failed(notes: &Path) -> Option<Operation> {
    disk::operations(notes).into_iter().find(|operation| operation.error.is_some())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
