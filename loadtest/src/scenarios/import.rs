//! Fills a collection with the first documents of the seed, by bulk requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use hyper::Uri;

use crate::bench::Bench;
use crate::client::{Connection, Request};
use crate::works::{document_body, lines, path};

/// The number of lines in one bulk request.
const LINES: u64 = 2_000;
const CONNECTIONS: usize = 4;

/// Imports the documents of the seed, including duplicates, so that the collection has the requested size. Returns the
/// time that this took, in seconds.
pub(super) fn import(bench: &Bench, collection: &str, documents: u64) -> Result<f64> {
    let texts = Arc::clone(&bench.texts);
    insert_all(bench, collection, documents, move |n| document_body("doc", n, texts.document(n).as_bytes()))
}

/// Imports `count` documents, each as JSON. Returns the time that this took, in seconds.
pub(super) fn insert_all(
    bench: &Bench,
    collection: &str,
    count: u64,
    document: impl Fn(u64) -> Bytes + Send + Sync + 'static,
) -> Result<f64> {
    let (begun, next, document) = (Instant::now(), Arc::new(AtomicU64::new(0)), Arc::new(document));
    let to = path(collection, "bulk?op=insert&on_duplicate=store&limit=1");
    let workers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (target, next, document) = (Arc::clone(&bench.target), Arc::clone(&next), Arc::clone(&document));
            let to = to.clone();
            bench.runtime.spawn(async move {
                let mut connection = Connection::new(target);
                loop {
                    let first = next.fetch_add(LINES, Ordering::Relaxed);
                    if first >= count {
                        return Ok::<_, anyhow::Error>(());
                    }
                    let body = lines((first..(first + LINES).min(count)).map(|n| document(n)));
                    send(&mut connection, &to, body).await?;
                }
            })
        })
        .collect();
    for worker in workers {
        bench.runtime.block_on(worker).context("an import ended early")??;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Sends one bulk request. All of its lines must be stored.
async fn send(connection: &mut Connection, to: &Uri, body: Vec<u8>) -> Result<()> {
    let request = Request::post("import", to, body).of_type("application/x-ndjson");
    let answer = connection.send(&request).await?;
    if answer.status != 200 {
        bail!("an import was answered with {}: {}", answer.status, answer.excerpt());
    }
    let last = answer.body.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_slice(last).context("the bulk answer has no summary")?;
    if summary["kind"] != "summary" || summary["summary"]["errors"] != 0 {
        bail!("documents were refused: {summary}");
    }
    Ok(())
}
