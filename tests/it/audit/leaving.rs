//! A durable decision has a line in the audit log, even if its client has left. A decision that the disk has refused
//! has no line.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::Audited;
use crate::support::client::{Client, DOCUMENTS, Raw, words};
use crate::support::server::Server;
use crate::support::until::until;

/// Blocks all writes of `default` to the disk, until the returned connection is dropped.
fn hold(audited: &Audited) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(audited.dir.path().join("data/collections/default.sqlite")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

/// Sends a request, and leaves when the server has decided on it.
fn send_and_leave(server: &Server, target: &str, media_type: &str, body: &str) {
    let address = server.url("").replace("http://", "").parse().unwrap();
    let mut socket = Raw::connect(address);
    let length = body.len();
    socket.send(format!(
        "POST {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}"
    ));
    let depth = "hapax_commit_queue_depth{collection=\"default\"} ";
    let waits = || {
        Client::new(server.url(""))
            .get("/metrics")
            .text()
            .lines()
            .any(|line| line.strip_prefix(depth).is_some_and(|depth| depth != "0"))
    };
    until("a decision waits for the disk", waits);
    TcpStream::shutdown(&socket.0, std::net::Shutdown::Both).unwrap();
}

#[test]
fn a_client_that_leaves_changes_nothing() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let document = |id: &str, number: u64| json!({"id": id, "text": words(number)}).to_string();
    let requests = [
        (DOCUMENTS, "application/json", document("single", 1)),
        ("/v1/collections/default/bulk?op=insert", "application/x-ndjson", document("bulk", 2)),
    ];
    for (at, (target, media_type, body)) in requests.iter().enumerate() {
        let held = hold(&audited);
        send_and_leave(&server, target, media_type, body);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(audited.lines().len(), at, "nothing is durable");
        drop(held);
        until("the line is in a file", || audited.lines().len() == at + 1);
    }
    let ids: Vec<_> = audited.lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["single", "bulk"]);
}

#[test]
fn a_decision_that_the_disk_refuses_has_no_line() {
    let audited = Audited::new(&[]);
    let server = audited.start();
    let client = Client::new(server.url(""));
    let held = hold(&audited);
    assert!(client.post(DOCUMENTS, &json!({"id": "refused", "text": words(1)})).status >= 500);
    drop(held);
    client.post(DOCUMENTS, &json!({"id": "stored", "text": words(2)})).ok();
    assert!(server.terminate().success());
    let ids: Vec<_> = audited.lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["stored"]);
}
