//! A server that has more to do than it can do refuses some requests early, instead of answering all of them late.
//! Checks run on the threads that serve connections, so no place is taken while they wait: 1,024 clients once waited for
//! 1.5 s each, and none was refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::client::{CHECK, Client, Raw, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

/// A server with one thread, which is busy for this long with each scrape of `/metrics`.
const BUSY: Duration = Duration::from_millis(10);

fn slow_server() -> (tempfile::TempDir, Local) {
    let dir = dir();
    let metrics = Arc::new(|| {
        thread::sleep(BUSY);
        "# none\n".to_owned()
    });
    let setup = Setup { workers: Some(1), metrics, ..Setup::new(&dir) };
    let server = setup.limits(|limits| limits.queue_delay_max = Duration::from_millis(1)).start();
    (dir, server)
}

/// Keeps the server's thread busy until `over` is true.
fn keep_busy(address: SocketAddr, over: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<()>> {
    let scraper = |_| {
        let over = Arc::clone(over);
        thread::spawn(move || {
            let mut scraper = Raw::connect(address);
            while !over.load(Ordering::Relaxed) {
                scraper.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
                assert_eq!(scraper.status(), 200, "probes are never refused");
            }
        })
    };
    (0..4).map(scraper).collect()
}

fn check(raw: &mut Raw, number: u64) -> (u16, String, String) {
    let text = words(number);
    raw.send(format!("POST {CHECK} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"));
    raw.send(format!("Content-Length: {}\r\n\r\n{text}", text.len()));
    raw.answer()
}

#[test]
fn checks_that_wait_too_long_are_refused_and_their_connections_go_on() {
    let (_dir, server) = slow_server();
    let over = Arc::new(AtomicBool::new(false));
    let busy = keep_busy(server.address, &over);
    let mut client = Raw::connect(server.address);
    let since = Instant::now();
    let (_, head, body) = (0..)
        .map(|number| check(&mut client, number))
        .find(|(status, ..)| {
            assert!(since.elapsed() < Duration::from_secs(120), "nothing is refused");
            *status == 503
        })
        .expect("endless");
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["code"], "overloaded");
    assert!(head.contains("retry-after: 1"), "{head}");
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|scraper| scraper.join().unwrap());
    // On the same connection, as soon as no request waits too long.
    let mut left = (0..1000).map(|number| check(&mut client, number).0);
    assert!(left.any(|status| status == 200));
}

#[test]
fn operators_get_through_while_checks_are_refused() {
    let (_dir, server) = slow_server();
    let over = Arc::new(AtomicBool::new(false));
    let busy = keep_busy(server.address, &over);
    let (address, ended) = (server.address, Arc::clone(&over));
    let checks = thread::spawn(move || {
        let mut client = Raw::connect(address);
        let statuses = (0..).map(|number| check(&mut client, number).0);
        statuses.take_while(|_| !ended.load(Ordering::Relaxed)).filter(|&status| status == 503).count()
    });
    let operator = Client::of(&server);
    for _ in 0..50 {
        for target in ["/livez", "/readyz", "/v1/collections", "/v1/collections/default", "/v1/version"] {
            operator.get(target).ok();
        }
    }
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|scraper| scraper.join().unwrap());
    assert!(checks.join().unwrap() > 0, "checks were refused meanwhile");
}
