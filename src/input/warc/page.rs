//! One WARC record -> a document in the form of the API, if it is a page. Records that have no text, such as requests,
//! images and redirects, are not pages. Knows nothing of files and offsets.

use std::borrow::Cow;

use serde::Serialize;

use super::body;
use super::charset;
use super::header::{Header, media_type};
use crate::extract::decode;
use crate::types::{CaptureDate, PayloadDigest};

/// Kinds of records that have pages.
const KINDS: [&str; 3] = ["response", "resource", "conversion"];
/// The longest page that is sent, in bytes of JSON. Servers accept documents of 16 MiB by default, and such a page may
/// be longer as JSON, because JSON has six bytes for a control character. If a page were longer than this, the server
/// might refuse the request together with all its other pages.
const JSON_BYTES_MAX: usize = 32 << 20;
/// The longest value of a record's header that is kept with its document.
const KEPT_BYTES_MAX: usize = 256;

/// The result of reading a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The document as one line of JSON.
    Document(Vec<u8>),
    NotAPage,
    Failed(String),
}

/// The content of a page, as its headers describe it.
struct Page<'a> {
    is_html: bool,
    charset: Option<String>,
    /// The header of the HTTP response. If the record has no HTTP response, this header is empty, and the body is not
    /// encoded.
    header: Header,
    body: &'a [u8],
}

/// Whether a record has a page. `header` is the header of the record, and `head` is the beginning of its block. A block
/// that cannot be parsed counts as a page, so that the record is reported.
pub(super) fn is_page(header: &Header, head: &[u8]) -> bool {
    !matches!(page(header, head), Ok(None))
}

/// Makes a document of a record.
pub(super) fn document(header: &Header, block: &[u8], bytes_max: usize) -> Outcome {
    match page(header, block).and_then(|page| page.map(|page| line(header, &page, bytes_max)).transpose()) {
        Ok(Some(line)) => Outcome::Document(line),
        Ok(None) => Outcome::NotAPage,
        Err(reason) => Outcome::Failed(reason),
    }
}

fn page<'a>(record: &Header, block: &'a [u8]) -> Result<Option<Page<'a>>, String> {
    if !record.get("warc-type").is_some_and(|kind| KINDS.contains(&kind.to_ascii_lowercase().as_str())) {
        return Ok(None);
    }
    // wget stores its arguments and its log as resources whose address begins with `metadata:`.
    if uri(record).is_some_and(|uri| uri.starts_with("metadata:")) {
        return Ok(None);
    }
    let (mut kind, mut charset) = media_type(record.get("content-type").unwrap_or_default());
    let (mut header, mut body) = (Header::default(), block);
    if kind == "application/http" || kind.is_empty() && block.starts_with(b"HTTP/") {
        let response = response(block)?;
        // Redirects and errors have no page of their own.
        if !(200..300).contains(&response.status) {
            return Ok(None);
        }
        (header, body) = (response.header, response.body);
        (kind, charset) = media_type(header.get("content-type").unwrap_or_default());
    }
    if kind.is_empty() {
        kind = media_type(record.get("warc-identified-payload-type").unwrap_or_default()).0;
    }
    let is_html = match kind.as_str() {
        "text/html" | "application/xhtml+xml" => true,
        "text/plain" => false,
        _ => return Ok(None),
    };
    Ok(Some(Page { is_html, charset, header, body }))
}

/// An archived HTTP response.
struct Response<'a> {
    status: u16,
    header: Header,
    body: &'a [u8],
}

fn response(block: &[u8]) -> Result<Response<'_>, String> {
    let end = memchr::memmem::find(block, b"\r\n\r\n").map(|at| (at, 4));
    let bare = memchr::memmem::find(&block[..end.map_or(block.len(), |(at, _)| at)], b"\n\n").map(|at| (at, 2));
    let (at, gap) = bare.or(end).unwrap_or((block.len(), 0));
    let (head, body) = (&block[..at], &block[at + gap..]);
    let line = String::from_utf8_lossy(head.split(|&byte| byte == b'\n').next().unwrap_or_default());
    let mut words = line.split_ascii_whitespace();
    let version = words.next().unwrap_or_default();
    let status = words.next().and_then(|status| status.parse().ok()).filter(|_| version.starts_with("HTTP/"));
    let Some(status) = status else { return Err("the record is not an HTTP response: it has no status line".into()) };
    Ok(Response { status, header: Header::parse(head), body })
}

/// Returns the address of the page. Old versions of wget write it in angle brackets.
fn uri(record: &Header) -> Option<&str> {
    let uri = record.get("warc-target-uri")?;
    let uri = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri);
    (!uri.is_empty()).then_some(uri)
}

/// A document in the form of the API.
#[derive(Serialize)]
struct Document<'a> {
    id: &'a str,
    #[serde(flatten)]
    content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    metadata: Metadata<'a>,
}

/// The content. The name of the variant, in lower case, is the name of the field.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Content {
    Text(String),
    Html(String),
}

/// The date and the digest of the record's header, if they are not valid in WARC. The API refuses such values, so they
/// are stored as metadata of the document.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_digest: Option<&'a str>,
}

impl Metadata<'_> {
    fn is_empty(&self) -> bool {
        self.date.is_none() && self.payload_digest.is_none()
    }
}

fn line(record: &Header, page: &Page<'_>, bytes_max: usize) -> Result<Vec<u8>, String> {
    let id = uri(record).ok_or("the record has no WARC-Target-URI, which would be the id of the document")?;
    let body: Cow<'_, [u8]> = body::content(&page.header, page.body, bytes_max)?;
    let (date, odd_date) = apart(record, "warc-date", |text| CaptureDate::new(text).is_ok());
    let (payload_digest, odd_digest) = apart(record, "warc-payload-digest", |text| PayloadDigest::new(text).is_ok());
    let metadata = Metadata { date: odd_date, payload_digest: odd_digest };
    let document = Document { id, content: content(&body, page), date, payload_digest, metadata };
    let json = serde_json::to_vec(&document).expect("strings are JSON");
    if json.len() > JSON_BYTES_MAX {
        return Err(format!("the page has {} bytes as JSON; the limit is {JSON_BYTES_MAX}", json.len()));
    }
    Ok(json)
}

/// Returns the value of a field of the header: as the first of the pair if it is valid, otherwise as the second.
fn apart<'a>(record: &'a Header, name: &str, is_valid: fn(&str) -> bool) -> (Option<&'a str>, Option<&'a str>) {
    match record.get(name) {
        Some(value) if is_valid(value) => (Some(value), None),
        value => (None, value.filter(|value| value.len() <= KEPT_BYTES_MAX)),
    }
}

fn content(body: &[u8], page: &Page<'_>) -> Content {
    let charset = page.charset.as_deref();
    if page.is_html { Content::Html(decode(body, charset)) } else { Content::Text(charset::decoded(body, charset)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &str, block: &[u8]) -> Outcome {
        document(&Header::parse(format!("WARC/1.0\n{fields}").as_bytes()), block, 1000)
    }

    fn made(fields: &str, block: &[u8]) -> serde_json::Value {
        match of(fields, block) {
            Outcome::Document(line) => serde_json::from_slice(&line).unwrap(),
            other => panic!("{fields}: {other:?}"),
        }
    }

    #[test]
    fn responses_resources_and_conversions_become_documents() {
        let http =
            "WARC-Type: response\nContent-Type: application/http; msgtype=response\nWARC-Target-URI: http://a.example/";
        assert_eq!(
            made(
                &format!("{http}\nWARC-Date: 2026-11-01T10:00:00Z\nWARC-Payload-Digest: sha1:AAA"),
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>caf\xC3\xA9\r\n\r\n"
            ),
            serde_json::json!({
                "id": "http://a.example/", "html": "<p>café\r\n\r\n",
                "date": "2026-11-01T10:00:00Z", "payload_digest": "sha1:AAA"
            })
        );
        let odd = format!("{http}\nWARC-Date: 20261101100000\nWARC-Payload-Digest: AAA");
        assert_eq!(
            made(&odd, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"),
            serde_json::json!({
                "id": "http://a.example/", "html": "<p>",
                "metadata": {"date": "20261101100000", "payload_digest": "AAA"}
            })
        );
        let bare = made(http, b"HTTP/2 200\nContent-Type: text/plain\n\nwords\r\n\r\nmore");
        assert_eq!(bare, serde_json::json!({"id": "http://a.example/", "text": "words\r\n\r\nmore"}));
        let wet = "WARC-Type: conversion\nContent-Type: text/plain\nWARC-Target-URI: <http://a.example/>";
        assert_eq!(made(wet, b"words"), serde_json::json!({"id": "http://a.example/", "text": "words"}));
        let identified = format!("{http}\nWARC-Identified-Payload-Type: application/xhtml+xml");
        assert_eq!(made(&identified, b"HTTP/1.1 200\r\n\r\n<p>")["html"], "<p>");
    }

    // One such record made a request too long for the server, and this ended the import.
    #[test]
    fn a_page_that_is_too_long_as_json_is_left_out() {
        let fields = "WARC-Type: resource\nContent-Type: text/html\nWARC-Target-URI: http://a.example/";
        let zeros = vec![0; JSON_BYTES_MAX / 6 + 1];
        let found = document(&Header::parse(format!("WARC/1.0\n{fields}").as_bytes()), &zeros, zeros.len());
        assert!(matches!(found, Outcome::Failed(why) if why.contains("bytes as JSON; the limit is")));
    }

    #[test]
    fn other_records_are_no_pages_and_faulty_ones_say_why() {
        let http = "Content-Type: application/http\nWARC-Target-URI: http://a.example/";
        for (fields, block) in [
            ("WARC-Type: warcinfo\nContent-Type: text/plain".to_owned(), b"x".as_slice()),
            (format!("WARC-Type: request\n{http}"), b"GET / HTTP/1.1\r\n\r\n"),
            (format!("WARC-Type: response\n{http}"), b"HTTP/1.1 302 Found\r\nContent-Type: text/html\r\n\r\nmoved"),
            (format!("WARC-Type: response\n{http}"), b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nx"),
            ("WARC-Type: resource\nContent-Type: text/plain\nWARC-Target-URI: <metadata://x/log>".to_owned(), b"log"),
            ("WARC-Type: response\nContent-Type: text/dns\nWARC-Target-URI: dns:a.example".to_owned(), b"1.2.3.4"),
        ] {
            assert_eq!(of(&fields, block), Outcome::NotAPage, "{fields}");
        }
        let failed = |fields: &str, block: &[u8]| match of(fields, block) {
            Outcome::Failed(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert!(failed(&format!("WARC-Type: response\n{http}"), b"nonsense").contains("status line"));
        assert!(failed("WARC-Type: resource\nContent-Type: text/plain", b"x").contains("WARC-Target-URI"));
        let bomb = [
            b"HTTP/1.1 200\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\n\r\n".to_vec(),
            zstd::encode_all(&[0; 2000][..], 1).unwrap(),
        ]
        .concat();
        assert!(failed(&format!("WARC-Type: response\n{http}"), &bomb).contains("1000"));
    }
}
