//! Clients that begin a request and then send nothing, or almost nothing, do not make other clients wait. In an earlier
//! version, a request took a place before its body had arrived. 1,024 clients that sent a byte a second occupied all
//! places for a minute, and every other request was answered with 503.

use std::io::Write;
use std::time::{Duration, Instant};

use hapax::http::ROUTES;
use serde_json::json;

use crate::support::client::{CHECK, Client, Raw, encode, words};
use crate::support::library::dir;
use crate::support::local::Setup;

/// Sends the head of a request, and only the first byte of its body.
fn begin(server: std::net::SocketAddr, method: &str, target: &str, content_type: &str, length: usize) -> Raw {
    let mut raw = Raw::connect(server);
    raw.send(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"));
    raw.send(format!("Content-Length: {length}\r\n\r\n{{"));
    raw
}

#[test]
fn bodies_that_have_not_arrived_take_no_place() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.requests_concurrent_max = 2).start();
    let client = Client::of(&server);
    let collection = ("default", "{collection}");
    let mut idle = Vec::new();
    for route in ROUTES.iter().filter(|route| matches!(route.method.as_str(), "POST" | "PUT" | "PATCH")) {
        let target = route.path.replace(collection.1, collection.0);
        let media: &[&str] = match target.rsplit('/').next().unwrap() {
            "bulk" => &["application/x-ndjson"],
            "check" | "sign" | "documents" => &["application/json", "text/plain"],
            _ => &["application/json"],
        };
        let target = if target.ends_with("bulk") { format!("{target}?op=insert&duplex=true") } else { target };
        // A text of 20 KB is too long to be read completely before it is signed, so it is streamed. But it is shorter
        // than one slice of a stream.
        for length in [1000, 20_000, 1_000_000] {
            idle.extend(media.iter().map(|media| begin(server.address, route.method.as_str(), &target, media, length)));
        }
    }
    assert!(idle.len() > 30);
    std::thread::sleep(Duration::from_millis(300));
    for number in 0..50 {
        client.post(CHECK, &json!({ "text": words(number) })).ok();
        let id = encode(&format!("d{number}"));
        let target = format!("/v1/collections/default/documents?id={id}");
        client.text(&target, words(number).as_bytes()).ok();
        client.get(&target).ok();
    }
}

#[test]
fn a_body_that_trickles_is_given_up() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.request_timeout = Duration::from_secs(1)).start();
    for target in [CHECK, "/v1/collections/default/documents"] {
        let begun = Instant::now();
        let mut raw = begin(server.address, "POST", target, "application/json", 1000);
        let mut trickle = Raw(raw.0.try_clone().unwrap());
        let sender = std::thread::spawn(move || {
            for _ in 0..600 {
                std::thread::sleep(Duration::from_millis(50));
                if trickle.0.write_all(b" ").is_err() {
                    break;
                }
            }
        });
        assert_eq!(raw.status(), 408);
        // The time limit is one second; the test allows more for a busy machine. The trickle itself would last for 30
        // s.
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        drop(raw);
        sender.join().unwrap();
    }
}

#[test]
fn a_large_body_may_take_longer_than_the_patience_for_a_pause() {
    let dir = dir();
    let limits = |limits: &mut hapax::config::HttpLimits| {
        limits.request_timeout = Duration::from_secs(2);
        limits.body_bytes_per_second_min = 1000;
    };
    let server = Setup::new(&dir).limits(limits).start();
    let body = json!({ "text": words(1).repeat(100) }).to_string();
    let mut raw = Raw::connect(server.address);
    raw.send(format!("POST {CHECK} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"));
    raw.send(format!("Content-Length: {}\r\n\r\n", body.len()));
    // The body takes five seconds in all. This is longer than the limit between two bytes, and longer than the deadline
    // of an answer without a body.
    for piece in body.as_bytes().chunks(body.len().div_ceil(25)) {
        std::thread::sleep(Duration::from_millis(200));
        raw.send(piece);
    }
    assert_eq!(raw.status(), 200);
}

#[test]
fn large_bodies_that_stand_still_leave_memory_to_small_ones() {
    let dir = dir();
    // There is room for four bodies of 15 MiB, and little more.
    let server = Setup::new(&dir).limits(|limits| limits.bodies_bytes_max = (60 << 20) + (128 << 10)).start();
    let client = Client::of(&server);
    let mib = vec![b' '; 1 << 20];
    let held: Vec<_> = (0..4)
        .map(|_| {
            let mut raw = begin(server.address, "POST", CHECK, "application/json", (15 << 20) + 2);
            // The server may close a refused request while it is being sent.
            let _ = (0..15).try_for_each(|_| raw.0.write_all(&mib));
            raw
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    for number in 0..20 {
        let text: Vec<_> = (0..600).map(|part| words(number * 1000 + part)).collect();
        let text = text.join(" ");
        assert!((150_000..250_000).contains(&text.len()), "{}", text.len());
        client.post(CHECK, &json!({ "text": text })).ok();
    }
    drop(held);
}
