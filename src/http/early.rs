//! Refuses requests before anything is done for them: no route is looked up, no key is checked, no body is decoded. A
//! refusal that costs half as much as an answer would let twice the capacity stop the server. In: a request that has just
//! arrived. Out: its refusal, or nothing.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::EXPECT;
use axum::http::{Request, Response, Version};
use hyper::body::{Body as HttpBody, Incoming};

use super::admission::{Class, Places};
use super::error::Problem;
use super::leftover;
use super::observe;
use super::request_id::RequestId;
use super::state::AppState;

/// The refusals of one listener.
#[derive(Clone)]
pub(super) struct Early(Arc<Places>);

impl Early {
    pub(super) fn new(state: &AppState) -> Self {
        Self(Arc::clone(state.admission().of(Class::Single)))
    }

    /// Returns why the request is refused.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Problem> {
        (judged_early(request.version()) && is_single(request.uri().path())).then(|| self.0.arrive().err())?
    }
}

/// Whether requests of this version are judged here. Those of HTTP/2 are tasks of their own, which wait once more for a
/// thread, and clients may leave even short answers unread: they are judged behind the layers that look after that.
pub(super) fn judged_early(version: Version) -> bool {
    version < Version::HTTP_2
}

/// Whether this is the path of a route of [`Class::Single`].
fn is_single(path: &str) -> bool {
    let below = path.strip_prefix("/v1/collections/").and_then(|rest| rest.split_once('/'));
    below.is_some_and(|(_, rest)| rest != "bulk")
}

/// Reads and discards the body, so that the connection can go on, and returns the answer.
pub(super) async fn refused(problem: Problem, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (method, id) = (observe::method(request.method()), RequestId::of(&request));
    // A client that waits for `100 Continue` has sent nothing.
    if !request.headers().contains_key(EXPECT) && !request.body().is_end_stream() {
        leftover::discard(Body::new(request.into_body())).await;
    }
    Ok(observe::counted_refusal(problem, method, &id))
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
