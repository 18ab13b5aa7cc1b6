//! If the limit on file descriptors is low, collections get their descriptors first, and connections get the rest. If
//! no descriptor is left for a request, the request is refused with 503, and nothing is damaged. In an earlier version,
//! with `ulimit -n 200`, the server accepted 200 clients, and then answered 500 when a collection or a backup was
//! created.

use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::{Answer, Client, Raw, words};
use crate::support::server::{Server, Starting};
use crate::support::until::until;

/// Starts a server that may have at most this many descriptors.
fn limited(data: &Path, descriptors: u32) -> Server {
    let limit = format!("ulimit -n {descriptors} && exec \"$@\"");
    // On a small machine, the memory would otherwise allow fewer connections than the descriptors allow.
    let memory = [("HAPAX__MEMORY__MAX_BYTES", "8589934592")];
    Starting::spawn_by(&["sh", "-c", &limit, "sh"], data, &["--log-format", "json"], &memory).ready()
}

/// Drops a collection. Returns false if this was refused for the moment.
fn drops(client: &Client, name: &str) -> bool {
    let answer = client.delete(&format!("/v1/collections/{name}?confirm={name}"));
    assert!([200, 404, 503].contains(&answer.status), "{name}: {}", answer.text());
    answer.status != 503
}

fn put(client: &Client, name: &str) -> Answer {
    client.json("PUT", &format!("/v1/collections/{name}"), &json!({}))
}

#[test]
fn a_crowd_of_clients_leaves_descriptors_for_collections_and_backups() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = limited(&data, 200);
    let log = std::fs::read_to_string(data.with_extension("log")).expect("a log");
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("ulimit -n")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("\"limit\":200") && warnings[0].contains("\"connections_max\":4096"), "{warnings:?}");

    let address = server.socket();
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let stream = TcpStream::connect(address).unwrap();
        let mut raw = Raw(stream);
        raw.0.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(raw.status(), 200);
        crowd.push(raw);
    }
    let client = Client::new(server.url(""));
    for number in 0..5 {
        let document = json!({"id": format!("d{number}"), "text": words(number)});
        client.post("/v1/collections/default/documents", &document).ok();
    }
    assert_eq!(put(&client, "new").status, 201);
    assert_eq!(client.json("POST", "/v1/backups", &json!({"name": "crowded"})).status, 202);
    let begun = Instant::now();
    let state = loop {
        let state = client.get("/v1/backups").ok()["latest"]["state"].as_str().unwrap().to_owned();
        if state != "running" || begun.elapsed() > Duration::from_secs(60) {
            break state;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(state, "done");
    drop(crowd);
}

#[test]
fn what_needs_one_more_descriptor_than_there_are_is_refused_for_now() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = limited(&data, 64);
    let client = Client::new(server.url(""));
    let mut made = Vec::new();
    let refused = loop {
        let name = format!("c{}", made.len());
        let answer = put(&client, &name);
        if answer.status != 201 {
            break answer;
        }
        made.push(name);
        assert!(made.len() < 60, "64 descriptors cannot be enough");
    };
    let problem = refused.problem(503, "overloaded");
    assert!(refused.headers.contains_key("retry-after") && problem.to_string().contains("ulimit -n"), "{problem}");
    // Reads and writes work, or are refused in the same way.
    for name in made.iter().map(String::as_str).chain(["default"]) {
        let document = json!({"id": "a", "text": words(1)});
        let documents = format!("/v1/collections/{name}/documents");
        for answer in [client.post(&documents, &document), client.get(&format!("{documents}?id=a"))] {
            assert!([200, 404, 503].contains(&answer.status), "{name}: {}", answer.text());
        }
    }
    assert!(!client.get("/v1/collections").text().contains("damaged"));
    let name = made.pop().expect("some were made");
    until("the collection is dropped", || drops(&client, &name));
    // The files of a dropped collection are closed in the background, and other collections may take the freed
    // descriptors for more readers. A refused creation may have made the collection. In this case, the next creation
    // finds it.
    let mut refused_before = false;
    until("there is room for a collection again", || {
        let answer = put(&client, "again");
        if answer.status == 503 {
            answer.problem(503, "overloaded");
            refused_before = true;
            if let Some(name) = made.pop() {
                drops(&client, &name);
            }
            return false;
        }
        assert!(answer.status == 201 || (answer.status == 200 && refused_before), "{}", answer.text());
        true
    });
    made.push("again".into());
    assert!(server.terminate().success());

    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    let list = client.get("/v1/collections").ok();
    assert_eq!(list.get("damaged"), None, "{list}");
    // The refused collection may exist too, because its file was created but could not be opened.
    for name in &made {
        client.post(&format!("/v1/collections/{name}/documents"), &json!({"id": "b", "text": words(2)})).ok();
    }
}
