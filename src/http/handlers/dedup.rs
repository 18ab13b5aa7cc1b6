//! The handler that deduplicates a list. It reads and changes no collection.

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;

use crate::corpus::CorpusSigner;
use crate::http::answer::{Pieces, scarce};
use crate::http::caller::Caller;
use crate::http::dto::list::{ListBody, ListInput};
use crate::http::error::Problem;
use crate::http::many::List;
use crate::http::options;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::{BatchText, parse};
use crate::http::request_id::RequestId;
use crate::http::state::AppState;

/// `POST /v1/dedup`
pub async fn dedup(
    State(state): State<AppState>,
    caller: Caller,
    RequestId(request_id): RequestId,
    query: Query,
    quota: Quota,
    BatchText(body): BatchText,
) -> Result<Response, Problem> {
    let reading = (options::invalid(&query)?, options::extra(&query)?);
    let (text, when_full, mut body_room) = body.into_parts();
    let bytes = text.len();
    let _place = state.admission().batches().enter().await?;
    let (text, defaults, secret) = (Bytes::from(text), state.default_settings().clone(), state.secret_fingerprint());
    let documents_max = state.limits().batch_documents_max;
    let read = move || ListInput::parse(&text, (&defaults, secret), documents_max);
    let input = parse(state.cpu(), when_full, bytes, read).await?;
    let documents = input.documents.len();
    quota.take_documents(documents)?;
    let signer = CorpusSigner::new(input.settings.clone(), None, state.cpu().clone());
    let signer = signer.map_err(|error| Problem::from(error).within("settings"))?;
    body_room.fit(body_room.bytes() + documents * signer.bytes_each() + signer.shingle_bytes(bytes))?;
    let room = state.answer_room(ListBody::bytes_max(documents, bytes))?;
    let sender = (caller, request_id.to_string());
    let list = List::new(input, signer, sender, reading, state.search_limits());
    let body = state.cpu().place(when_full).await?.run_uncut(bytes, move || list.deduplicate()).await??;
    let mut answer = Pieces::default();
    answer.json(&body);
    if answer.bytes() > room.json_bytes_max() {
        return Err(scarce());
    }
    Ok(answer.into_response(room))
}
