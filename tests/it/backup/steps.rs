//! A server whose backups a test can wait for, and a log of the documents that it stored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, words};
use crate::support::command;
use crate::support::library::Dir;
use crate::support::server::{Server, Starting};

pub(super) const DEFAULT: &str = "/v1/collections/default";
pub(super) const BACKUPS: &str = "/v1/backups";
/// A rate in bytes per second: fast enough for a test, but slow enough that the test can act during a backup.
pub(super) const SLOW: &str = "1000000";

/// Status, stdout, stderr.
pub(super) fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command::run(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

pub(super) fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a server whose backups go to `backups` next to its data.
pub(super) fn serve(dir: &Dir, rate: &str) -> Server {
    let backups = dir.path().join("backups");
    let environment = [("HAPAX__BACKUP__DIR", utf8(&backups)), ("HAPAX__BACKUP__BYTES_PER_SECOND_MAX", rate)];
    Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready()
}

pub(super) fn client(server: &Server) -> Client {
    Client::new(server.url(""))
}

/// Waits until `wanted` returns true for the latest backup, and returns that backup.
pub(super) fn wait_for(client: &Client, wanted: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let latest = client.get(BACKUPS).ok()["latest"].take();
        if wanted(&latest) {
            return latest;
        }
        assert!(since.elapsed() < Duration::from_secs(120), "{latest}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn ended(client: &Client) -> Value {
    wait_for(client, |latest| latest["state"] != "running")
}

/// Returns all documents of a collection, by id.
pub(super) fn documents(client: &Client, collection: &str) -> BTreeMap<String, Value> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/collections/{collection}/documents?limit=1000{cursor}")).ok();
        for document in page["documents"].as_array().unwrap() {
            all.insert(document["id"].as_str().unwrap().to_owned(), document.clone());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// The acknowledged changes, in order. The n-th change has place n in the commit order.
#[derive(Default)]
pub(super) struct Log(pub(super) Vec<(u64, Option<u64>)>);

impl Log {
    /// Gives each `id` the text of a version, or deletes it.
    pub(super) fn bulk(&mut self, client: &Client, query: &str, changes: &[(u64, Option<u64>)]) {
        let line = |(id, version): &(u64, Option<u64>)| match version {
            Some(version) => json!({"id": id.to_string(), "text": words(*version), "metadata": {"of": version}}),
            None => json!({"id": id.to_string()}),
        };
        let lines = changes.iter().map(|change| line(change).to_string() + "\n").collect::<String>();
        let answers = client.bulk(query, &lines);
        let summary = &answers.last().unwrap()["summary"];
        assert_eq!((&summary["errors"], &summary["documents"]), (&json!(0), &json!(changes.len())), "{answers:?}");
        self.0.extend_from_slice(changes);
    }

    /// Returns, for each id, the place of its last change and its version.
    pub(super) fn state_at(&self, position: u64) -> BTreeMap<u64, (u64, u64)> {
        let mut state = BTreeMap::new();
        for (n, &(id, version)) in (1..=position).zip(&self.0) {
            match version {
                Some(version) => state.insert(id, (n, version)),
                None => state.remove(&id),
            };
        }
        state
    }

    /// Makes a round of insertions, replacements and deletions; `round` counts from 0.
    pub(super) fn round(&mut self, client: &Client, round: u64) {
        let first = round * 100;
        self.bulk(client, "op=insert", &(first..first + 100).map(|id| (id, Some(id))).collect::<Vec<_>>());
        let replaced = (first..first + 10).map(|id| (id, Some(1_000_000 + id))).collect::<Vec<_>>();
        self.bulk(client, "op=insert&on_existing=replace", &replaced);
        self.bulk(client, "op=delete", &(first + 20..first + 30).map(|id| (id, None)).collect::<Vec<_>>());
    }
}

/// Makes a data directory with two collections, and a backup of it. No server runs afterwards.
pub(super) fn offline(dir: &Dir, rounds: u64) -> (PathBuf, PathBuf, u64) {
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    let server = Server::start(&data);
    let mut log = Log::default();
    (0..rounds).for_each(|round| log.round(&client(&server), round));
    assert_eq!(client(&server).json("PUT", "/v1/collections/news", &json!({"threshold": 0.7})).status, 201);
    let refused = run(&["backup", utf8(&backup), "--data-dir", utf8(&data)]);
    assert!(refused.0 == 2 && refused.2.contains("in use"), "{refused:?}");
    // The server is killed, so that the write-ahead log next to the file still contains changes.
    server.kill();
    let (status, path, words_said) = run(&["backup", utf8(&backup), "--data-dir", utf8(&data)]);
    assert_eq!((status, path.trim_end()), (0, utf8(&backup)), "{words_said}");
    (data, backup, log.state_at(log.0.len() as u64).len() as u64)
}

pub(super) fn copy_of(backup: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(backup).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
