//! Attacks with the head of a request, or with no request at all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::raw::Raw;

/// Sends a head, one byte each second.
pub(super) async fn trickle(raw: &Raw) -> Result<()> {
    let mut stream = raw.connect().await?;
    stream.write_all(b"POST /v1/collections/default/check HTTP/1.1\r\nx-slow: ").await?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(b"a").await?;
    }
}

/// Keeps a connection open and sends nothing, until the server closes it.
pub(super) async fn idle(raw: &Raw) -> Result<()> {
    let mut stream = raw.connect().await?;
    let _ = stream.read(&mut [0; 64]).await?;
    Ok(())
}

/// Sends requests in the way in which a page of another site would make a browser send them.
pub(super) async fn foreign(raw: &Raw, let_in: &AtomicU64) -> Result<()> {
    let mut stream = raw.connect().await?;
    let requests = [
        "GET /v1/collections HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        format!(
            "POST /v1/collections/default/check HTTP/1.1\r\nhost: {}\r\norigin: http://evil.example\r\n\
             content-type: text/plain\r\ncontent-length: 5\r\n\r\nhello",
            raw.address
        ),
    ];
    let mut piece = [0; 4096];
    for request in requests {
        stream.write_all(request.as_bytes()).await?;
        let read = stream.read(&mut piece).await?;
        if piece[..read].starts_with(b"HTTP/1.1 2") {
            let_in.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
