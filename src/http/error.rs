//! An error -> an RFC 9457 `application/problem+json` answer.
//! Only this file assigns statuses to errors. Every [`Code`] has one status. `problem_of.rs` gives every error of the
//! modules below its `Code`. Handlers set success statuses other than 200; `routes.rs` lists the statuses that each
//! route may answer with. A problem must never contain a document's text, a key, or the cause of an internal error.

use std::time::Duration;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::types::retry_after;

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const FULL: StatusCode = StatusCode::INSUFFICIENT_STORAGE;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const INTERNAL: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
const ABSENT: StatusCode = StatusCode::NOT_IMPLEMENTED;

/// The stable name of a problem. Clients branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The body is not JSON.
    MalformedJson,
    /// The body ended early, or its compressed data is invalid.
    MalformedBody,
    /// The API key is missing or wrong.
    Unauthorized,
    /// The API key does not allow the request.
    Forbidden,
    /// The server has no API key, and the request comes from a page of another site or names a foreign host.
    ForeignRequest,
    /// The collection `default` cannot be dropped.
    DefaultStays,
    /// No directory for backups is configured.
    BackupsOff,
    /// Another backup is running.
    BackupRunning,
    /// A backup of this name exists.
    BackupExists,
    RouteNotFound,
    CollectionNotFound,
    DocumentNotFound,
    JobNotFound,
    /// The path supports other methods.
    MethodNotAllowed,
    /// The body arrived too slowly.
    RequestTimeout,
    /// The id is stored with other content.
    IdConflict,
    /// The spec or the key does not match the collection's.
    SpecMismatch,
    /// The collection finds documents in another way than the request needs.
    WrongIndex,
    /// The collection exists. Its settings differ from those of the request, or the request is a load.
    CollectionExists,
    /// The settings of the two collections differ, or a merge of them with other options is running.
    NotMergeable,
    /// A limit on bytes, lines or documents was exceeded.
    TooLarge,
    /// The content type or encoding is not supported.
    UnsupportedMediaType,
    /// A field or a parameter has an invalid value.
    InvalidValue,
    /// The maximum number of collections is reached.
    TooManyCollections,
    /// The client has reached one of its own limits.
    RateLimited,
    /// A bug, or a disk error whose details are only for the log.
    Internal,
    /// The collection's file is damaged.
    CollectionDamaged,
    /// The disk refused the write.
    WriteFailed,
    /// The kind of store that the server uses does not have the operation.
    NotInThisStore,
    /// The cluster that has the documents did not answer.
    StoreUnavailable,
    /// The cluster may have taken the write.
    Uncertain,
    /// The collections are being opened.
    Starting,
    /// The server is shutting down.
    ShuttingDown,
    /// Too much work or memory in use.
    Overloaded,
    /// The client did not read its answers.
    Stalled,
    /// The disk is full.
    StorageFull,
    /// The memory budget is used up.
    MemoryBudgetReached,
    /// A limit on the labels of documents is reached.
    LabelsFull,
    /// The limit on the documents of one source is reached.
    SourceFull,
}

impl Code {
    pub const ALL: &[Self] = &[
        Self::MalformedJson,
        Self::MalformedBody,
        Self::Unauthorized,
        Self::Forbidden,
        Self::ForeignRequest,
        Self::DefaultStays,
        Self::BackupsOff,
        Self::BackupRunning,
        Self::BackupExists,
        Self::RouteNotFound,
        Self::CollectionNotFound,
        Self::DocumentNotFound,
        Self::JobNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::IdConflict,
        Self::SpecMismatch,
        Self::WrongIndex,
        Self::CollectionExists,
        Self::NotMergeable,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidValue,
        Self::TooManyCollections,
        Self::RateLimited,
        Self::Internal,
        Self::CollectionDamaged,
        Self::WriteFailed,
        Self::NotInThisStore,
        Self::StoreUnavailable,
        Self::Uncertain,
        Self::Starting,
        Self::ShuttingDown,
        Self::Overloaded,
        Self::Stalled,
        Self::StorageFull,
        Self::MemoryBudgetReached,
        Self::LabelsFull,
        Self::SourceFull,
    ];

    /// The name in the JSON.
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    pub fn status(self) -> StatusCode {
        self.row().1
    }

    /// A sentence for people, the same for all problems of this code.
    pub fn title(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::MalformedJson => ("malformed_json", StatusCode::BAD_REQUEST, "The body is not well-formed JSON"),
            Self::MalformedBody => ("malformed_body", StatusCode::BAD_REQUEST, "The body could not be read"),
            Self::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED, "A valid API key is required"),
            Self::Forbidden => ("forbidden", StatusCode::FORBIDDEN, "The API key does not allow this"),
            Self::ForeignRequest => (
                "foreign_request",
                StatusCode::FORBIDDEN,
                "Without an API key, requests from other sites and host names are refused",
            ),
            Self::DefaultStays => ("default_stays", StatusCode::FORBIDDEN, "The default collection cannot be dropped"),
            Self::BackupsOff => ("backups_off", StatusCode::FORBIDDEN, "This server has no directory for backups"),
            Self::BackupRunning => ("backup_running", CONFLICT, "Another backup is running"),
            Self::BackupExists => ("backup_exists", CONFLICT, "A backup with this name already exists"),
            Self::RouteNotFound => ("route_not_found", StatusCode::NOT_FOUND, "There is no such path"),
            Self::CollectionNotFound => ("collection_not_found", StatusCode::NOT_FOUND, "There is no such collection"),
            Self::DocumentNotFound => ("document_not_found", StatusCode::NOT_FOUND, "There is no such document"),
            Self::JobNotFound => ("job_not_found", StatusCode::NOT_FOUND, "There is no such job"),
            Self::MethodNotAllowed => {
                ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "This path does not support the method")
            }
            Self::RequestTimeout => {
                ("request_timeout", StatusCode::REQUEST_TIMEOUT, "The request did not arrive in time")
            }
            Self::IdConflict => ("id_conflict", CONFLICT, "The id is stored with other content"),
            Self::SpecMismatch => ("spec_mismatch", CONFLICT, "The spec or the key does not match the collection"),
            Self::WrongIndex => ("wrong_index", CONFLICT, "The collection finds documents in another way"),
            Self::CollectionExists => ("collection_exists", CONFLICT, "The collection already exists"),
            Self::NotMergeable => ("not_mergeable", CONFLICT, "The merge cannot begin"),
            Self::TooLarge => ("too_large", StatusCode::PAYLOAD_TOO_LARGE, "A size limit was exceeded"),
            Self::UnsupportedMediaType => (
                "unsupported_media_type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "This content type or encoding is not accepted",
            ),
            Self::InvalidValue => ("invalid_value", StatusCode::UNPROCESSABLE_ENTITY, "A value is not valid"),
            Self::TooManyCollections => {
                ("too_many_collections", StatusCode::TOO_MANY_REQUESTS, "The maximum number of collections is reached")
            }
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS, "A limit of the client is reached"),
            Self::Internal => ("internal", INTERNAL, "An internal error happened in the server"),
            Self::CollectionDamaged => ("collection_damaged", INTERNAL, "The collection's file is damaged"),
            Self::WriteFailed => ("write_failed", UNAVAILABLE, "The write could not be made durable"),
            Self::NotInThisStore => ("not_in_this_store", ABSENT, "This kind of store does not have the operation"),
            Self::StoreUnavailable => {
                ("store_unavailable", UNAVAILABLE, "The cluster that has the documents did not answer")
            }
            Self::Uncertain => ("uncertain", UNAVAILABLE, "The write may have been stored; send it again"),
            Self::Starting => ("starting", UNAVAILABLE, "The server is starting"),
            Self::ShuttingDown => ("shutting_down", UNAVAILABLE, "The server is shutting down"),
            Self::Overloaded => ("overloaded", UNAVAILABLE, "The server is overloaded"),
            Self::Stalled => ("stalled", StatusCode::REQUEST_TIMEOUT, "The stream made no progress"),
            Self::StorageFull => ("storage_full", FULL, "The disk is full"),
            Self::MemoryBudgetReached => ("memory_budget_reached", FULL, "The memory budget is used up"),
            Self::LabelsFull => ("labels_full", FULL, "The collection has too many labels or sets of labels"),
            Self::SourceFull => ("source_full", FULL, "A source has too many documents"),
        }
    }
}

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
