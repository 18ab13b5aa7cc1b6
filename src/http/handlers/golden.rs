//! Handlers of golden sets.

use axum::Json;
use axum::extract::State;

use crate::http::dto::golden::{self, GoldenBody};
use crate::http::error::Problem;
use crate::http::request::{JsonText, Target, parse};
use crate::http::state::AppState;

/// `PUT …/golden`
pub async fn put(
    State(state): State<AppState>,
    Target(collection): Target,
    body: JsonText,
) -> Result<Json<GoldenBody>, Problem> {
    // The memory for the body stays reserved until the pairs are stored.
    let (text, when_full, _room) = body.into_parts();
    let pairs = parse(state.cpu(), when_full, text.len(), move || golden::pairs(&text)).await?;
    let report = collection.set_golden(pairs).await?;
    Ok(Json(GoldenBody::new(collection.name().clone(), report)))
}

/// `GET …/golden`
pub async fn read(Target(collection): Target) -> Result<Json<GoldenBody>, Problem> {
    let report = collection.golden().await?;
    Ok(Json(GoldenBody::new(collection.name().clone(), report)))
}

/// `DELETE …/golden`
pub async fn remove(Target(collection): Target) -> Result<Json<GoldenBody>, Problem> {
    let report = collection.set_golden(Vec::new()).await?;
    Ok(Json(GoldenBody::new(collection.name().clone(), report)))
}
