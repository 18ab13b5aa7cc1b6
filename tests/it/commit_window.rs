//! `commit.window_ms` limits how often the disk is asked to sync, for any kind of writes.

use std::thread;
use std::time::Instant;

use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::server::{Server, Starting};

const WINDOW_MS: u128 = 100;
const CLIENTS: u64 = 8;
const INSERTS: u64 = 6;

fn metric(server: &Server, name: &str) -> u128 {
    let scrape = Client::new(server.url("")).get("/metrics").text();
    let series = scrape.lines().find_map(|line| line.strip_prefix(&format!("{name}{{collection=\"default\"}} ")));
    series.unwrap_or_else(|| panic!("no {name} in {scrape}")).parse().unwrap()
}

fn commits(window: &str) -> (u128, u128) {
    let dir = tempfile::tempdir().unwrap();
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &[("HAPAX__COMMIT__WINDOW_MS", window)]).ready();
    let begun = Instant::now();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let http = Client::new(server.url(""));
            scope.spawn(move || {
                for number in client * INSERTS..(client + 1) * INSERTS {
                    let document = json!({ "id": format!("doc-{number}"), "text": words(number) });
                    let verdict = http.post("/v1/collections/default/documents", &document).ok();
                    assert_eq!(verdict["stored"], true);
                }
            });
        }
    });
    let took_ms = begun.elapsed().as_millis();
    assert_eq!(metric(&server, "hapax_commit_documents_sum"), u128::from(CLIENTS * INSERTS));
    let commits = metric(&server, "hapax_commit_duration_seconds_count");
    assert!(server.terminate().success());
    (commits, took_ms)
}

#[test]
fn commits_are_a_window_apart_at_least() {
    let (commits, took_ms) = commits(&WINDOW_MS.to_string());
    assert!(commits >= u128::from(INSERTS), "a client's insert is answered before its next: {commits}");
    // On a slow machine this allows more commits, but never fewer than are possible.
    assert!(commits <= took_ms / WINDOW_MS + 1, "{commits} commits in {took_ms} ms");
}

#[test]
fn without_a_window_all_is_written_as_well() {
    let (commits, _) = commits("0");
    assert!((u128::from(INSERTS)..=u128::from(CLIENTS * INSERTS)).contains(&commits), "{commits}");
}
