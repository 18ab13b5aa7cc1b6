//! If a key is removed from the file, or expires, all open requests of its client are ended.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::file::{self, until};
use crate::support::client::{Client, Raw, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

/// Opens a bulk request that never ends by itself, and waits for its first answer.
fn stream(server: &Local, key: &str) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(format!(
        "POST /v1/collections/default/bulk?op=check&duplex=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {key}\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    let line = format!("{{\"text\": \"{}\"}}\n", words(1));
    raw.send(format!("{:x}\r\n{line}\r\n", line.len()));
    raw.read_until(|seen| String::from_utf8_lossy(seen).contains("\"kind\":\"verdict\""));
    raw
}

/// Returns the last line of a stream, once the server has ended it.
fn last_line(raw: &mut Raw) -> String {
    let rest = raw.read_until(|_| false);
    let rest = String::from_utf8_lossy(&rest).into_owned();
    rest.lines().rfind(|line| line.contains("\"kind\"")).unwrap_or_else(|| panic!("{rest}")).to_owned()
}

fn server(dir: &crate::support::library::Dir, keys: &[file::Line<'_>]) -> Local {
    Setup { keys_file: Some(file::write(dir.path(), keys)), ..Setup::new(dir) }.start()
}

#[test]
fn a_revoked_key_ends_its_streams_and_no_others() {
    let dir = dir();
    let soon = (Timestamp::now() + Duration::from_secs(5)).to_string();
    let expires = format!("expires = \"{soon}\"");
    let all: &[&str] = &["check", "insert"];
    let server = server(&dir, &[("a", all, ""), ("b", all, ""), ("c", all, ""), ("d", all, &expires)]);
    let [mut a, mut b, mut c, mut d] = ["a", "b", "c", "d"].map(|key| stream(&server, key));
    let begun = Instant::now();
    // `a` is gone, `b` has lost a scope, and `c` has a new one.
    file::write(dir.path(), &[("b", &["check"], ""), ("c", &["check", "insert", "read"], ""), ("d", all, &expires)]);
    for raw in [&mut a, &mut b, &mut d] {
        let last = last_line(raw);
        assert!(last.contains("\"kind\":\"fatal\"") && last.contains("\"code\":\"unauthorized\""), "{last}");
        assert!(last.contains("\"line\":1"), "{last}");
        println!("ended after {:?}", begun.elapsed());
    }
    let line = format!("{{\"text\": \"{}\"}}\n", words(2));
    c.send(format!("{:x}\r\n{line}\r\n0\r\n\r\n", line.len()));
    let last = last_line(&mut c);
    assert!(last.contains("\"kind\":\"summary\"") && last.contains("\"lines\":2"), "{last}");
    let status = |key: &str| Client::of(&server).key(key).get("/v1/version").status;
    assert_eq!(["a", "b", "c", "d"].map(status), [401, 200, 200, 401]);
}

#[test]
fn a_long_text_that_is_still_arriving_ends_too() {
    let dir = dir();
    let server = server(&dir, &[("a", &["check"], "")]);
    let mut raw = Raw::connect(server.address);
    raw.send(
        "POST /v1/collections/default/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n\
         Content-Type: text/plain\r\nContent-Length: 10000000\r\n\r\n",
    );
    raw.send(words(1).repeat(1000));
    file::write(dir.path(), &[]);
    let (status, _, body) = raw.answer();
    assert_eq!(status, 401, "{body}");
    assert!(body.contains("revoked"), "{body}");
}

/// If a limit is reached, a stream may wait for minutes. Revoking its key must not wait for the stream.
#[test]
fn a_stream_that_a_limit_slows_ends_too() {
    let dir = dir();
    let limits = "limits = { documents_per_second = 1, bytes_per_second = 1000 }";
    let server = server(&dir, &[("a", &["check"], limits), ("b", &["check"], "limits = { bytes_per_second = 1000 }")]);
    // After its first line or its first piece, each stream would have to wait for an hour.
    let mut lines = Raw::connect(server.address);
    lines.send(
        "POST /v1/collections/default/bulk?op=check&duplex=true HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer a\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let line = format!("{{\"text\": \"{}\"}}\n", words(1).repeat(10_000));
    lines.send(format!("{:x}\r\n{line}\r\n", line.len()));
    let mut text = Raw::connect(server.address);
    text.send(
        "POST /v1/collections/default/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer b\r\n\
         Content-Type: text/plain\r\nContent-Length: 100000000\r\n\r\n",
    );
    text.send(words(1).repeat(10_000));
    until(|| ["a", "b"].iter().all(|key| Client::of(&server).key(key).get("/v1/version").status == 429));
    file::write(dir.path(), &[]);
    let revoked = Instant::now();
    let last = last_line(&mut lines);
    assert!(last.contains("\"kind\":\"fatal\"") && last.contains("\"code\":\"unauthorized\""), "{last}");
    let (status, _, body) = text.answer();
    assert!(status == 401 && body.contains("revoked"), "{status} {body}");
    // The promise is five seconds; the test allows more for a busy machine.
    assert!(revoked.elapsed() < Duration::from_secs(50), "{:?}", revoked.elapsed());
    println!("both ended after {:?}", revoked.elapsed());
}

#[test]
fn a_key_is_rotated_without_a_request_that_fails() {
    let dir = dir();
    let server = server(&dir, &[("old", &["check"], "")]);
    let switch = std::sync::atomic::AtomicBool::new(false);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (old, new) = (Client::of(&server).key("old"), Client::of(&server).key("new"));
                    let mut sent = 0;
                    while !stop.load(relaxed) {
                        let client = if switch.load(relaxed) { &new } else { &old };
                        client.get("/v1/version").ok();
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        file::write(dir.path(), &[("old", &["check"], ""), ("new", &["check"], "")]);
        until(|| Client::of(&server).key("new").get("/v1/version").status == 200);
        switch.store(true, relaxed);
        // By then, requests in progress with the old key have been answered.
        std::thread::sleep(Duration::from_millis(500));
        file::write(dir.path(), &[("new", &["check"], "")]);
        until(|| Client::of(&server).key("old").get("/v1/version").status == 401);
        stop.store(true, relaxed);
        for client in clients {
            assert!(client.join().expect("no request failed") > 10);
        }
    });
}
