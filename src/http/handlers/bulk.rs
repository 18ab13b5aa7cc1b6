//! The handler for a stream of documents.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::http::body;
use crate::http::caller::Caller;
use crate::http::error::{Code, Problem};
use crate::http::many::{self, Bulk, DocumentWork, Operation};
use crate::http::media_type::expect_lines;
use crate::http::options;
use crate::http::query::Query;
use crate::http::quota::Quota;
use crate::http::request::Targets;
use crate::http::request_id::RequestId;
use crate::http::state::AppState;

/// `POST …/bulk?op=`
pub async fn bulk(
    State(state): State<AppState>,
    caller: Caller,
    targets: Targets,
    RequestId(request_id): RequestId,
    query: Query,
    quota: Quota,
    request: Request,
) -> Result<Response, Problem> {
    let limits = *state.limits();
    let work = work(&state, caller, targets, &query)?;
    let duplex = query.flag("duplex")?;
    let (parts, body) = request.into_parts();
    let content_type = expect_lines(&parts.headers)?;
    let announced = body::announced(&parts.headers).filter(|_| !parts.headers.contains_key(CONTENT_ENCODING));
    let reader = body::decoded(&parts.headers, body)?;
    if !duplex && announced.is_some_and(|bytes| bytes > limits.bulk_body_bytes_max) {
        let detail = format!(
            "the body is longer than {} bytes (`server.bulk_body_bytes_max`); ?duplex=true lifts this limit",
            limits.bulk_body_bytes_max
        );
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let place = state.bulk_place()?;
    // The request may last for hours, so the memory of its decoder is counted from the start.
    let window = state.budget().window(body::window_bytes(&parts.headers))?;
    let bulk = Bulk { work, duplex, request_id, place, window, quota };
    let answers: Body = many::start(bulk, &state, reader);
    // Tells proxies to pass lines on as they arrive.
    let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-store, no-transform")];
    Ok((headers, [("x-accel-buffering", "no")], answers).into_response())
}

/// Returns the work on the documents of a stream with these parameters.
pub(in crate::http) fn work(
    state: &AppState,
    caller: Caller,
    Targets { own: collection, others }: Targets,
    query: &Query,
) -> Result<DocumentWork, Problem> {
    let op = query.get("op").ok_or_else(|| Problem::invalid("op", "is required: check, insert or delete"))?;
    let op = Operation::new(op, query, &caller)?;
    let (invalid, extra) = (options::invalid(query)?, options::extra(query)?);
    // The lookups of a line are counted against the client's limits when the line is read. So the count here is 0.
    let asked = others.asked(&collection, 0);
    Ok(DocumentWork::of_stream(state, caller, collection, op, invalid).with_extra(extra).asking(state, asked))
}
