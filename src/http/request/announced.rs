//! The parts of a document request that arrive before the body.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use bytes::Bytes;

use super::parsing::utf8;
use crate::collections::Attached;
use crate::http::caller::Caller;
use crate::http::dto::capture;
use crate::http::dto::document::{self, DocumentInput, Invalid};
use crate::http::error::Problem;
use crate::http::media_type::{PageType, expect, page};
use crate::http::options;
use crate::http::query::Query;
use crate::http::state::AppState;
use crate::types::{Capture, DocId};

/// The form of a body.
pub(super) enum Form {
    Json,
    /// A raw text.
    Text,
    /// A raw page.
    Page(PageType),
}

/// The parts of a document request that arrive before the body.
pub(super) struct Announced {
    pub(super) form: Form,
    pub(super) id: Option<DocId>,
    /// The capture of the document, if the body is raw.
    pub(super) capture: Capture,
    pub(super) invalid: Invalid,
    pub(super) query: Query,
}

impl Form {
    /// Returns how ill-formed bytes of a raw body are treated, or `None` for JSON.
    pub(super) fn raw(&self, invalid: Invalid) -> Option<Invalid> {
        match self {
            Self::Json => None,
            Self::Text => Some(invalid),
            // A byte of another charset can become three bytes of UTF-8.
            Self::Page(_) => Some(Invalid::Replace),
        }
    }

    /// Makes a document from a whole body. `id` and `capture` are from the query.
    pub(super) fn document(
        self,
        bytes: Bytes,
        (id, capture): (Option<DocId>, Capture),
        invalid: Invalid,
        caller: &Caller,
    ) -> Result<DocumentInput, Problem> {
        let document = match self {
            Self::Json => return document::from_json(utf8(&bytes)?, invalid, caller),
            Self::Text => document::from_raw(id, bytes.into(), invalid)?,
            Self::Page(PageType { syntax, charset }) => document::from_page(id, &bytes, charset.as_deref(), syntax),
        };
        Ok(DocumentInput { attached: Attached { capture, ..document.attached }, ..document })
    }
}

impl Announced {
    pub(super) async fn of(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await?;
        let form = match page(&parts.headers) {
            Some(page) => Form::Page(page),
            None => match expect(&parts.headers, &["application/json", "text/plain", "text/html"])? {
                "text/plain" => Form::Text,
                _ => Form::Json,
            },
        };
        let id = query.id()?;
        let invalid = options::invalid(&query)?;
        let capture = capture::capture(query.get("date"), query.get("payload_digest"))?;
        let of_raw = ["id", "date", "payload_digest"].into_iter().find(|name| query.get(name).is_some());
        if let (Some(name), Form::Json) = (of_raw, &form) {
            return Err(Problem::invalid(
                name,
                "must be a field of the JSON document; the query parameter is for raw texts and pages only",
            ));
        }
        Ok(Self { form, id, capture, invalid, query })
    }
}
