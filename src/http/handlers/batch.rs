//! Many documents in one body.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use serde::Serialize;

use crate::http::answer::Pieces;
use crate::http::dto::document::too_many;
use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::{Problem, ProblemBody};
use crate::http::extract::{JsonText, Target, invalid, parse};
use crate::http::json::{self, Object};
use crate::http::layers::RequestId;
use crate::http::query::Query;
use crate::http::state::AppState;
use crate::http::work::{self, Answer, Input, Op, Work};

#[derive(Serialize)]
#[serde(untagged)]
enum BatchResult {
    Verdict(VerdictBody),
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
    Target(collection): Target,
    Extension(request_id): Extension<RequestId>,
    query: Query,
    body: JsonText,
) -> Result<Response, Problem> {
    let limits = *state.limits();
    let invalid = invalid(&query)?;
    let JsonText { text, when_full, room: mut body_room } = body;
    let bytes = text.len();
    let read = move || read(text, &query, limits.batch_documents_max);
    let (op, documents) = parse(state.cpu(), when_full, bytes, read).await?;
    body_room.fit(body_room.bytes() + op.shingle_bytes(&collection, bytes))?;
    let cpu = state.cpu().clone();
    // Beside the answers, ids and names of fields may come back as they were sent.
    let room = state.answer_room(bytes + documents.len() * op.answer_bytes_max())?;
    let work = Work {
        collection: collection.clone(),
        cpu,
        op,
        invalid,
        open_max: limits.bulk_open_max,
        answers_left: Some(Arc::new(AtomicUsize::new(room.json_bytes_max()))),
        places: None,
    };
    // Checks are made side by side before they are counted one after another: together they must not be longer either.
    let beside = if let Op::Check(_) = op { work::ahead().min(documents.len()).max(1) } else { 1 };
    let answer_bytes_max = room.json_bytes_max() / beside;
    let input = |json| Input { tag: (), json: Ok(json), room: None, answer_bytes_max, answer: None };
    let inputs = documents.into_iter().map(input);

    let (mut summary, mut results) = (Summary::default(), Pieces::default());
    let mut answers = std::pin::pin!(work.answers(futures::stream::iter(inputs)));
    while let Some(((), one, _)) = answers.next().await {
        let result = match one {
            Answer::Verdict(verdict) => {
                summary.verdict(&verdict);
                BatchResult::Verdict(VerdictBody::new(collection.name(), verdict))
            }
            Answer::Deleted { id, was_there } => {
                summary.deletion(was_there);
                BatchResult::Deleted { id: id.as_str().to_owned(), deleted: was_there.into() }
            }
            Answer::Failed { id, problem } => {
                summary.error();
                let id = id.map(|id| id.as_str().to_owned());
                BatchResult::Failed { id, error: problem.into_body(&request_id.0) }
            }
        };
        if !results.is_empty() {
            results.text(",");
        }
        results.json(&result);
    }
    results.text("]}");
    // The counts come first, so that errors are not overlooked.
    let mut front = Pieces::default();
    front.text("{\"summary\":");
    front.json(&summary);
    front.text(",\"results\":[");
    results.prepend(front);
    Ok(results.into_response(room))
}

/// The operation, and each document's own JSON.
fn read(text: String, query: &Query, max: usize) -> Result<(Op, Vec<Bytes>), Problem> {
    let text = Bytes::from(text);
    let mut object = Object::parse(std::str::from_utf8(&text).expect("it came from a String"))?;
    let op = object.string("op")?.ok_or_else(|| Problem::invalid("op", "is needed"))?;
    let raw = object.raw("documents").ok_or_else(|| Problem::invalid("documents", "is needed"))?;
    object.finish()?;
    let op = Op::new(&op, query)?;
    let documents = json::array("documents", raw)?;
    if documents.len() > max {
        return Err(too_many("documents", documents.len(), max));
    }
    Ok((op, documents.into_iter().map(|raw| text.slice_ref(raw.get().as_bytes())).collect()))
}
