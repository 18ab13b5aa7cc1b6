//! A thin HTTP client that checks every answer against `openapi.yaml`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Request;

use super::authority::Authority;
use super::description;
use super::local::Local;

pub const CHECK: &str = "/v1/collections/default/check";
pub const DOCUMENTS: &str = "/v1/collections/default/documents";

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    base: String,
    key: Option<String>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(base: impl Into<String>) -> Self {
        Self::with(base.into(), ureq::tls::TlsConfig::default())
    }

    /// Returns a client of a server whose certificate is from this authority.
    pub fn trusting(base: impl Into<String>, authority: &Authority) -> Self {
        Self::with(base.into(), authority.for_agents())
    }

    fn with(base: String, tls: ureq::tls::TlsConfig) -> Self {
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(120)))
            .build()
            .into();
        Self { agent, base, key: None }
    }

    pub fn of(local: &Local) -> Self {
        Self::new(local.url())
    }

    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sends a request. `target` is the path and the query. The answer must be one that the description allows.
    pub fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{target}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let sent = if body.is_empty() && matches!(method, "GET" | "HEAD" | "DELETE" | "OPTIONS") {
            self.agent.run(request.body(()).unwrap())
        } else {
            self.agent.run(request.body(body).unwrap())
        };
        let mut response = sent.unwrap_or_else(|error| panic!("{method} {target}: {error}"));
        let body = response.body_mut().with_config().limit(1 << 30).read_to_vec();
        let body = body.unwrap_or_else(|error| panic!("{method} {target}: {error}"));
        let content_type = response.headers().get("content-type").map_or("", |value| value.to_str().unwrap());
        let content_type = content_type.split(';').next().unwrap().to_owned();
        let status = response.status().as_u16();
        let path = target.split('?').next().unwrap();
        description::check(method, path, status, &content_type, &body);
        Answer { status, headers: response.headers().clone(), body }
    }

    pub fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &[], &[])
    }

    pub fn delete(&self, target: &str) -> Answer {
        self.send("DELETE", target, &[], &[])
    }

    pub fn json(&self, method: &str, target: &str, body: &Value) -> Answer {
        self.send(method, target, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    pub fn post(&self, target: &str, body: &Value) -> Answer {
        self.json("POST", target, body)
    }

    pub fn text(&self, target: &str, text: &[u8]) -> Answer {
        self.send("POST", target, &[("content-type", "text/plain")], text)
    }

    /// Sends a bulk request and returns the lines of its answer.
    pub fn bulk(&self, query: &str, lines: &str) -> Vec<Value> {
        let target = format!("/v1/collections/default/bulk?{query}");
        let answer = self.send("POST", &target, &[("content-type", "application/x-ndjson")], lines.as_bytes());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer.lines()
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as lines of JSON, each checked against the description.
    pub fn lines(&self) -> Vec<Value> {
        let schema = &description::DESCRIPTION["components"]["schemas"]["BulkLine"];
        let lines: Vec<Value> = self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().for_each(|line| description::conforms("bulk line", line, schema));
        lines
    }

    /// Checks a problem's status and code, and returns it.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.json();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!(problem["request_id"].as_str(), self.headers["x-request-id"].to_str().ok());
        problem
    }

    /// Checks for 200 and returns the body.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }
}

/// Returns the names of the fields that a problem reports.
pub fn fields(problem: &Value) -> Vec<&str> {
    problem["errors"].as_array().into_iter().flatten().map(|error| error["field"].as_str().unwrap()).collect()
}

/// Percent-encodes all characters except letters and digits.
pub fn encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Returns the path of a collection's documents.
pub fn documents(collection: &str) -> String {
    format!("/v1/collections/{collection}/documents")
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a different text for each number: no two share a shingle.
pub fn words(number: u64) -> String {
    (0..40).map(|word| format!("w{number}x{word}")).collect::<Vec<_>>().join(" ")
}

/// Returns lines for bulk. The line of a number is a document that has the number as its id, and its [`words`].
pub fn lines(numbers: Range<u64>) -> String {
    numbers.map(|number| json!({ "id": number.to_string(), "text": words(number) }).to_string() + "\n").collect()
}

/// A socket for requests that no HTTP library will send.
pub struct Raw(pub TcpStream);

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads until `end` returns true, or the server closes.
    pub fn read_until(&mut self, end: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut seen = Vec::new();
        let mut piece = [0; 16 * 1024];
        while !end(&seen) {
            match self.0.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => seen.extend_from_slice(&piece[..read]),
                Err(error) => {
                    let end = &seen[seen.len().saturating_sub(300)..];
                    panic!("{error} after {} bytes: {:?}", seen.len(), String::from_utf8_lossy(end));
                }
            }
        }
        seen
    }

    /// Returns the status when the whole answer has arrived. The answer must have a length.
    pub fn status(&mut self) -> u16 {
        self.answer().0
    }

    /// Returns status, headers as they were sent, and body. The answer must have a length.
    pub fn answer(&mut self) -> (u16, String, String) {
        let seen = self.read_until(|seen| {
            let text = String::from_utf8_lossy(seen);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.is_some_and(|length| body.len() >= length.parse().unwrap())
        });
        let text = String::from_utf8_lossy(&seen).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {text:?}"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        (status, head.to_owned(), body.to_owned())
    }
}
