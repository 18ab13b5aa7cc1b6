//! An overloaded server refuses some requests early, instead of answering all of them late. Checks run on the threads
//! that serve connections, so they take no place while they wait. In an earlier version, 1,024 clients waited for 1.5 s
//! each, and none was refused. Long texts and batches wait in their own queues.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hapax::cpu::CpuConfig;
use serde_json::{Value, json};

use crate::support::client::{Answer, CHECK, Client, Raw, words};
use crate::support::library::{CPU, dir};
use crate::support::local::{Local, Setup};

/// How long each scrape of `/metrics` keeps the server's only thread busy.
const BUSY: Duration = Duration::from_millis(10);

fn slow_server() -> (tempfile::TempDir, Local) {
    let dir = dir();
    let metrics = Arc::new(|| {
        thread::sleep(BUSY);
        "# none\n".to_owned()
    });
    let setup = Setup { workers: Some(1), metrics, ..Setup::new(&dir) };
    let server = setup.limits(|limits| limits.queue_delay_max = Duration::from_millis(5)).start();
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

/// Sends checks from several clients until `over` is true. Each thread returns how many checks were refused.
fn keep_checking(address: SocketAddr, over: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<usize>> {
    let checker = |_| {
        let over = Arc::clone(over);
        thread::spawn(move || {
            let mut client = Raw::connect(address);
            let statuses = (0..).map(|number| check(&mut client, number).0);
            statuses.take_while(|_| !over.load(Ordering::Relaxed)).filter(|&status| status == 503).count()
        })
    };
    (0..4).map(checker).collect()
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
    let (busy, checks) = (keep_busy(server.address, &over), keep_checking(server.address, &over));
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
    checks.into_iter().for_each(|checker| _ = checker.join().unwrap());
    // The check succeeds on the same connection, as soon as no request waits too long.
    let mut left = (0..1000).map(|number| check(&mut client, number).0);
    assert!(left.any(|status| status == 200));
}

#[test]
fn operators_get_through_while_checks_are_refused() {
    let (_dir, server) = slow_server();
    let over = Arc::new(AtomicBool::new(false));
    let busy = keep_busy(server.address, &over);
    let checks = keep_checking(server.address, &over);
    let operator = Client::of(&server);
    for _ in 0..50 {
        for target in ["/livez", "/readyz", "/v1/collections", "/v1/collections/default", "/v1/version"] {
            operator.get(target).ok();
        }
    }
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|scraper| scraper.join().unwrap());
    let refused: usize = checks.into_iter().map(|checks| checks.join().unwrap()).sum();
    assert!(refused > 0, "checks were refused meanwhile");
}

/// Sends the same request from many clients until one is refused, and returns how many were answered and refused.
fn storm(server: &Local, send: impl Fn(&Client) -> Answer + Sync) -> (usize, usize) {
    let (answered, refused, since) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let client = Client::of(server);
                while refused.load(Ordering::Relaxed) == 0 && since.elapsed() < Duration::from_secs(120) {
                    let answer = send(&client);
                    if answer.status == 200 {
                        answered.fetch_add(1, Ordering::Relaxed);
                    } else {
                        answer.problem(503, "overloaded");
                        assert!(answer.headers.contains_key("retry-after"));
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    (answered.into_inner(), refused.into_inner())
}

#[test]
fn batches_that_would_wait_too_long_are_refused_and_the_next_are_not() {
    let dir = dir();
    let setup = Setup { workers: Some(1), ..Setup::new(&dir) };
    let server = setup.limits(|limits| limits.batch_delay_max = Duration::from_millis(1)).start();
    let documents: Vec<_> = (0..200).map(|number| json!({ "text": words(number) })).collect();
    let batch = json!({ "op": "check", "documents": documents });
    let send = |client: &Client| client.post("/v1/collections/default/batch", &batch);
    let (answered, refused) = storm(&server, send);
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
    send(&Client::of(&server)).ok();
}

#[test]
fn long_texts_that_would_wait_too_long_are_refused_and_short_ones_are_not() {
    let dir = dir();
    let cpu = CpuConfig { threads: 1, queue_delay_max: Duration::from_millis(1), ..CPU };
    let server = Setup { cpu, ..Setup::new(&dir) }.start();
    let text = (0..2_000).map(words).collect::<Vec<_>>().join(" ");
    assert!(text.len() > 64 * 1024);
    for form in ["text/plain", "application/json"] {
        let body = if form == "text/plain" { text.clone() } else { json!({ "text": text }).to_string() };
        let (answered, refused) = storm(&server, |client| {
            client.post(CHECK, &json!({ "text": words(1) })).ok();
            client.send("POST", CHECK, &[("content-type", form)], body.as_bytes())
        });
        assert!(answered > 0 && refused > 0, "{form}: {answered} answered, {refused} refused");
    }
    Client::of(&server).text(CHECK, text.as_bytes()).ok();
}
