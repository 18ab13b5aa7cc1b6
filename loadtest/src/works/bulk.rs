//! Bulk requests of many lines.

use std::sync::Arc;

use hyper::Uri;

use super::inserts::INSERTED;
use super::{document_body, path};
use crate::client::{Answer, Fate, Request, Work};
use crate::texts::Texts;

/// Bulk requests, each with this many new documents.
pub(crate) struct Bulk {
    texts: Arc<Texts>,
    target: Uri,
    lines: u64,
    /// Bodies that are sent repeatedly; none if ids must not repeat.
    prepared: Vec<bytes::Bytes>,
}

/// The number of bodies that are prepared for checks.
const PREPARED: u64 = 8;

impl Bulk {
    pub(crate) fn checks(texts: &Arc<Texts>, lines: u64) -> Arc<Self> {
        let prepared = (0..PREPARED).map(|n| body(texts, n, lines)).collect();
        Arc::new(Self { texts: Arc::clone(texts), target: path("default", "bulk?op=check&limit=1"), lines, prepared })
    }

    pub(crate) fn inserts(texts: &Arc<Texts>, lines: u64) -> Arc<Self> {
        let target = path("default", "bulk?op=insert&on_duplicate=store&limit=1");
        Arc::new(Self { texts: Arc::clone(texts), target, lines, prepared: Vec::new() })
    }
}

fn body(texts: &Texts, n: u64, lines: u64) -> bytes::Bytes {
    // Single inserts number their ids and texts from 0 on. These numbers begin far above them.
    let first = (INSERTED >> 1) + n * lines;
    let documents = (first..first + lines).map(|n| document_body("bulk", n, texts.fresh(INSERTED + n).as_bytes()));
    self::lines(documents).into()
}

/// Joins documents to a bulk body.
pub(crate) fn lines(documents: impl Iterator<Item = bytes::Bytes>) -> Vec<u8> {
    let mut body = Vec::new();
    for document in documents {
        body.extend_from_slice(&document);
        body.push(b'\n');
    }
    body
}

impl Work for Bulk {
    type Note = ();

    fn request(&self, n: u64) -> (Request, ()) {
        let body = match self.prepared.len() as u64 {
            0 => body(&self.texts, n, self.lines),
            prepared => self.prepared[(n % prepared) as usize].clone(),
        };
        (Request::post("bulk", &self.target, body).of_type("application/x-ndjson"), ())
    }

    fn judge(&self, (): (), answer: &Answer) -> Fate {
        let last = answer.body.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let summary: Option<serde_json::Value> = serde_json::from_slice(last).ok();
        match summary {
            Some(line) if answer.status == 200 && line["summary"]["errors"] == 0 => Fate::Good,
            _ => Fate::Wrong(format!("{}: {}", answer.status, String::from_utf8_lossy(last))),
        }
    }
}
