//! The parts of a document request that come before the body.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::http::media_type::expect;
use crate::http::options;
use crate::http::query::Query;
use crate::http::state::AppState;
use crate::types::DocId;

/// The parts of a document request that come before the body.
pub(super) struct Announced {
    /// Whether the body is a raw text and not JSON.
    pub(super) raw: bool,
    pub(super) id: Option<DocId>,
    pub(super) invalid: Invalid,
    pub(super) query: Query,
}

impl Announced {
    pub(super) async fn of(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await?;
        let essence = expect(&parts.headers, &["application/json", "text/plain"])?;
        let id = query.id()?;
        let invalid = options::invalid(&query)?;
        let raw = essence == "text/plain";
        if !raw && id.is_some() {
            return Err(Problem::invalid(
                "id",
                "must be a field of the JSON document; the query parameter is for raw texts only",
            ));
        }
        Ok(Self { raw, id, invalid, query })
    }
}
