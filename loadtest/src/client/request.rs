//! One request of a scenario, and the names of its possible outcomes.

use bytes::Bytes;
use hyper::{Method, Uri};

/// A request that is ready to be sent. A clone shares its body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The kind of request in the counts.
    pub(crate) kind: &'static str,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: Uri,
    pub(crate) content_type: &'static str,
    /// The content encoding, or "".
    pub(crate) encoding: &'static str,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn json(kind: &'static str, method: Method, target: &Uri, body: impl Into<Bytes>) -> Self {
        Self { kind, method, target: target.clone(), content_type: "application/json", encoding: "", body: body.into() }
    }

    /// Makes a POST of JSON.
    pub(crate) fn post(kind: &'static str, target: &Uri, body: impl Into<Bytes>) -> Self {
        Self::json(kind, Method::POST, target, body)
    }

    /// Makes a request without a body.
    pub(crate) fn bare(kind: &'static str, method: Method, target: Uri) -> Self {
        Self { kind, method, target, content_type: "", encoding: "", body: Bytes::new() }
    }

    /// Sets the compression of the body.
    pub(crate) fn encoded(self, encoding: &'static str) -> Self {
        Self { encoding, ..self }
    }

    pub(crate) fn of_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Whether the server refused the request because it is overloaded.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// Returns the beginning of the body, for messages.
    pub(crate) fn excerpt(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(200)]).into_owned()
    }
}

/// The judgement of one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Good,
    /// Refused because of load, as the API allows.
    Refused,
    /// There was no answer, or a wrong one.
    Wrong(String),
}
