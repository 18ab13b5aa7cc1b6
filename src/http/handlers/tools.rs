//! Handlers that store nothing: they compare, sign or extract documents, or choose a banding.

use axum::Json;
use axum::extract::State;

use super::pages::ENVELOPE_BYTES;
use super::passages;
use crate::collections::Purpose;
use crate::http::answer::{Answer, scarce};
use crate::http::caller::Caller;
use crate::http::dto::compare::{self, ComparisonBody};
use crate::http::dto::document::Signature;
use crate::http::dto::page::ExtractedBody;
use crate::http::dto::tune::{TuneBody, TuneInput};
use crate::http::error::Problem;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::{JsonText, PageInput, Subject, Target, parse};
use crate::http::state::AppState;
use crate::types::IndexKind;

/// `POST …/compare`
pub async fn compare(
    State(state): State<AppState>,
    caller: Caller,
    Target(collection): Target,
    quota: Quota,
    query: Query,
    body: JsonText,
) -> Result<Answer<ComparisonBody>, Problem> {
    let with_passages = query.choice("with", &[("none", false), ("passages", true)])?;
    let (text, when_full, mut room) = body.into_parts();
    room.fit(room.bytes() + collection.shingle_bytes(Purpose::Compare, text.len()))?;
    let (a, b) = parse(state.cpu(), when_full, text.len(), move || compare::comparands(&text, &caller)).await?;
    quota.take_documents(2)?;
    room.fit(room.bytes() + collection.bytes_to_compare([&a, &b]).await?)?;
    let texts = if with_passages { passages::texts(&collection, [&a, &b], when_full).await? } else { None };
    let comparison = collection.compare(a, b, when_full).await?;
    let Some(texts) = texts else {
        return Ok(Answer::new(ComparisonBody::new(comparison, None), state.answer_room(ENVELOPE_BYTES)?));
    };
    room.fit(room.bytes() + passages::bytes_to_find(&texts))?;
    let (found, answer_room) = passages::find(&state, &collection, texts).await?;
    Ok(Answer::new(ComparisonBody::new(comparison, Some(found)), answer_room))
}

/// `POST …/sign`
pub async fn sign(Target(collection): Target, subject: Subject) -> Result<Json<Signature>, Problem> {
    collection.require(IndexKind::Similarity)?;
    let ranks = subject.query.flag("ranks")?;
    let prepared = subject.content.prepare(&collection, Purpose::Sign, ranks).await?;
    Ok(Json(Signature::new(&prepared, &collection.settings().spec)))
}

/// `POST …/extract`
pub async fn extract(
    State(state): State<AppState>,
    Target(collection): Target,
    page: PageInput,
) -> Result<Answer<ExtractedBody>, Problem> {
    let PageInput { html, extract, when_full, room: _room } = page;
    let mut room = state.answer_room(ExtractedBody::bytes_max(html.markup.len()))?;
    let body = ExtractedBody::new(collection.extract(html, extract, when_full).await?);
    let (bytes, max) = (body.json_bytes(), state.whole_answer_bytes_max());
    if bytes > max {
        let detail = format!(
            "has a text that is too long: the answer would have {bytes} bytes, but may have at most {max}; raise \
             `server.answer_bytes_max` and `server.answers_bytes_max`"
        );
        return Err(Problem::invalid("html", detail));
    }
    if bytes > room.json_bytes_max() {
        return Err(scarce());
    }
    room.is_made(bytes);
    Ok(Answer::new(body, room))
}

/// `POST /v1/tune`
pub async fn tune(State(state): State<AppState>, body: JsonText) -> Result<Json<TuneBody>, Problem> {
    let when_full = body.when_full();
    let input = body.parse(&state, TuneInput::parse).await?;
    // This can take long: if no banding meets the targets, all bandings are tried to find the best values that can be
    // reached.
    let chosen = state.cpu().place(when_full).await?.run(move || input.choose()).await?;
    Ok(Json(chosen?))
}
