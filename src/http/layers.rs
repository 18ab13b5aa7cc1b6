//! What happens around every request: its id, its span, its metrics, panics, load, time.
//! Never logs or counts anything a client chose: no query, no id, no text, no key.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::deadline::{Deadline, Passed};
use super::error::{Code, Problem};
use super::leftover::Leftover;
use super::pace::PacedBody;
use super::query::Query;
use super::routes::Route;
use super::sending::{AnyProgress, Pace, watched};
use super::state::AppState;
use super::turn::Turn;
use crate::config::HttpLimits;
use crate::telemetry::names::{self, label};

/// Carries a request's id both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;

/// A request's id: the client's own where it is harmless, else a new one.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

impl RequestId {
    fn of(request: &Request) -> Self {
        let given = request.headers().get(&REQUEST_ID).and_then(|value| value.to_str().ok());
        let harmless = |id: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte))
        };
        given.filter(harmless).map_or_else(Self::new, |id| Self(id.to_owned()))
    }

    fn new() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("request ids"));
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Unlike between processes by the seed, within one by the count.
        Self(format!("{:016x}-{:x}", *SEED, NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Outermost: the id, the span, the metrics, problems written out, and an eye on the client as it takes the answer.
pub async fn observe(State(limits): State<HttpLimits>, mut request: Request, next: Next) -> Response {
    let version = request.version();
    let bytes_per_second_min = Some(limits.answer_bytes_per_second_min);
    let pace = Pace { timeout: limits.write_timeout, bytes_per_second_min };
    let begun = Instant::now();
    let id = RequestId::of(&request);
    let method = method(request.method());
    let head = request.method() == Method::HEAD;
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("unmatched", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", request_id = %id.0, method, route);
    request.extensions_mut().insert(id.clone());
    let guard = Measured { begun, route: route.clone(), method };
    let mut request = request.map(PacedBody::of);
    let leftover = Leftover::of(&mut request);
    metrics::gauge!(names::HTTP_REQUESTS_IN_FLIGHT).increment(1.0);

    let mut response = next.run(request).instrument(span.clone()).await;
    let too_slow = response.extensions().get::<Problem>().is_some_and(|problem| problem.code == Code::RequestTimeout);
    if let Some(leftover) = leftover.filter(|_| !too_slow) {
        leftover.drain().await;
    }
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = problem.render(response, &id.0);
        if head {
            *response.body_mut() = Body::empty();
        }
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status();
    metrics::counter!(
        names::HTTP_REQUESTS, label::ROUTE => route, label::METHOD => method, label::STATUS => status.as_str().to_owned()
    )
    .increment(1);
    span.in_scope(|| {
        let elapsed_ms = begun.elapsed().as_secs_f64() * 1e3;
        if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
            tracing::error!(status = status.as_u16(), elapsed_ms, "request failed");
        } else {
            tracing::debug!(status = status.as_u16(), elapsed_ms, "request answered");
        }
    });
    watched(response, version, pace, guard)
}

/// A method's name as a label; the client's inventions are one.
fn method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| method.as_str() == *known).unwrap_or("other")
}

/// Counts a request as over when its answer has been sent, or dropped.
struct Measured {
    begun: Instant,
    route: String,
    method: &'static str,
}

impl Drop for Measured {
    fn drop(&mut self) {
        metrics::gauge!(names::HTTP_REQUESTS_IN_FLIGHT).decrement(1.0);
        let route = std::mem::take(&mut self.route);
        metrics::histogram!(names::HTTP_REQUEST_DURATION, label::ROUTE => route, label::METHOD => self.method)
            .record(self.begun.elapsed().as_secs_f64());
    }
}

/// A panic becomes a problem. The message stays in the log: it may hold what a client sent.
pub fn panicked(cause: Box<dyn Any + Send>) -> Response {
    // A formatted message may quote what was being worked on; a literal one is our own.
    let cause = cause.downcast_ref::<&str>().copied().unwrap_or("see the panic's place in the log");
    Problem::internal(&format!("panic: {cause}")).into_response()
}

/// On each route: its parameters, whether the server has started, a place among the requests in work, and time. Bulk is
/// free of the last two; probes and metrics always find a place.
pub async fn admit(
    State((state, route)): State<(AppState, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    match Query::parse(request.uri().query().unwrap_or_default(), route.query) {
        Ok(query) => request.extensions_mut().insert(query),
        Err(problem) => return problem.into_response(),
    };
    if route.path.starts_with("/v1/")
        && let Err(problem) = state.boot().collections()
    {
        return problem.into_response();
    }
    if route.streams {
        let mut response = next.run(request).await;
        response.extensions_mut().insert(AnyProgress);
        return response;
    }
    let turn = Turn::new(state.requests());
    if !route.unbounded
        && !takes_body(route)
        && let Err(problem) = turn.take()
    {
        return problem.into_response();
    }
    // The extractor that reads the body takes the place once the body is there.
    request.extensions_mut().insert(turn.clone());
    let response = answer(&state, request, next).await;
    turn.end();
    response
}

/// Whether a request of this route has a body that is waited for.
fn takes_body(route: &Route) -> bool {
    matches!(route.method, Method::POST | Method::PUT | Method::PATCH)
}

/// The handler's answer, if it is made in time.
async fn answer(state: &AppState, mut request: Request, next: Next) -> Response {
    // Bytes that arrive put it off: a body has its own patience.
    let deadline = Deadline::after(2 * state.limits().request_timeout);
    request.extensions_mut().insert(deadline.clone());
    match deadline.hold(next.run(request)).await {
        Ok(response) => response,
        Err(Passed) => {
            let detail = "the answer was not ready in time; a write may have been made, and can be sent again safely";
            Problem::new(Code::Overloaded, detail).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;
    use crate::collections::Settings;
    use crate::cpu::{CpuConfig, CpuPool};
    use crate::http::access::Access;
    use crate::http::state::{Boot, Wiring};

    fn request(id: &[u8]) -> Request {
        let mut request = Request::new(Body::empty());
        request.headers_mut().insert(REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        request
    }

    #[test]
    fn harmless_request_ids_are_kept_and_others_replaced() {
        assert_eq!(RequestId::of(&request(b"4bf92f35-77b3.a:1")).0, "4bf92f35-77b3.a:1");
        for id in [&b""[..], b"a b", b"\xFF", b"a\"b", &[b'a'; 129]] {
            assert_ne!(RequestId::of(&request(id)).0.as_bytes(), id);
        }
        assert_ne!(RequestId::new().0, RequestId::new().0);
    }

    async fn answer(router: axum::Router) -> (StatusCode, serde_json::Value) {
        let request = Request::builder().uri("/test").body(Body::empty()).unwrap();
        let response = router
            .layer(axum::middleware::from_fn_with_state(crate::config::defaults().server.limits, observe))
            .oneshot(request)
            .await
            .unwrap();
        let status = response.status();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_that_tells_nothing_of_its_message() {
        async fn broken() -> String {
            panic!("the document said: secret")
        }
        let router = axum::Router::new().route("/test", axum::routing::get(broken));
        let (status, problem) = answer(router.layer(CatchPanicLayer::custom(panicked))).await;
        assert_eq!((status.as_u16(), &problem["code"]), (500, &serde_json::json!("internal")));
        assert!(problem["request_id"].is_string() && !problem.to_string().contains("secret"), "{problem}");
    }

    #[tokio::test]
    async fn an_answer_that_takes_too_long_is_given_up() {
        static SLOW: Route = Route {
            method: Method::GET,
            path: "/test",
            query: &[],
            statuses: &[503],
            streams: false,
            unbounded: false,
            handler: || axum::routing::get(std::future::pending::<String>),
        };
        let spec = hapax_core::Spec::default();
        let banding = hapax_core::tuning::default_banding(spec.shape(), 0.8);
        let state = AppState::new(Wiring {
            boot: Boot::new(),
            limits: HttpLimits {
                request_timeout: Duration::from_millis(10),
                ..crate::config::defaults().server.limits
            },
            api_key: None,
            access: Access::default(),
            metrics: Arc::new(String::new),
            cpu: CpuPool::new(CpuConfig { threads: 1, queue_max: 1 }),
            default_settings: Settings::new(spec, banding, 0.8),
            secret_fingerprint: None,
        });
        let admit = axum::middleware::from_fn_with_state((state.clone(), &SLOW), admit);
        let router = axum::Router::new().route("/test", (SLOW.handler)().route_layer(admit)).with_state(state);
        let (status, problem) = answer(router).await;
        assert_eq!((status.as_u16(), &problem["code"]), (503, &serde_json::json!("overloaded")));
    }

    #[test]
    fn invented_methods_share_a_label() {
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), "other");
        assert_eq!(method(&Method::PATCH), "PATCH");
    }
}
