//! `commit.window_ms`: the writes of many clients share syncs, and a single writer does not wait.
//! `src/engine/write/commit_window.rs` has the rule itself, and its tests.

use std::thread;
use std::time::Instant;

use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::server::{Server, Starting};

const WINDOW_MS: u128 = 1000;
const INSERTS: u64 = 10;

fn metric(server: &Server, name: &str) -> u128 {
    let scrape = Client::new(server.url("")).get("/metrics").text();
    let series = scrape.lines().find_map(|line| line.strip_prefix(&format!("{name}{{collection=\"default\"}} ")));
    series.unwrap_or_else(|| panic!("no {name} in {scrape}")).parse().unwrap()
}

/// Returns how many transactions the inserts of `clients` clients took, and how many milliseconds.
fn commits(window_ms: u128, clients: u64) -> (u128, u128) {
    let dir = tempfile::tempdir().unwrap();
    let window = [("HAPAX__COMMIT__WINDOW_MS", window_ms.to_string())];
    let window = window.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &window).ready();
    let begun = Instant::now();
    thread::scope(|scope| {
        for client in 0..clients {
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
    assert_eq!(metric(&server, "hapax_commit_documents_sum"), u128::from(clients * INSERTS));
    let commits = metric(&server, "hapax_commit_duration_seconds_count");
    assert!(server.terminate().success());
    (commits, took_ms)
}

#[test]
fn a_lone_writer_does_not_wait_for_others() {
    let (commits, took_ms) = commits(WINDOW_MS, 1);
    assert_eq!(commits, u128::from(INSERTS));
    assert!(took_ms < u128::from(INSERTS) * WINDOW_MS / 2, "{took_ms} ms");
}

#[test]
fn with_any_window_all_is_written() {
    for window_ms in [0, 20] {
        let (commits, _) = commits(window_ms, 8);
        assert!((u128::from(INSERTS)..=u128::from(8 * INSERTS)).contains(&commits), "{commits}");
    }
}
