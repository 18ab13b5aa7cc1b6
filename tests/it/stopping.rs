//! A server that stops, as its clients see it. In an earlier version, idle connections were closed the moment the
//! signal came, so a request in transit was lost, and connections in the kernel's queue were reset.

use std::time::{Duration, Instant};

use crate::support::client::Raw;
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const LIVEZ: &str = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
const SOON: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(600);

/// Sets up a server that, when it stops, waits for idle connections for as long as a test may take.
fn patient(dir: &crate::support::library::Dir) -> Setup {
    Setup::new(dir).limits(|limits| {
        limits.drain_timeout = LONG;
        limits.drain_idle = LONG;
    })
}

fn asked(server: &Local) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(LIVEZ);
    assert_eq!(raw.status(), 200);
    raw
}

fn closes(head: &str) -> bool {
    head.to_lowercase().contains("connection: close")
}

/// Sends requests until an answer says that it is the last one. Then the connection must end.
fn ask_to_the_end(raw: &mut Raw) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < SOON, "no answer told the client to connect again");
        raw.send(LIVEZ);
        let (status, head, _) = raw.answer();
        assert_eq!(status, 200);
        if closes(&head) {
            return assert_eq!(raw.read_until(|_| false), b"", "the connection ends");
        }
    }
}

#[test]
fn a_request_that_was_on_its_way_when_the_signal_came_is_answered() {
    let dir = dir();
    let server = patient(&dir).start();
    let (mut idle, mut new) = (asked(&server), Raw::connect(server.address));
    server.stop();
    let begun = Instant::now();
    while !server.state.draining().is_cancelled() {
        assert!(begun.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(1));
    }
    ask_to_the_end(&mut idle);
    ask_to_the_end(&mut new);
    assert_eq!(server.stopped(), 0, "nothing is left to wait for");
}

#[test]
fn connections_in_the_queue_are_served_before_the_listener_closes() {
    let dir = dir();
    let server = patient(&dir).limits(|limits| limits.connections_max = 1).start();
    let mut working = Raw::connect(server.address);
    working.send("POST /v1/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    working.send("Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    working.read_until(|seen| seen.ends_with(b"\r\n\r\n"));
    let mut waiting: Vec<_> = (0..20).map(|_| Raw::connect(server.address)).collect();
    waiting.iter_mut().for_each(|raw| raw.send(LIVEZ));
    std::thread::sleep(Duration::from_millis(50));
    server.stop();
    std::thread::sleep(Duration::from_millis(50));
    working.send("{}");
    assert_eq!(working.status(), 200);
    waiting.iter_mut().for_each(|raw| assert_eq!(raw.status(), 200));
    assert_eq!(server.stopped(), 0);
}

#[test]
fn connections_without_a_request_do_not_hold_up_a_stop() {
    let dir = dir();
    let server = patient(&dir).limits(|limits| limits.drain_idle = Duration::from_millis(200)).start();
    let (mut idle, mut new) = (asked(&server), Raw::connect(server.address));
    let mut partial = asked(&server);
    partial.send("GET /livez HTTP/1.1\r\nHost: loc");
    let begun = Instant::now();
    server.stop();
    for raw in [&mut idle, &mut new] {
        assert_eq!(raw.read_until(|_| false), b"", "an end and no error");
    }
    assert_eq!((server.stopped(), partial.read_until(|_| false)), (0, Vec::new()));
    assert!(begun.elapsed() < LONG / 2);
}

#[test]
fn an_http2_client_is_told_at_once_and_what_it_has_sent_is_answered() {
    let dir = dir();
    let server = patient(&dir).start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        let ended = tokio::spawn(connection);
        let request = || {
            let request =
                ureq::http::Request::post("http://localhost/v1/tune").header("content-type", "application/json");
            request.body(()).unwrap()
        };
        let (answer, mut body) = sender.send_request(request(), false).unwrap();
        body.send_data("{".into(), false).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.stop();
        // Streams that were opened before the client got the GOAWAY are answered. Then the client opens no others.
        let told = async {
            loop {
                match sender.clone().ready().await {
                    Ok(mut ready) => match ready.send_request(request(), false) {
                        Ok((answer, mut body)) => {
                            body.send_data("{}".into(), true).unwrap();
                            assert_eq!(answer.await.unwrap().status(), 200);
                        }
                        Err(_) => return,
                    },
                    Err(_) => return,
                }
            }
        };
        tokio::time::timeout(SOON, told).await.expect("the client is told to go");
        body.send_data("}".into(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
        tokio::time::timeout(SOON, ended).await.unwrap().unwrap().expect("closed in good order");
    });
    assert_eq!(server.stopped(), 0);
}
