//! Reads a request's whole body, and then takes the request's place among the concurrent requests.

use axum::body::Body;
use axum::http::request::Parts;

use crate::http::body::{self, Whole};
use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::http::notes::Notes;
use crate::http::quota::Quota;
use crate::http::state::AppState;

/// Returns the notes on a request.
pub(super) fn notes(parts: &Parts) -> &Notes {
    Notes::of(&parts.extensions).expect("the layer around all routes has attached them")
}

/// Waits for the body, and then takes the request's place.
pub(super) async fn read(parts: &Parts, body: Body, raw: Option<Invalid>, state: &AppState) -> Result<Whole, Problem> {
    let (notes, mut arriving) = (notes(parts), Quota::of(&parts.extensions).arriving());
    let (limits, budget) = (state.limits(), state.budget());
    let whole = body::whole(&parts.headers, body, limits, budget, notes.deadline(), &mut arriving, state.cpu());
    let mut whole = whole.await?;
    arriving.take()?;
    notes.turn().take()?;
    // The memory must hold the body together with the parsed value.
    let bytes = match raw {
        Some(invalid) => body::text_bytes(whole.bytes.len(), invalid),
        None => body::json_bytes(&whole.bytes).await,
    };
    whole.room.fit(bytes)?;
    Ok(whole)
}
