//! An error -> an RFC 9457 `application/problem+json` answer.
//! Every [`Code`] has one status (`code.rs`). `problem_of.rs` gives every error of the modules below its `Code`. Handlers
//! set success statuses other than 200; `routes.rs` lists the statuses that each route may answer with. A problem must
//! never contain a document's text, a key, or the cause of an internal error.

use std::time::Duration;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub use super::code::Code;
use crate::types::retry_after;

/// The most fields that a problem names.
const FIELDS_MAX: usize = 16;
/// The most characters of a field's name that a problem shows.
const FIELD_CHARACTERS_MAX: usize = 100;

/// A field or parameter that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The field's name: `threshold`, `a.signature`, `documents`.
    pub field: String,
    pub detail: String,
}

/// An error on its way to the client.
///
/// Its response has no body, and carries the problem as an extension. The outermost layer writes the body, because only
/// that layer has the request's id.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub code: Code,
    /// A sentence about this occurrence.
    pub detail: String,
    pub errors: Vec<FieldError>,
    /// When the client should try again.
    pub retry_after: Option<Duration>,
    /// How much of the boot is done, from 0 to 1.
    pub progress: Option<f64>,
    /// The collections that are not open yet.
    pub collections: Vec<CollectionProgress>,
}

/// The progress of opening one collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectionProgress {
    pub name: String,
    /// From 0 to 1.
    pub progress: f64,
}

/// A [`Problem`] as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProblemBody {
    r#type: String,
    code: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    collections: Vec<CollectionProgress>,
}

impl ProblemBody {
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn code(&self) -> &'static str {
        self.code
    }
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let again = code.status() == StatusCode::SERVICE_UNAVAILABLE;
        let retry_after = again.then_some(retry_after::SOON);
        Self { code, detail: detail.into(), errors: Vec::new(), retry_after, progress: None, collections: Vec::new() }
    }

    /// 422 for one field or parameter.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldError { field: field.into(), detail: detail.into() }])
    }

    /// 422 for several fields. `errors` must not be empty.
    pub fn invalid_fields(mut errors: Vec<FieldError>) -> Self {
        let fields = errors.len();
        // The client may have chosen the names. A long name must not make the answer long.
        errors.truncate(FIELDS_MAX);
        for error in errors.iter_mut().filter(|error| error.field.chars().count() > FIELD_CHARACTERS_MAX) {
            error.field = error.field.chars().take(FIELD_CHARACTERS_MAX).chain(['…']).collect();
        }
        let detail = match errors.as_slice() {
            [one] if fields == 1 => format!("{}: {}", one.field, one.detail),
            _ => format!("{fields} fields are not valid; `errors` lists them"),
        };
        Self { errors, ..Self::new(Code::InvalidValue, detail) }
    }

    /// 422 for a raw text whose first ill-formed byte is at `at`.
    pub fn ill_formed(at: u64) -> Self {
        Self::invalid(
            "text",
            format!("is not valid UTF-8 at byte {at}; add ?invalid=replace to replace such bytes with U+FFFD"),
        )
    }

    /// 500. Only the log gets `cause`.
    pub fn internal(cause: &str) -> Self {
        tracing::error!(cause, "internal error");
        Self::new(Code::Internal, "an internal error happened; the server's log has its cause under this request's id")
    }

    /// Puts the fields inside `outer`: `signature` becomes `a.signature`.
    pub fn within(mut self, outer: &str) -> Self {
        for error in &mut self.errors {
            error.field = format!("{outer}.{}", error.field);
        }
        if let [one] = self.errors.as_slice() {
            self.detail = format!("{}: {}", one.field, one.detail);
        }
        self
    }

    /// Returns the approximate length of the problem's JSON, in bytes. Text that needs escapes may make it longer.
    pub fn json_bytes(&self) -> usize {
        let errors: usize = self.errors.iter().map(|error| error.field.len() + error.detail.len() + 32).sum();
        512 + self.detail.len() + errors
    }

    pub fn into_body(self, request_id: &str) -> ProblemBody {
        ProblemBody {
            r#type: format!("urn:hapax:problem:{}", self.code.as_str().replace('_', "-")),
            code: self.code.as_str(),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: self.detail,
            request_id: request_id.to_owned(),
            errors: self.errors,
            progress: self.progress,
            collections: self.collections,
        }
    }

    /// Writes the whole answer. `head` is the response that carried the problem; its other headers, such as `Allow`,
    /// are kept.
    pub fn render(self, mut head: Response, request_id: &str) -> Response {
        let headers = head.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.remove(axum::http::header::CONTENT_LENGTH);
        if let Some(after) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(retry_after::seconds(after)));
        }
        if self.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code == Code::UnsupportedMediaType {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd"));
        }
        *head.status_mut() = self.code.status();
        let body = serde_json::to_vec(&self.into_body(request_id)).expect("a problem is always JSON");
        *head.body_mut() = body.into();
        head
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::CollectionError;

    #[test]
    fn a_problem_names_its_type_code_status_and_fields() {
        let problem = Problem::invalid("threshold", "must be over 0").within("a");
        let json = serde_json::to_value(problem.into_body("r-1")).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "urn:hapax:problem:invalid-value",
                "code": "invalid_value",
                "title": "A value is not valid",
                "status": 422,
                "detail": "a.threshold: must be over 0",
                "request_id": "r-1",
                "errors": [{"field": "a.threshold", "detail": "must be over 0"}],
            })
        );
    }

    #[test]
    fn absent_fields_are_left_out() {
        let json = serde_json::to_value(Problem::new(Code::Starting, "x").into_body("")).unwrap();
        assert!(json.get("errors").is_none() && json.get("progress").is_none() && json.get("request_id").is_none());
    }

    #[test]
    fn retry_after_is_rounded_up_to_whole_seconds() {
        let problem = Problem { retry_after: Some(Duration::from_millis(1200)), ..Problem::new(Code::Overloaded, "x") };
        let response = problem.clone().render(problem.into_response(), "r");
        assert_eq!(response.headers()[RETRY_AFTER], "2");
    }

    #[test]
    fn the_inside_of_an_internal_error_stays_inside() {
        let problem = Problem::from(CollectionError::Store("table document: page 7".into()));
        assert!(!problem.detail.contains("page"));
    }
}
