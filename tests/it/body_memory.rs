//! The memory of request bodies is returned after use. In an earlier version, a body was counted by its length as sent.
//! But a body was in memory twice, a set of digits took 28 times its length, and freed memory stayed in the process.
//! 512 MiB of bodies took 1.39 GB, and 1.2 GB were still in use after the last body.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::{Client, words};
use crate::support::library::dir;
use crate::support::server::{Server, Starting};

const MIB: usize = 1 << 20;
const BODIES: usize = 32 * MIB;
/// The memory for everything except bodies: connections, threads that have not run before, and their buffers.
const BESIDE: usize = 24 * MIB;

fn bytes(server: &Server, what: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect(what);
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() * 1024
}

#[test]
fn bodies_take_what_they_may_and_give_it_back() {
    let dir = dir();
    let bounds = [
        ("HAPAX__SERVER__BODIES_BYTES_MAX", BODIES.to_string()),
        ("HAPAX__SERVER__BODY_BYTES_MAX", (8 * MIB).to_string()),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", (8 * MIB).to_string()),
        ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000".to_owned()),
    ];
    let bounds: Vec<_> = bounds.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    client.post("/v1/collections/default/check", &json!({"text": words(1).repeat(100)})).ok();
    let before = bytes(&server, "VmRSS:");

    let text = json!({"text": words(2).repeat(7 * MIB / words(2).len())}).to_string();
    let set = format!("{{\"set\":[{}1]}}", "1,".repeat(MIB / 4));
    let lines = format!("{text}\n{set}\n");
    let done = Mutex::new([0; 3]);
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (client, done, bodies) = (&client, &done, [&text, &set, &lines]);
            scope.spawn(move || {
                let kind = number % 3;
                let (target, media) = match kind {
                    2 => ("/v1/collections/default/bulk?op=check", "application/x-ndjson"),
                    _ => ("/v1/collections/default/check", "application/json"),
                };
                let since = Instant::now();
                while since.elapsed() < Duration::from_secs(120) {
                    let answer = client.send("POST", target, &[("content-type", media)], bodies[kind].as_bytes());
                    if answer.status == 200 {
                        done.lock().unwrap()[kind] += 1;
                        return;
                    }
                    answer.problem(503, "overloaded");
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let (peak, after) = (bytes(&server, "VmHWM:"), bytes(&server, "VmRSS:"));
    println!("{} MiB before, {} MiB at the peak, {} MiB after", before / MIB, peak / MIB, after / MIB);
    assert_eq!(done, [4; 3], "all were worked on in the end");
    assert!(peak < before + BODIES + BESIDE, "{} MiB more at the peak", (peak - before) / MIB);
    assert!(after < before + BESIDE, "{} MiB more when all is over", (after - before) / MIB);
}
