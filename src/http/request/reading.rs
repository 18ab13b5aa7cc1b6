//! Reads a request's whole body, and then takes the request's place among the concurrent ones.

use axum::body::Body;
use axum::http::request::Parts;

use crate::http::body::{self, Whole};
use crate::http::deadline::Deadline;
use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::http::quota::Quota;
use crate::http::state::AppState;
use crate::http::turn::Turn;

/// Returns a value that the route's own layer attached to the request.
pub(super) fn own<T: Clone + Send + Sync + 'static>(parts: &Parts) -> T {
    parts.extensions.get::<T>().expect("the route's own layer has set it").clone()
}

/// Waits for the body, and then takes the request's place.
pub(super) async fn read(parts: &Parts, body: Body, raw: Option<Invalid>, state: &AppState) -> Result<Whole, Problem> {
    let (deadline, mut arriving) = (own::<Deadline>(parts), Quota::of(&parts.extensions).arriving());
    let (limits, budget) = (state.limits(), state.budget());
    let whole = body::whole(&parts.headers, body, limits, budget, &deadline, &mut arriving, state.cpu());
    let mut whole = whole.await?;
    arriving.take()?;
    own::<Turn>(parts).take()?;
    // The parsed value is in memory together with the body.
    let bytes = match raw {
        Some(invalid) => body::text_bytes(whole.bytes.len(), invalid),
        None => body::json_bytes(&whole.bytes).await,
    };
    whole.room.fit(bytes)?;
    Ok(whole)
}
