//! Attacks by the bodies of requests.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt;

use super::raw::{Raw, send_and_drain};
use crate::texts::Texts;

const MIB: usize = 1 << 20;
const BULK: &str = "POST /v1/collections/default/bulk?op=check";
const CHECK: &str = "POST /v1/collections/default/check";
/// An attacker abandons a request after this time.
const GIVE_UP: Duration = Duration::from_secs(20);

/// One request: its first line, its headers, and its body.
pub(super) struct Payload {
    request: &'static str,
    headers: String,
    body: Vec<u8>,
}

/// The prepared bodies.
pub(super) struct Payloads {
    pub(super) zstd: Payload,
    pub(super) gzip: Payload,
    pub(super) long: Payload,
    pub(super) blank: Payload,
    pub(super) batch: Payload,
    pub(super) deep: Payload,
}

impl Payload {
    fn new(request: &'static str, content_type: &str, encoding: &str, body: Vec<u8>) -> Self {
        let encoding = if encoding.is_empty() { String::new() } else { format!("content-encoding: {encoding}\r\n") };
        let headers = format!(
            "content-type: {content_type}\r\n{encoding}content-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        Self { request, headers, body }
    }
}

impl Payloads {
    pub(super) fn prepare(texts: &Texts) -> Result<Self> {
        const NDJSON: &str = "application/x-ndjson";
        const JSON: &str = "application/json";
        let feeds = |mib: usize| std::iter::repeat_n(vec![b'\n'; MIB], mib);
        let letters = || std::iter::once(b"{\"text\":\"".to_vec()).chain(std::iter::repeat_n(vec![b'a'; MIB], 1024));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        feeds(64).try_for_each(|piece| gzip.write_all(&piece))?;
        let document = |n: u64| {
            let mut text = String::new();
            texts.extend(&mut text, 12 * 1024, &mut texts.random(7, n));
            format!("{{\"text\":\"{text}\"}}")
        };
        let documents = (0..1000).map(document).collect::<Vec<_>>().join(",");
        let batch = format!("{{\"op\":\"check\",\"documents\":[{documents}]}}");
        Ok(Self {
            zstd: Payload::new(BULK, NDJSON, "zstd", zstd(feeds(256))?),
            gzip: Payload::new(BULK, NDJSON, "gzip", gzip.finish()?),
            long: Payload::new(CHECK, JSON, "zstd", zstd(letters())?),
            blank: Payload::new(BULK, NDJSON, "", vec![b'\n'; 64 * MIB]),
            batch: Payload::new("POST /v1/collections/default/batch?limit=1000", JSON, "", batch.into_bytes()),
            deep: Payload::new(CHECK, JSON, "", [b"{\"text\":".to_vec(), vec![b'['; MIB]].concat()),
        })
    }
}

fn zstd(pieces: impl Iterator<Item = Vec<u8>>) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1)?;
    for piece in pieces {
        encoder.write_all(&piece)?;
    }
    Ok(encoder.finish()?)
}

/// Sends a prepared request, and reads any answer of the server.
pub(super) async fn send(raw: &Raw, payload: &Payload) -> Result<()> {
    let mut stream = raw.connect().await?;
    stream.write_all(&raw.head(payload.request, &payload.headers)).await?;
    tokio::time::timeout(GIVE_UP, send_and_drain(&mut stream, &payload.body)).await?
}

/// Sends a body, one byte each second.
pub(super) async fn trickle(raw: &Raw) -> Result<()> {
    let mut stream = raw.connect().await?;
    stream.write_all(&raw.head(CHECK, "content-type: application/json\r\ncontent-length: 1000\r\n")).await?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(b" ").await?;
    }
}

/// Sends a bulk line that does not end.
pub(super) async fn endless(raw: &Raw) -> Result<()> {
    const PIECE: usize = 64 * 1024;
    let mut stream = raw.connect().await?;
    let request = format!("{BULK}&duplex=true");
    stream
        .write_all(&raw.head(&request, "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n"))
        .await?;
    let mut chunk = format!("{PIECE:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + PIECE, b'a');
    chunk.extend_from_slice(b"\r\n");
    loop {
        stream.write_all(&chunk).await?;
        // If so many attackers sent more than this, this client would be the bottleneck.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
