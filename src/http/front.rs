//! The one layer around all handlers. It does everything that every request needs: id, metrics, access check, limits,
//! admission, panics, compression. A separate layer for each task would clone the handler and box its answer each time.
//! In: requests that the router has matched. Out: answers.

use std::convert::Infallible;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::body::Body as _;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use super::answer::Answers;
use super::authentication;
use super::client_address;
use super::kept_body::Keeping;
use super::limiting;
use super::observe;
use super::pace::PacedBody;
use super::route_checks;
use super::routes::Route;
use super::served::Served;
use super::state::AppState;

/// Shorter answers are not compressed. An encoder takes more memory than such an answer, and more time than it saves.
const ENCODED_BYTES_MIN: u64 = 1024;

/// The layer around all handlers.
#[derive(Clone)]
pub(super) struct Front {
    state: AppState,
    served: Arc<Served>,
    /// Whether paths without a route are answered without a key. Such an answer must reveal nothing.
    others_are_open: bool,
}

/// A handler behind the layer.
#[derive(Clone)]
pub(super) struct Fronted<S> {
    front: Front,
    /// Shared, because axum clones this service for each request, and cloning a handler allocates a box.
    handler: Arc<S>,
}

impl Front {
    pub(super) fn new(state: &AppState, served: Served, others_are_open: bool) -> Self {
        Self { state: state.clone(), served: Arc::new(served), others_are_open }
    }

    async fn answer<S: Handler>(self, request: Request, handler: S) -> Response {
        let Self { state, served, others_are_open } = self;
        let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let path = served.path(matched);
        let (route, open) = (path.route(request.method()), others_are_open && matched.is_none());
        let answer = |request: Request| {
            let (encodings, state) = (Encodings::of(&request), &state);
            let answered = async move {
                match open {
                    true => call(handler, request).await,
                    false => let_in(state, route, request, handler).await,
                }
            };
            AssertUnwindSafe(answered).catch_unwind().then(|answer| {
                let answer = answer.unwrap_or_else(observe::panicked).map(PacedBody::of);
                let streams = route.is_some_and(|route| route.streams);
                encodings.encode(answer, if streams { state.bulk_answers() } else { state.answers() })
            })
        };
        observe::observe(state.limits(), path, request, answer).await
    }
}

/// A service that the router calls for a request.
pub(super) trait Handler:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Handler for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Layer<S> for Front {
    type Service = Fronted<S>;

    fn layer(&self, handler: S) -> Fronted<S> {
        Fronted { front: self.clone(), handler: Arc::new(handler) }
    }
}

impl<S: Handler> Service<Request> for Fronted<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // `call` waits until the handler is ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let front = self.front.clone();
        // The box is allocated first, so that the compiler can build the future directly in it. The future has a few
        // thousand bytes.
        let answer = Box::write(Box::new_uninit(), front.answer(request, S::clone(&self.handler)).map(Ok));
        Box::into_pin(answer)
    }
}

async fn call<S: Handler>(handler: S, request: Request) -> Response {
    let Ok(answer) = handler.oneshot(request).await;
    answer
}

/// Answers the request if it may come in.
async fn let_in<S: Handler>(state: &AppState, route: Option<&'static Route>, request: Request, handler: S) -> Response {
    client_address::look_behind_proxies(state, &request);
    if let Err(problem) = authentication::refuse_foreign(state, &request) {
        return problem.into_response();
    }
    match state.access().cors() {
        None => ask(state, route, request, handler).await,
        // The layer runs before the key is checked: a preflight request has no key, and a page must be able to read the
        // answer that a key is required.
        Some(cors) => {
            let ask = service_fn(|request| ask(state, route, request, handler.clone()).map(Ok::<_, Infallible>));
            let Ok(answer) = Box::pin(cors.layer(ask).oneshot(request)).await;
            answer
        }
    }
}

/// Checks the key, enforces the client's limits, and answers.
async fn ask<S: Handler>(
    state: &AppState,
    route: Option<&'static Route>,
    mut request: Request,
    handler: S,
) -> Response {
    if let Err((reason, problem)) = authentication::ask_key(state, &mut request) {
        return limiting::refused(state, &request, reason, problem);
    }
    let held = match limiting::begin(state, &mut request) {
        Ok(held) => held,
        Err(refusal) => return *refusal,
    };
    let answer = match route {
        Some(route) => route_checks::admit(state, route, request, |request| call(handler, request)).await,
        None => call(handler, request).await,
    };
    limiting::end(held, answer)
}

/// The encodings that an answer may have.
enum Encodings {
    /// No encoding. The answer does not depend on the headers of the request.
    Plain,
    /// The encodings that these header fields of the request accept.
    Accepted(HeaderMap),
}

impl Encodings {
    fn of(request: &Request) -> Self {
        let headers = request.headers();
        // Caches store only answers to these methods. A cache must know that such an answer depends on
        // `Accept-Encoding`.
        let kept = matches!(*request.method(), Method::GET | Method::HEAD);
        match kept || headers.contains_key(ACCEPT_ENCODING) {
            false => Self::Plain,
            true => {
                let accepted = headers.get_all(ACCEPT_ENCODING).iter();
                Self::Accepted(accepted.map(|value| (ACCEPT_ENCODING, value.clone())).collect())
            }
        }
    }

    /// Encodes an answer that is long enough, if there is memory for an encoder.
    async fn encode(self, mut answer: Response, memory: &Answers) -> Response {
        let Self::Accepted(fields) = self else { return answer };
        let is_short = answer.body().size_hint().upper().is_some_and(|bytes| bytes < ENCODED_BYTES_MIN);
        let room = if is_short || fields.is_empty() { None } else { memory.encoder() };
        let Some(room) = room else {
            answer.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
            return answer;
        };
        let mut request = axum::http::Request::new(());
        *request.headers_mut() = fields;
        let mut answer = Some(answer);
        let made = service_fn(|_: axum::http::Request<()>| {
            ready(Ok::<_, Infallible>(answer.take().expect("a request is answered once")))
        });
        // At this level the memory of the encoder does not grow with the answer.
        let compression = CompressionLayer::new().gzip(true).zstd(true).quality(CompressionLevel::Fastest);
        let Ok(encoded) = Box::pin(compression.layer(made).oneshot(request)).await;
        // A client that accepts neither encoding gets the answer as it is.
        match encoded.headers().contains_key(CONTENT_ENCODING) {
            true => encoded.map(Body::new).map(PacedBody::encoded).map(|body| Body::new(Keeping::new(body, room))),
            false => encoded.map(Body::new),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::MethodRouter;

    use super::*;
    use crate::collections::Settings;
    use crate::config::HttpLimits;
    use crate::corpus::SearchLimits;
    use crate::cpu::{CpuConfig, CpuPool};
    use crate::http::boot::Boot;
    use crate::http::foreign::Access;
    use crate::http::required_scopes::Requires;
    use crate::http::state::{Defaults, Wiring};
    use crate::keys::KeyRing;

    static ROUTE: Route = Route {
        method: Method::GET,
        path: "/test",
        query: &[],
        requires: Requires::Nothing,
        statuses: &[500, 503],
        streams: false,
        unbounded: false,
        coarse: false,
        handler: MethodRouter::new,
    };

    /// Returns the status and the problem with which the handler of `/test` answers.
    pub(crate) async fn answered(handler: MethodRouter, limits: HttpLimits) -> (StatusCode, serde_json::Value) {
        let spec = hapax_core::Spec::default();
        let banding = hapax_core::tuning::default_banding(spec.shape(), 0.8);
        let state = AppState::new(Wiring {
            boot: Boot::new(),
            limits,
            keys: KeyRing::open(),
            access: Access::default(),
            addresses: crate::config::Addresses::default(),
            metrics: Arc::new(String::new),
            memory: Arc::default(),
            cpu: CpuPool::new(CpuConfig { threads: 1, queue_max: 1, queue_delay_max: Duration::ZERO }),
            stream_threads: Some(1),
            defaults: Defaults {
                settings: Settings::new(spec, banding, 0.8),
                secret_fingerprint: None,
                search_limits: SearchLimits { bucket_read_max: 1, candidates_max: 1 },
            },
            audit: None,
            console: false,
        });
        let front = Front::new(&state, Served::new([&ROUTE].into_iter(), [].into_iter()), false);
        let router = axum::Router::new().route(ROUTE.path, handler).layer(front);
        let request = Request::builder().uri("/test").header("host", "localhost").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}
