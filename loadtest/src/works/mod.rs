//! The requests of the scenarios, and the right answers to them.

mod bulk;
mod checks;
mod crawl;
mod inserts;
mod later;
mod prepared;

pub(crate) use bulk::{Bulk, lines};
pub(crate) use checks::Checks;
pub(crate) use crawl::{Crawl, Mix};
pub(crate) use inserts::Inserts;
pub(crate) use later::Later;
pub(crate) use prepared::Prepared;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::Uri;

use crate::client::{Answer, Fate};

/// Returns the path of a collection's route, with its query.
pub(crate) fn path(collection: &str, rest: &str) -> Uri {
    format!("/v1/collections/{collection}/{rest}").parse().expect("scenarios write valid paths")
}

/// Returns the JSON of a check. Texts of this program have no character that JSON escapes.
pub(crate) fn check_body(text: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(text.len() + 16);
    body.put_slice(b"{\"text\":\"");
    body.put_slice(text);
    body.put_slice(b"\"}");
    body.freeze()
}

/// Returns the JSON of a document with the id `PREFIX-N`.
pub(crate) fn document_body(prefix: &str, n: u64, text: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(text.len() + prefix.len() + 48);
    body.put_slice(format!("{{\"id\":\"{prefix}-{n}\",\"text\":\"").as_bytes());
    body.put_slice(text);
    body.put_slice(b"\"}");
    body.freeze()
}

/// Returns the fate of an answer that is not one of the allowed answers.
pub(crate) fn unexpected(answer: &Answer) -> Fate {
    Fate::Wrong(format!("{}: {}", answer.status, answer.excerpt()))
}
