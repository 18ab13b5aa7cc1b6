//! The handler for many documents in one body.

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde::Serialize;

use crate::collections::Collection;
use crate::http::answer::Pieces;
use crate::http::caller::Caller;
use crate::http::dto::document::too_many;
use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::{VerdictBody, text};
use crate::http::error::{Problem, ProblemBody};
use crate::http::json::{self, Object};
use crate::http::many::{DocumentAnswer, DocumentWork, Input, Operation};
use crate::http::options;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::{BatchText, Targets, parse};
use crate::http::request_id::RequestId;
use crate::http::state::AppState;
use crate::keys::Scores;

#[derive(Serialize)]
#[serde(untagged)]
enum BatchResult {
    Deleted {
        id: String,
        deleted: u64,
    },
    Failed {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        error: ProblemBody,
    },
}

/// `POST …/batch`
pub async fn batch(
    State(state): State<AppState>,
    caller: Caller,
    Targets { own: collection, others }: Targets,
    RequestId(request_id): RequestId,
    query: Query,
    quota: Quota,
    BatchText(body): BatchText,
) -> Result<Response, Problem> {
    let documents_max = state.limits().batch_documents_max;
    let invalid = options::invalid(&query)?;
    let (text, when_full, mut body_room) = body.into_parts();
    let bytes = text.len();
    let of = caller.clone();
    let _place = state.admission().batches().enter().await?;
    let read = move || read(text, &query, &of, documents_max);
    let (op, documents) = parse(state.cpu(), when_full, bytes, read).await?;
    quota.take_documents(documents.len())?;
    let asked = others.asked(&collection, documents.len());
    body_room.fit(body_room.bytes() + op.shingle_bytes(&collection, asked.as_ref(), bytes))?;
    // Reserves memory for the answers. They may repeat ids and field names as the client sent them.
    let room = state.answer_room(bytes + documents.len() * op.answer_bytes_max(asked.as_ref()))?;
    let work = DocumentWork::of_request(&state, caller, collection.clone(), op, invalid, room.json_bytes_max());
    let work = work.asking(&state, asked);
    // The answers of concurrent documents are counted only later, one after another. So each of these documents gets an
    // equal part of the limit.
    let beside = work.at_once().min(documents.len()).max(1);
    let answer_bytes_max = room.json_bytes_max() / beside;
    let input = |json| Input { tag: (), json: Ok(json), room: None, answer_bytes_max, answer: None };
    let inputs = documents.into_iter().map(input);

    let scores = work.scores();
    let answers = work.answers(futures::stream::iter(inputs)).map(|((), answer, _)| answer);
    Ok(results(&collection, scores, &request_id, answers).await.into_response(room))
}

/// Builds the answer from the result of each document, and counts the results.
async fn results(
    collection: &Collection,
    scores: Scores,
    request_id: &str,
    answers: impl Stream<Item = DocumentAnswer> + Send,
) -> Pieces {
    let (mut summary, mut results) = (Summary::default(), Pieces::default());
    let mut answers = std::pin::pin!(answers);
    while let Some(one) = answers.next().await {
        if !results.is_empty() {
            results.text(",");
        }
        match one {
            DocumentAnswer::Verdict(verdict) => {
                summary.verdict(verdict.verdict());
                let body = VerdictBody::joint(collection.name(), verdict, || request_id.to_owned());
                text::write(&body.seen_with(scores), &mut results).expect("memory takes everything");
            }
            DocumentAnswer::Deleted { id, was_there } => {
                summary.deletion(was_there);
                results.json(&BatchResult::Deleted { id: id.as_str().to_owned(), deleted: was_there.into() });
            }
            DocumentAnswer::Failed { id, problem } => {
                summary.error();
                let id = id.map(|id| id.as_str().to_owned());
                results.json(&BatchResult::Failed { id, error: problem.into_body(request_id) });
            }
        }
    }
    results.text("]}");
    // The counts come first, so that a client sees at once whether there were errors.
    let mut front = Pieces::default();
    front.text("{\"summary\":");
    front.json(&summary);
    front.text(",\"results\":[");
    results.prepend(front);
    results
}

/// Returns the operation, and the JSON of each document.
fn read(text: String, query: &Query, caller: &Caller, max: usize) -> Result<(Operation, Vec<Bytes>), Problem> {
    let text = Bytes::from(text);
    let mut object = Object::parse(std::str::from_utf8(&text).expect("it came from a String"))?;
    let op = object.string("op")?.ok_or_else(|| Problem::invalid("op", "is required: check, insert or delete"))?;
    let raw = object.raw("documents").ok_or_else(|| Problem::invalid("documents", "is required"))?;
    object.finish()?;
    let op = Operation::new(&op, query, caller)?;
    let documents = json::array("documents", raw)?;
    if documents.len() > max {
        return Err(too_many("documents", documents.len(), max));
    }
    Ok((op, documents.into_iter().map(|raw| text.slice_ref(raw.get().as_bytes())).collect()))
}
