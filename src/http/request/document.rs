//! The body of a request that stores one document.

use axum::extract::{FromRequest, Request};

use super::announced::Announced;
use super::parsing::{after_parsing, parse};
use super::reading::read;
use crate::cpu::WhenFull;
use crate::http::body::{Room, Whole};
use crate::http::dto::document::DocumentInput;
use crate::http::error::Problem;
use crate::http::notes::caller_of;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::state::AppState;

/// One document: JSON, or a raw text or page with its id in the query.
pub struct DocumentBody {
    pub document: DocumentInput,
    pub query: Query,
    /// Whether the work on the document waits if the pool is full.
    pub when_full: WhenFull,
    /// The memory reserved for the document's text; given back when the request is over.
    pub(crate) room: Room,
}

impl FromRequest<AppState> for DocumentBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Announced { form, id, capture, invalid, query } = Announced::of(&mut parts, state).await?;
        let caller = caller_of(&parts.extensions).clone();
        let Whole { bytes, room } = read(&parts, body, form.raw(invalid), state).await?;
        Quota::of(&parts.extensions).take_documents(1)?;
        let len = bytes.len();
        let read = move || form.document(bytes, (id, capture), invalid, &caller);
        let document = parse(state.cpu(), WhenFull::Refuse, len, read).await?;
        Ok(Self { document, query, when_full: after_parsing(len), room })
    }
}
