//! Refuses requests before anything is done for them: no route is looked up, no key is checked, no body is decoded.
//! Refusals must be cheap. If a refusal cost half as much as an answer, a server that gets twice as many requests as it
//! can answer would have no time left for answers. In: a request that has just arrived. Out: its refusal, or nothing.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, EXPECT};
use axum::http::{Request, Response, Version};
use hyper::body::Body as HttpBody;

use super::admission::Class;
use super::body::LONG_BYTES_MIN;
use super::error::Problem;
use super::leftover;
use super::observe;
use super::request_id;
use super::served::{ServedPath, UNMATCHED};
use super::state::AppState;
use crate::cpu::{CpuPool, Refused};

/// The refusals of one listener.
#[derive(Clone)]
pub(super) struct Early {
    state: AppState,
    /// The metrics of all refused requests have this path, because the requests are refused before their route is
    /// looked up.
    unmatched: Arc<ServedPath>,
}

impl Early {
    pub(super) fn new(state: &AppState) -> Self {
        Self { state: state.clone(), unmatched: Arc::new(ServedPath::new(UNMATCHED)) }
    }

    /// Returns the reason to refuse the request; `None` if it is not refused.
    pub(super) fn refusal<B: HttpBody>(&self, request: &Request<B>) -> Option<Problem> {
        if !judged_early(request.version()) || !is_single(request.uri().path()) {
            return None;
        }
        self.state.admission().of(Class::Single).arrive(|| judge_work(request, self.state.cpu())).err()
    }

    /// Reads and discards the body, so that the connection can be used again, and returns the answer.
    pub(super) async fn refused<B>(self, problem: Problem, request: Request<B>) -> Result<Response<Body>, Infallible>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        self.unmatched.meters(request.method()).count(problem.code.status());
        let id = request_id::of(&request);
        // A client that waits for `100 Continue` has not sent its body.
        if !request.headers().contains_key(EXPECT) && !request.body().is_end_stream() {
            leftover::discard(Body::new(request.into_body())).await;
        }
        Ok(observe::early_refusal(problem, &id))
    }
}

/// Returns an error if the pool for long work would refuse the work of this request. The pool is asked only if the body
/// is compressed, long, or of unknown length. Other requests are probably no work for the pool.
pub(super) fn judge_work<B: HttpBody>(request: &Request<B>, pool: &CpuPool) -> Result<(), Refused> {
    let long = request.body().size_hint().upper().is_none_or(|bytes| bytes > LONG_BYTES_MIN as u64);
    if long || request.headers().contains_key(CONTENT_ENCODING) { pool.judge() } else { Ok(()) }
}

/// Whether requests of this version are judged here. An HTTP/2 request is a task of its own, which waits for a thread
/// again. Its client may also leave even a short answer unread. So such a request is judged later, behind the layers
/// that handle both cases.
pub(super) fn judged_early(version: Version) -> bool {
    version < Version::HTTP_2
}

/// Whether this is the path of a route of [`Class::Single`].
fn is_single(path: &str) -> bool {
    let below = path.strip_prefix("/v1/collections/").and_then(|rest| rest.split_once('/'));
    ["/v1/dedup", "/v1/tune"].contains(&path) || below.is_some_and(|(_, rest)| !["bulk", "load"].contains(&rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::routes::ROUTES;

    #[test]
    fn paths_have_the_class_of_their_routes() {
        for route in ROUTES {
            let path = route.path.replace("{collection}", "pages");
            assert_eq!(is_single(&path), route.class() == Class::Single, "{path}");
        }
    }
}
