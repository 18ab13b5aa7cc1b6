//! Texts of any length, sent chunk by chunk.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::support::client::{Client, Raw};
use crate::support::until::until_within;

pub(super) const SIGN: &str = "/v1/collections/default/sign";

pub(super) const KIB: usize = 1 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Returns at least `bytes` of words in one- to four-byte characters. Texts of different numbers share no shingle.
pub(super) fn prose(number: u64, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut word = 0_u64;
    while text.len() < bytes {
        let kind = ["Straße", "ﬁsh", "日本語", "🦀x", "plain", "e\u{301}t\u{e9}"][(word % 6) as usize];
        text.push_str(&format!("{kind}{number}q{word} "));
        word += 1;
    }
    text
}

/// Sends the body of a POST chunk by chunk, and returns status, headers and JSON.
pub(super) fn stream<'a>(
    address: SocketAddr,
    target: &str,
    encoding: &str,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (u16, String, Value) {
    let mut raw = begin(address, target, encoding);
    for chunk in chunks {
        send_chunk(&mut raw, chunk);
    }
    raw.send("0\r\n\r\n");
    let (status, head, body) = raw.answer();
    (status, head, serde_json::from_str(&body).unwrap_or_else(|_| panic!("not JSON: {body}")))
}

pub(super) fn begin(address: SocketAddr, target: &str, encoding: &str) -> Raw {
    let mut raw = Raw::connect(address);
    raw.send(format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"));
    raw.send(format!("Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"));
    raw
}

pub(super) fn send_chunk(raw: &mut Raw, chunk: &[u8]) {
    let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
    framed.extend_from_slice(chunk);
    framed.extend_from_slice(b"\r\n");
    raw.send(framed);
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Waits until `done` is true; long documents may take two minutes on a busy machine.
pub(super) fn until(what: &str, done: impl FnMut() -> bool) {
    until_within(Duration::from_secs(120), what, done);
}

/// Waits until `/metrics` has this line. A scrape uses none of the memory or places that the test waits for.
pub(super) fn scraped(client: &Client, line: &str) {
    until(line, || client.get("/metrics").text().contains(line));
}
