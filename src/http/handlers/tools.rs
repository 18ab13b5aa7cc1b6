//! Answers about documents and bandings that store nothing.

use axum::Json;

use crate::http::dto::compare::{self, ComparisonBody};
use crate::http::dto::document::Signature;
use crate::http::dto::tune::{TuneBody, TuneInput};
use crate::http::error::Problem;
use crate::http::extract::{DocumentBody, JsonText, Target, parse};

/// `POST …/compare`
pub async fn compare(Target(collection): Target, body: JsonText) -> Result<Json<ComparisonBody>, Problem> {
    let JsonText { text, room: _room } = body;
    let (a, b) = parse(text.len(), move || compare::comparands(&text)).await?;
    Ok(Json(collection.compare(a, b).await?.into()))
}

/// `POST …/sign`
pub async fn sign(Target(collection): Target, body: DocumentBody) -> Result<Json<Signature>, Problem> {
    let DocumentBody { document, room: _room, .. } = body;
    let prepared = collection.prepare(document.content).await?;
    Ok(Json(Signature::new(prepared.signature(), prepared.shingles(), &collection.settings().spec)))
}

/// `POST /v1/tune`
pub async fn tune(body: JsonText) -> Result<Json<TuneBody>, Problem> {
    let input = TuneInput::parse(&body.text)?;
    // The search over bandings is arithmetic by the million.
    let chosen = tokio::task::spawn_blocking(move || input.choose()).await;
    Ok(Json(chosen.unwrap_or_else(|error| Err(Problem::internal(&error.to_string())))?))
}
