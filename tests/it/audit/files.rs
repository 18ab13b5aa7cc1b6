//! The files of the audit log: their limits, their state after a kill, and the effect of failed writes.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::{Audited, audit, printed};
use crate::support::client::{Client, DOCUMENTS, lines, words};
use crate::support::server::Server;
use crate::support::until::until;

pub fn metric(server: &Server, name: &str) -> f64 {
    let text = Client::new(server.url("")).get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Deletes ids that are not stored: the cheapest decisions with long lines.
pub fn long_lines(client: &Client, count: usize) {
    for batch in 0..count.div_ceil(100) {
        let ids = (0..100).map(|number| format!("{batch}-{number}-{}", "x".repeat(2000)));
        let ids: Vec<_> = ids.collect();
        client.post("/v1/collections/default/documents/delete", &json!({"ids": ids})).ok();
    }
}

#[test]
fn files_are_rotated_and_the_oldest_are_removed() {
    let audited = Audited::new(&[("AUDIT__FILE_BYTES_MAX", "262144"), ("AUDIT__BYTES_MAX", "600000")]);
    let server = audited.start();
    long_lines(&Client::new(server.url("")), 1000);
    until("all lines are written", || metric(&server, "hapax_audit_lines_total") == 1000.0);
    assert!(metric(&server, "hapax_audit_bytes") <= 600_000.0);
    assert!(server.terminate().success());
    let sizes: Vec<_> = audited.files().iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() >= 2 && sizes.iter().all(|&bytes| bytes <= 262_144), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() <= 600_000, "{sizes:?}");
    let last = audited.lines().pop().unwrap();
    assert!(last["id"].as_str().unwrap().starts_with("9-"), "the newest lines stay");
}

#[test]
fn old_files_are_removed_also_those_of_earlier_runs() {
    let audited = Audited::new(&[("AUDIT__RETENTION_S", "2")]);
    let server = audited.start();
    Client::new(server.url("")).post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    assert!(server.terminate().success());
    assert_eq!(audited.files().len(), 1);
    let server = audited.start();
    Client::new(server.url("")).post(DOCUMENTS, &json!({"id": "b", "text": words(2)})).ok();
    until("both files are old", || audited.files().is_empty());
    assert_eq!(metric(&server, "hapax_audit_lines_total"), 1.0);
}

#[test]
fn after_a_kill_the_files_can_be_read_and_another_is_begun() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    client.bulk("op=insert", &lines(0..200));
    until("the lines are in a file", || audited.text().lines().count() == 200);
    client.bulk("op=insert", &lines(200..300));
    server.kill();
    let file = audited.files().pop().unwrap();
    let mut text = fs::read_to_string(&file).unwrap();
    text += r#"{"time":"2026-11-23T21:0"#;
    fs::write(&file, text).unwrap();
    let server = audited.start();
    Client::new(server.url("")).post(DOCUMENTS, &json!({"id": "after", "text": words(1000)})).ok();
    assert!(server.terminate().success());
    assert_eq!(audited.files().len(), 2);
    let output = audit(&audited.log(), &[]);
    let (status, lines) = printed(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(status == 0 && lines.len() >= 201, "{} lines; {said}", lines.len());
    assert!(said.contains("the last line is incomplete"), "{said}");
    assert_eq!(lines.last().unwrap()["id"], "after");
}

#[test]
fn a_stop_writes_all_lines() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let answers = Client::new(server.url("")).bulk("op=insert", &lines(0..2000));
    assert_eq!(answers.len(), 2001);
    assert!(server.terminate().success());
    assert_eq!(audited.lines().len(), 2000);
}

#[test]
fn if_the_disk_refuses_lines_they_wait_then_are_dropped_and_serving_goes_on() {
    let audited = Audited::new(&[("AUDIT__QUEUE_BYTES_MAX", "262144")]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    until("the line is in a file", || !audited.text().is_empty());
    let away = audited.dir.path().join("away");
    fs::rename(audited.log(), &away).unwrap();
    client.post(DOCUMENTS, &json!({"id": "b", "text": words(2)})).ok();
    until("an attempt failed", || metric(&server, "hapax_audit_errors_total") >= 1.0);
    long_lines(&client, 200);
    let dropped = metric(&server, "hapax_audit_dropped_total");
    assert!((50.0..150.0).contains(&dropped), "{dropped} of 200 were dropped");
    assert!(metric(&server, "hapax_audit_queue_bytes") <= 262_144.0);
    fs::rename(&away, audited.log()).unwrap();
    until("the others are written", || metric(&server, "hapax_audit_lines_total") == 202.0 - dropped);
    client.post(DOCUMENTS, &json!({"id": "c", "text": words(3)})).ok();
    let log = server.log_tail();
    assert!(log.contains("cannot write the audit log") && log.contains("audit log were dropped"), "{log}");
    assert!(server.terminate().success());
    let lines = audited.lines();
    assert_eq!(lines.len() as f64, 203.0 - dropped);
    for id in ["a", "b", "c"] {
        assert_eq!(lines.iter().filter(|line| line["id"] == id).count(), 1, "{id}");
    }
}

#[test]
fn a_second_server_on_the_directory_does_not_start_but_may_wait() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let Err((status, log)) = audited.starting("other").ready_or_ended() else { panic!("it started") };
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("is in use by another process; give each server a directory of its own"), "{log}");
    let waiting = Audited {
        dir: crate::support::library::dir(),
        variables: [audited.variables.clone(), vec![("HAPAX__DATA__LOCK_WAIT_MS".into(), "60000".into())]].concat(),
    };
    let waiting = waiting.starting("data");
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.terminate().success());
    assert!(waiting.ready().terminate().success());
}

#[test]
fn a_directory_that_cannot_be_used_stops_the_start() {
    let audited = Audited::new(&[]);
    fs::write(audited.log(), "a file").unwrap();
    let Err((status, log)) = audited.starting("data").ready_or_ended() else { panic!("it started") };
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("cannot use the audit directory"), "{log}");
}
