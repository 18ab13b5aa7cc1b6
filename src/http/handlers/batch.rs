//! Many documents in one body.

use axum::extract::State;
use axum::{Extension, Json};
use bytes::Bytes;
use futures::StreamExt;
use serde::Serialize;

use crate::http::dto::document::too_many;
use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::{Problem, ProblemBody};
use crate::http::extract::{JsonText, Target, invalid, parse};
use crate::http::json::{self, Object};
use crate::http::layers::RequestId;
use crate::http::query::Query;
use crate::http::state::AppState;
use crate::http::work::{Answer, Input, Op, Work};

/// What became of a batch: the counts first, so that errors are not overlooked.
#[derive(Serialize)]
pub struct BatchAnswer {
    summary: Summary,
    results: Vec<BatchResult>,
}

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
) -> Result<Json<BatchAnswer>, Problem> {
    let limits = *state.limits();
    let invalid = invalid(&query)?;
    let JsonText { text, when_full, room: _room } = body;
    let bytes = text.len();
    let read = move || read(text, &query, limits.batch_documents_max);
    let (op, documents) = parse(state.cpu(), when_full, bytes, read).await?;
    let cpu = state.cpu().clone();
    let work = Work { collection: collection.clone(), cpu, op, invalid, open_max: limits.bulk_open_max, places: None };
    let inputs = documents.into_iter().map(|json| Input { tag: (), json: Ok(json), room: None });

    let mut answer = BatchAnswer { summary: Summary::default(), results: Vec::new() };
    let mut answers = std::pin::pin!(work.answers(futures::stream::iter(inputs)));
    while let Some(((), one)) = answers.next().await {
        answer.results.push(match one {
            Answer::Verdict(verdict) => {
                answer.summary.verdict(&verdict);
                BatchResult::Verdict(VerdictBody::new(collection.name(), verdict))
            }
            Answer::Deleted { id, was_there } => {
                answer.summary.deletion(was_there);
                BatchResult::Deleted { id: id.as_str().to_owned(), deleted: was_there.into() }
            }
            Answer::Failed { id, problem } => {
                answer.summary.error();
                let id = id.map(|id| id.as_str().to_owned());
                BatchResult::Failed { id, error: problem.into_body(&request_id.0) }
            }
        });
    }
    Ok(Json(answer))
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
