//! Idle connections: how long they may stay open, and which one is closed when all places are taken. In an earlier
//! version, 4,095 sockets that sometimes requested `/livez` kept out all other clients, even probes, without a time
//! limit. HTTP/2 connections that only acknowledged PINGs could do the same. And an idle connection in a client's pool
//! was closed after 10 s.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::client::{Client, Raw};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::server::Server;

const LIVEZ: &str = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// A time much longer than a test needs, and much shorter than any timeout.
const SOON: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(600);

/// Sets timeouts so long that none of them closes a connection, and few places, so that all places are soon taken.
fn crowded(dir: &crate::support::library::Dir, connections_max: usize) -> Setup {
    Setup::new(dir).limits(|limits| {
        limits.connections_max = connections_max;
        limits.header_timeout = LONG;
        limits.keep_alive_timeout = LONG;
    })
}

fn asked(server: &Local) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(LIVEZ);
    assert_eq!(raw.status(), 200);
    raw
}

/// Begins a request. When this returns, the server is waiting for the last byte of its body, `}`.
fn begin_work(raw: &mut Raw, header: &str) {
    raw.send(format!("POST /v1/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{header}"));
    raw.send("Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    let go_on = raw.read_until(|seen| seen.ends_with(b"\r\n\r\n"));
    assert!(go_on.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&go_on));
    raw.send("{");
}

fn is_open(raw: &Raw) -> bool {
    raw.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let open = matches!((&raw.0).read(&mut [0; 64]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    raw.0.set_read_timeout(Some(SOON)).unwrap();
    open
}

#[test]
fn an_idle_connection_outlives_the_time_for_a_head() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.header_timeout = Duration::from_secs(2)).start();
    let mut pooled = asked(&server);
    std::thread::sleep(Duration::from_secs(4));
    pooled.send(LIVEZ);
    assert_eq!(pooled.status(), 200);
    pooled.send("GET /livez HTTP/1.1\r\nHost: loc");
    let begun = Instant::now();
    assert_eq!(pooled.read_until(|_| false), b"", "a head that is not finished has the time of a head");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn an_idle_connection_is_closed_in_good_order_after_its_time() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.keep_alive_timeout = Duration::from_millis(300)).start();
    let mut idle = asked(&server);
    idle.0.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(idle.read_until(|_| false), b"");
    // The server still reads the bytes that the client was just sending, so the connection is not reset.
    idle.send(LIVEZ);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(idle.read_until(|_| false), b"", "an end and no error");
}

#[test]
fn requests_on_one_connection_put_its_end_off() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.keep_alive_timeout = Duration::from_secs(6)).start();
    let mut busy = asked(&server);
    // The loop takes eight seconds in all. On a busy machine, a request may be up to five seconds late.
    for _ in 0..8 {
        std::thread::sleep(Duration::from_secs(1));
        busy.send(LIVEZ);
        assert_eq!(busy.status(), 200);
    }
}

#[test]
fn an_http2_connection_without_a_stream_is_told_to_go_although_it_acknowledges_pings() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.keep_alive_timeout = Duration::from_secs(1)).start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, mut connection) = h2::client::handshake(stream).await.unwrap();
        let mut pings = connection.ping_pong().unwrap();
        let ended = tokio::spawn(connection);
        let request = || ureq::http::Request::get("http://localhost/livez").body(()).unwrap();
        let (answer, _) = sender.send_request(request(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
        let chatter = async {
            while pings.ping(h2::Ping::opaque()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(SOON, chatter).await.expect("pings are no requests");
        // The connection ends with GOAWAY and not with an error, so the client knows that none of its streams was lost.
        tokio::time::timeout(SOON, ended).await.unwrap().unwrap().expect("closed in good order");
    });
}

/// In an earlier version, such a client could keep a core busy without a time limit, because a connection with an open
/// request is not idle.
#[test]
fn an_http2_connection_that_sends_much_that_belongs_to_no_request_is_closed() {
    let dir = dir();
    let server = Server::start(dir.path());
    let mut raw = Raw::connect(server.socket());
    raw.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    raw.send([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    // A POST of /v1/tune whose body never arrives.
    let fields = b"\x83\x86\x04\x08/v1/tune\x01\x09localhost\x0f\x10\x10application/json";
    raw.send([&[0, 0, fields.len() as u8, 1, 4, 0, 0, 0, 1], &fields[..]].concat());
    let mut answers = raw.0.try_clone().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let pings = ping.repeat(1000);
    let sent = (0..1000).take_while(|_| std::io::Write::write_all(&mut raw.0, &pings).is_ok()).count();
    assert!((60..1000).contains(&sent), "{sent}: one MiB is spared, and then the connection ends");
    let _ = reader.join().unwrap();
    let closed = r#"hapax_http_connections_closed_total{reason="flood"} 1"#;
    let metrics = Client::new(server.url("")).get("/metrics").text();
    assert!(metrics.contains(closed), "{metrics}");
}

/// In an earlier version, HTTP/1 heads of 70 to 128 KB were accepted, and heads of 64 KiB for each of 250 HTTP/2
/// requests.
#[test]
fn headers_have_a_limit() {
    let dir = dir();
    let server = Setup::new(&dir).start();
    for (bytes, status) in [(60_000, 200), (70_000, 431)] {
        let mut raw = Raw::connect(server.address);
        raw.send(format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Fill: {}\r\n\r\n", "x".repeat(bytes)));
        assert_eq!(raw.status(), status, "{bytes}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for (bytes, status) in [(15_000, 200), (20_000, 431)] {
            let request = ureq::http::Request::get("http://localhost/livez").header("x-fill", "x".repeat(bytes));
            let (answer, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
            assert_eq!(tokio::time::timeout(SOON, answer).await.unwrap().unwrap().status(), status, "{bytes}");
        }
    });
}

/// In an earlier version, one connection could have 250 open requests whose bodies never arrived. These requests took
/// 4.5 MB, or 32 MB with large heads.
#[test]
fn one_http2_connection_takes_half_of_the_places_for_requests_that_are_not_alone_on_theirs() {
    let dir = dir();
    let server = crowded(&dir, 5).start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let request =
            || ureq::http::Request::post("http://localhost/v1/tune").header("content-type", "application/json");
        let mut begin = || sender.send_request(request().body(()).unwrap(), false).unwrap();
        let mut begun: Vec<_> = (0..4).map(|_| begin()).collect();
        let (fifth, _body) = begin();
        let error = tokio::time::timeout(SOON, fifth).await.unwrap().expect_err("it must leave two places");
        assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM));
        let mut end = async |number: usize| {
            let (answer, mut body) = begun.remove(number);
            body.send_data("{}".into(), true).unwrap();
            tokio::time::timeout(SOON, answer).await.unwrap().expect("it has a place").status()
        };
        assert_ne!(end(3).await, 503);
        // The client may have the answer before the server frees the place.
        let again = async {
            loop {
                let (next, mut body) = begin();
                let _ = body.send_data("{}".into(), true);
                match next.await {
                    Ok(answer) => return answer.status(),
                    Err(error) => assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM)),
                }
            }
        };
        assert_ne!(tokio::time::timeout(SOON, again).await.expect("a place is free again"), 503);
    });
}

#[test]
fn who_holds_all_places_by_asking_now_and_then_keeps_nobody_out() {
    let dir = dir();
    let server = crowded(&dir, 20).start();
    let held: Vec<Raw> = (0..20).map(|_| asked(&server)).collect();
    let begun = Instant::now();
    for _ in 0..10 {
        // Each request has its own connection.
        Client::of(&server).get("/v1/version").ok();
    }
    assert!(begun.elapsed() < SOON, "nobody waits for a timeout");
    let open: Vec<bool> = held.iter().map(is_open).collect();
    assert!(!open[0] && open[19], "the oldest made room: {open:?}");
}

#[test]
fn who_holds_all_places_by_heads_that_trickle_keeps_nobody_out() {
    let dir = dir();
    let server = crowded(&dir, 10).start();
    let mut trickling: Vec<Raw> = (0..10).map(|_| Raw::connect(server.address)).collect();
    for raw in &mut trickling {
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    }
    let begun = Instant::now();
    Client::of(&server).get("/livez").ok();
    assert!(begun.elapsed() < SOON, "nobody waits for a timeout");
}

#[test]
fn a_connection_that_is_being_answered_never_makes_room() {
    let dir = dir();
    let server = crowded(&dir, 2).start();
    let mut working = Raw::connect(server.address);
    begin_work(&mut working, "");
    for _ in 0..20 {
        asked(&server);
    }
    working.send("}");
    assert_eq!(working.status(), 200);
}

/// If the server closes a connection between two requests, a busy client may lose the second request.
/// `Connection: close` on the first answer avoids this.
#[test]
fn clients_at_work_take_turns_without_losing_a_request() {
    let dir = dir();
    let server = crowded(&dir, 1).start();
    let mut working = Raw::connect(server.address);
    begin_work(&mut working, "");
    let mut waiting = Raw::connect(server.address);
    waiting.send(LIVEZ);
    let begun = Instant::now();
    loop {
        working.send("}");
        let (status, head, _) = working.answer();
        assert_eq!(status, 200);
        if head.to_lowercase().contains("connection: close") {
            break;
        }
        // The server has not reached the waiting connection yet.
        assert!(begun.elapsed() < SOON);
        begin_work(&mut working, "");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(waiting.status(), 200);
    // No connection waits now.
    waiting.send(LIVEZ);
    assert!(!waiting.answer().1.to_lowercase().contains("connection: close"));
}

#[test]
fn probes_have_places_that_nothing_else_can_take() {
    let dir = dir();
    let server = Setup { probes: true, api_key: Some("a-key-of-some-length-1"), ..crowded(&dir, 2) }.start();
    let mut working: Vec<Raw> = (0..2).map(|_| Raw::connect(server.address)).collect();
    for raw in &mut working {
        begin_work(raw, "Authorization: Bearer a-key-of-some-length-1\r\n");
    }
    let mut waiting = Raw::connect(server.address);
    waiting.send(LIVEZ);
    let probes = format!("http://{}", server.probes_address.unwrap());
    let (stranger, friend) = (Client::new(&probes), Client::new(&probes).key("a-key-of-some-length-1"));
    stranger.get("/livez").ok();
    stranger.get("/readyz").ok();
    assert_eq!(stranger.get("/metrics").status, 401, "as on the other listener");
    assert_eq!(friend.get("/metrics").status, 200);
    for path in ["/v1/version", "/v1/collections/default", "/openapi.yaml", "/"] {
        let mut raw = Raw::connect(server.probes_address.unwrap());
        raw.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let (status, _, body) = raw.answer();
        assert!(status == 404 && body.contains("server.admin_listen"), "{path}: {status} {body}");
    }
    for _ in 0..200 {
        let mut crowd = Raw::connect(server.probes_address.unwrap());
        crowd.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(crowd.status(), 200);
    }
    for raw in &mut working {
        raw.send("}");
        assert_eq!(raw.status(), 200);
    }
    assert_eq!(waiting.status(), 200);
}

#[test]
fn probes_answer_while_the_server_drains() {
    let dir = dir();
    let server = Setup { probes: true, ..Setup::new(&dir) }.start();
    let mut slow = Raw::connect(server.address);
    begin_work(&mut slow, "");
    server.stop();
    let probes = Client::new(format!("http://{}", server.probes_address.unwrap()));
    let begun = Instant::now();
    while probes.get("/readyz").status == 200 {
        assert!(begun.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(10));
    }
    probes.get("/readyz").problem(503, "shutting_down");
    probes.get("/livez").ok();
    slow.send("}");
    let (status, head, _) = slow.answer();
    assert_eq!(status, 200);
    assert!(head.to_lowercase().contains("connection: close"), "the client learns that this was the last: {head}");
}

/// In an earlier version, the kernel's queue of new connections had 128 places. If 512 clients connected to a busy
/// server at the same moment, dozens of connections were reset.
#[test]
fn hundreds_of_clients_may_come_before_the_server_accepts_one() {
    const CLIENTS: usize = 300;
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let clients = CLIENTS.min(most.trim().parse().unwrap());
    let dir = dir();
    let server = Server::start(dir.path());
    let address = server.socket();
    // A stopped process accepts nothing.
    assert!(Command::new("kill").args(["-STOP", &server.pid().to_string()]).status().unwrap().success());
    let connect = |n| {
        let connected = TcpStream::connect_timeout(&address, Duration::from_secs(5));
        connected.unwrap_or_else(|error| panic!("client {n}: {error}"))
    };
    let connected: Vec<TcpStream> = (0..clients).map(connect).collect();
    assert_eq!(connected.len(), clients);
}
