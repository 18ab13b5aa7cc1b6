//! Other requests can use the memory and the places that stalled bulk requests do not need. In earlier versions, 32
//! lines that were never completed took 535 of the 537 MB for bodies, and 64 requests of one byte took all places of
//! bulk requests for 300 s. If one line could be as long as all the memory for bodies, a request could wait for memory
//! that it holds itself.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, Raw, words};
use crate::support::library::dir;
use crate::support::local::Setup;

const MIB: usize = 1 << 20;

fn begin(address: SocketAddr, query: &str) -> Raw {
    let mut raw = Raw::connect(address);
    raw.send(format!("POST /v1/collections/default/bulk?op=check{query} HTTP/1.1\r\nHost: localhost\r\n"));
    raw.send("Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    raw
}

fn send_chunk(raw: &mut Raw, bytes: &[u8]) {
    raw.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
}

/// Returns the last line of an answer. The answer ends when the connection ends.
fn last_line(mut raw: Raw) -> Value {
    let mut text = String::new();
    raw.0.read_to_string(&mut text).unwrap();
    let line = text.lines().rfind(|line| line.contains("\"kind\"")).unwrap_or_else(|| panic!("no line: {text}"));
    serde_json::from_str(line).unwrap()
}

/// Returns a line of this many bytes, line feed included.
fn line(number: u64, bytes: usize) -> Vec<u8> {
    let mut text = String::new();
    for part in 0.. {
        if text.len() + 1_000 > bytes {
            break;
        }
        text.push_str(&words(number * 1_000_000 + part));
        text.push(' ');
    }
    let rest = bytes - json!({ "text": text }).to_string().len() - 1;
    let line = json!({ "text": text + &"x".repeat(rest) }).to_string() + "\n";
    assert_eq!(line.len(), bytes);
    line.into_bytes()
}

#[test]
fn lines_as_long_as_may_be_find_room_one_after_another() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.body_bytes_max = MIB;
            limits.bulk_line_bytes_max = MIB;
            // The smallest value that the configuration allows.
            limits.bodies_bytes_max = 2 * MIB;
        })
        .start();
    let clients: Vec<_> = (0..6)
        .map(|number| {
            let mut raw = begin(server.address, "&duplex=true");
            std::thread::spawn(move || {
                for part in 0..3 {
                    let line = line(number * 10 + part, MIB + 1);
                    line.chunks(50_000).for_each(|piece| send_chunk(&mut raw, piece));
                }
                raw.send("0\r\n\r\n");
                last_line(raw)
            })
        })
        .collect();
    for client in clients {
        let last = client.join().unwrap();
        assert_eq!((&last["kind"], &last["summary"]["unique"]), (&json!("summary"), &json!(3)), "{last}");
    }
}

#[test]
fn lines_that_are_never_completed_leave_memory_to_others() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.bodies_bytes_max = 64 * MIB).start();
    let client = Client::of(&server);
    let begun = line(1, 15 * MIB);
    let _held: Vec<_> = (0..16)
        .map(|_| {
            let mut raw = begin(server.address, "&duplex=true");
            raw.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
            // The server reads most of these bodies only in part, so the write ends with a timeout.
            let framed = [format!("{:x}\r\n", begun.len()).as_bytes(), &begun[..14 * MIB]].concat();
            _ = raw.0.write_all(&framed);
            raw
        })
        .collect();
    for number in 0..3 {
        for bytes in [1_100, 200_000, 5 * MIB] {
            let body = line(100 + number, bytes);
            client.send("POST", CHECK, &[("content-type", "application/json")], &body).ok();
        }
        let line = |part| json!({"text": words(number * 100 + part)}).to_string() + "\n";
        let lines: String = (0..100).map(line).collect();
        assert_eq!(client.bulk("op=check", &lines).last().unwrap()["summary"]["unique"], 100);
    }
}

#[test]
fn requests_that_send_nothing_are_given_up() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.bulk_requests_max = 4;
            limits.request_timeout = Duration::from_secs(2);
        })
        .start();
    let idle = |query, sent: &[u8]| {
        let mut raw = begin(server.address, query);
        if !sent.is_empty() {
            send_chunk(&mut raw, sent);
        }
        raw
    };
    let since = Instant::now();
    let raws = [idle("", b""), idle("", b"{}\n"), idle("&duplex=true", b""), idle("&duplex=true", b"{}\n{")];
    for raw in raws {
        let last = last_line(raw);
        assert_eq!((&last["kind"], &last["error"]["code"]), (&json!("fatal"), &json!("stalled")), "{last}");
    }
    // The time limit is two seconds, but the test allows more for a busy machine. The limit of an idle stream is 300 s.
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    let lines = json!({"text": words(1)}).to_string() + "\n";
    assert_eq!(Client::of(&server).bulk("op=check", &lines).len(), 2, "there is a place again");
}

#[test]
fn a_live_stream_may_be_idle_between_two_lines() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.request_timeout = Duration::from_secs(1)).start();
    let mut raw = begin(server.address, "&duplex=true");
    for number in 0..3 {
        send_chunk(&mut raw, format!("{}\n", json!({"text": words(number)})).as_bytes());
        raw.read_until(|seen| seen.windows(8).any(|window| window == b"\"kind\":\""));
        std::thread::sleep(Duration::from_millis(1500));
    }
    raw.send("0\r\n\r\n");
    assert_eq!(last_line(raw)["summary"]["documents"], 3);
}
