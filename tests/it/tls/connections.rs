//! Connections with TLS have the same limits as those without TLS, and end in the same way.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::authority::Authority;
use crate::support::client::{Client, DOCUMENTS, Raw, words};
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};

const LIVEZ: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn setup(dir: &Dir, authority: &Authority) -> Setup {
    Setup { tls: Some(authority.acceptor(dir.path())), ..Setup::new(dir) }
}

fn client(server: &Local, authority: &Authority) -> Client {
    Client::trusting(server.url(), authority)
}

/// Reads until the server has closed the connection. A stream that ends without close_notify is an error, as it is for
/// browsers.
fn rest(mut stream: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(text)
}

#[test]
fn alpn_chooses_the_version_of_http() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    for (offered, chosen) in
        [(&["h2", "http/1.1"][..], Some(&b"h2"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        let mut tls = authority.connect(server.address, offered).unwrap();
        assert_eq!(tls.conn.alpn_protocol(), chosen);
        if chosen != Some(b"h2") {
            tls.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
            let answer = rest(tls).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer));
        }
    }
    let none = authority.connect(server.address, &["spdy/3"]).unwrap_err();
    assert!(none.to_string().contains("NoApplicationProtocol"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_goes_over_tls() {
    let (dir, authority) = (dir(), Authority::new());
    // However busy the machine is, no request is refused because it has waited.
    let server = setup(&dir, &authority).limits(|limits| limits.queue_delay_max = std::time::Duration::ZERO).start();
    let tcp = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(authority.trusted(&["h2"])));
    let tls = connector.connect("127.0.0.1".try_into().unwrap(), tcp).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(tls).await.unwrap();
    tokio::spawn(connection);
    // Requests about documents have more than 20 places. Requests about whole collections have only 16.
    let answers = (0..20).map(|_| {
        let request =
            axum::http::Request::get(format!("https://{}/v1/collections/default/documents?limit=1", server.address));
        requests.send_request(request.body(()).unwrap(), true).unwrap().0
    });
    for answer in answers.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, axum::http::Version::HTTP_2));
    }
}

#[test]
fn every_kind_of_request_goes_over_tls() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    let client = client(&server, &authority);
    client.post(DOCUMENTS, &json!({"id": "a", "text": words(1)})).ok();
    let lines: String = (0..2000).map(|n| format!("{}\n", json!({"id": n.to_string(), "text": words(n)}))).collect();
    let answers = client.bulk("op=insert&duplex=true", &lines);
    let verdicts = answers.iter().filter(|line| line["kind"] == "verdict").count();
    assert_eq!((verdicts, answers.len()), (2000, 2001));
    // The text needs many TLS records, in both directions.
    let long: String = (0..40_000).map(|n| format!("word{n} ")).collect();
    let check = "/v1/collections/default/check";
    assert_eq!(client.text(check, long.as_bytes()).ok()["verdict"], "unique");
    assert!(client.get("/openapi.yaml").body.len() > 64 * 1024);
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 2000);
}

/// Without a key, requests of the server's own pages are accepted. With TLS, the origin of these pages begins with
/// https.
#[test]
fn own_pages_have_https_origins() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    let client = client(&server, &authority);
    let own = [("origin", "https://localhost:8080"), ("sec-fetch-site", "same-origin")];
    client.send("GET", "/v1/collections", &own, b"").ok();
    let foreign = [("origin", "https://evil.example")];
    client.send("GET", "/v1/collections", &foreign, b"").problem(403, "foreign_request");
}

#[test]
fn plain_http_on_a_port_for_tls_is_told_to_use_https() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    for request in [LIVEZ, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST /v1/tune HTTP/1.1\r\ncontent-length: 9\r\n\r\n"]
    {
        let mut raw = Raw::connect(server.address);
        raw.send(request);
        let (status, _, body) = raw.answer();
        assert_eq!((status, body.as_str()), (400, "This port speaks TLS. Use https:// instead of http.\n"));
        assert_eq!(raw.read_until(|_| false), b"", "then it closes");
    }
}

#[test]
fn bytes_that_are_no_handshake_end_the_connection() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    for bytes in [&b"\x16\x03\x01\x00\x05hello"[..], b"\x00\x01\x02\x03\x04\x05", b"\x16\x7f\xff\xff\xff\xff\xff"] {
        let mut raw = Raw::connect(server.address);
        raw.send(bytes);
        let answer = raw.read_until(|_| false);
        let is_alert = answer.first() == Some(&21);
        assert!(is_alert || answer.is_empty(), "{bytes:?} -> {answer:?}");
    }
    Raw::connect(server.address);
    client(&server, &authority).get("/livez").ok();
}

/// The time limit for the first request begins when the connection is opened, so it includes the handshake.
#[test]
fn a_slow_handshake_is_given_up() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).limits(|limits| limits.header_timeout = Duration::from_millis(300)).start();
    let mut silent = Raw::connect(server.address);
    let mut half = Raw::connect(server.address);
    half.send(b"\x16\x03\x01\x02\x00\x01");
    let mut only_a_handshake = authority.connect(server.address, &[]).unwrap();
    assert_eq!(silent.read_until(|_| false), b"");
    assert_eq!(half.read_until(|_| false), b"");
    let end = only_a_handshake.read(&mut [0]).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
    client(&server, &authority).get("/livez").ok();
}

#[test]
fn half_handshakes_keep_no_other_client_out() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).limits(|limits| limits.connections_max = 4).start();
    let mut half: Vec<_> = (0..12).map(|_| Raw::connect(server.address)).collect();
    half.iter_mut().for_each(|half| _ = std::io::Write::write_all(&mut half.0, b"\x16\x03\x01\x02\x00\x01"));
    let client = client(&server, &authority);
    for _ in 0..20 {
        client.get("/livez").ok();
    }
}

/// Without a farewell (close_notify), a client cannot distinguish the end of the connection from an attack that cuts
/// it.
#[test]
fn a_connection_ends_with_a_farewell() {
    let (dir, authority) = (dir(), Authority::new());
    let server =
        setup(&dir, &authority).limits(|limits| limits.keep_alive_timeout = Duration::from_millis(200)).start();
    let mut idle = authority.connect(server.address, &["http/1.1"]).unwrap();
    idle.write_all(LIVEZ).unwrap();
    assert!(rest(idle).unwrap().starts_with(b"HTTP/1.1 200"), "after its idle time");

    drop(server);
    let server = setup(&dir, &authority).start();
    let mut open = authority.connect(server.address, &["http/1.1"]).unwrap();
    open.write_all(LIVEZ).unwrap();
    let mut piece = [0; 16];
    open.read_exact(&mut piece).unwrap();
    server.stop();
    rest(open).unwrap();
    assert_eq!(server.stopped(), 0);
}

#[test]
fn an_answer_that_nobody_reads_ends_its_connection() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority)
        .limits(|limits| {
            limits.write_timeout = Duration::from_millis(500);
            limits.answer_bytes_per_second_min = 1 << 30;
        })
        .start();
    let mut tls = authority.connect(server.address, &["http/1.1"]).unwrap();
    tls.sock.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    // Soon there are more answers than the kernel buffers.
    let cut = (0..6000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        tls.write_all(b"GET /openapi.yaml HTTP/1.1\r\nhost: localhost\r\n\r\n").err()
    });
    let cut = cut.expect("the connection is closed within a minute");
    let kinds = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&cut.kind()), "{cut:?}");
    client(&server, &authority).get("/livez").ok();
}

#[test]
fn sessions_are_resumed() {
    let (dir, authority) = (dir(), Authority::new());
    let server = setup(&dir, &authority).start();
    let config = Arc::new(authority.trusted(&["http/1.1"]));
    let mut kinds = Vec::new();
    for _ in 0..3 {
        let mut tls = crate::support::authority::connect(Arc::clone(&config), server.address).unwrap();
        tls.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        kinds.push(tls.conn.handshake_kind().unwrap());
        rest(tls).unwrap();
    }
    assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed, rustls::HandshakeKind::Resumed]);
}
