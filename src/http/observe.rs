//! The outermost layer around every request: its id, span and metrics, panics, problems, and watching the client take
//! the answer. It never logs or counts anything that a client chose: no query, no id, no text, no key.

use std::any::Any;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::error::{Code, Problem};
use super::leftover::Leftover;
use super::limiting::Held;
use super::pace::PacedBody;
use super::request_id::{REQUEST_ID, RequestId};
use super::sending::{SendingPace, watched};
use crate::config::HttpLimits;
use crate::telemetry::names::{self, label};

/// The route of a request that has none, or that was refused before it was looked up.
const UNMATCHED: &str = "unmatched";

/// Gives the request its id and span, counts it, writes out problems, and watches the client read the answer.
pub(crate) async fn observe(State(limits): State<HttpLimits>, mut request: Request, next: Next) -> Response {
    let version = request.version();
    let bytes_per_second_min = Some(limits.answer_bytes_per_second_min);
    let pace = SendingPace { timeout: limits.write_timeout, bytes_per_second_min };
    let begun = Instant::now();
    let id = RequestId::of(&request);
    let method = method(request.method());
    let head = request.method() == Method::HEAD;
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", request_id = %id.0, method, route);
    request.extensions_mut().insert(id.clone());
    let guard = InFlight { begun, route: route.clone(), method };
    let mut request = request.map(PacedBody::of);
    let leftover = Leftover::of(&mut request);
    metrics::gauge!(names::HTTP_REQUESTS_IN_FLIGHT).increment(1.0);

    let mut response = next.run(request).instrument(span.clone()).await;
    let too_slow = response.extensions().get::<Problem>().is_some_and(|problem| problem.code == Code::RequestTimeout);
    let held = response.extensions_mut().remove::<Held>();
    if let Some(leftover) = leftover.filter(|_| !too_slow) {
        let bytes = leftover.drain().await;
        held.iter().for_each(|held| held.charge_bytes(bytes));
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
        // A busy server and a full index have metrics, and a log line each would only hide others.
        let expected = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE].contains(&status);
        if status.is_server_error() && !expected {
            tracing::error!(status = status.as_u16(), elapsed_ms, "request failed");
        } else {
            tracing::debug!(status = status.as_u16(), elapsed_ms, "request answered");
        }
    });
    watched(response, version, pace, (guard, held))
}

/// Returns the method's name as a metric label. All unknown methods share one.
pub(super) fn method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| method.as_str() == *known).unwrap_or("other")
}

/// Counts and returns the answer to a request that was refused before its route was looked up.
pub(super) fn counted_refusal(problem: Problem, method: &'static str, id: &RequestId) -> Response {
    let status = "503";
    debug_assert_eq!(problem.code.status().as_str(), status);
    metrics::counter!(names::HTTP_REQUESTS, label::ROUTE => UNMATCHED, label::METHOD => method, label::STATUS => status)
        .increment(1);
    let mut answer = problem.render(Response::new(Body::empty()), &id.0);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    answer
}

/// Counts a request as over once its answer has been sent or dropped.
struct InFlight {
    begun: Instant,
    route: String,
    method: &'static str,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!(names::HTTP_REQUESTS_IN_FLIGHT).decrement(1.0);
        let route = std::mem::take(&mut self.route);
        metrics::histogram!(names::HTTP_REQUEST_DURATION, label::ROUTE => route, label::METHOD => self.method)
            .record(self.begun.elapsed().as_secs_f64());
    }
}

/// Turns a panic into a problem. Its message stays in the log, because it may contain a client's data.
pub(crate) fn panicked(cause: Box<dyn Any + Send>) -> Response {
    // A formatted message may quote the data that was being worked on. A literal one is our own.
    let cause = cause
        .downcast_ref::<&str>()
        .copied()
        .unwrap_or("message withheld; the log line of the panic has its place in the source");
    Problem::internal(&format!("panic: {cause}")).into_response()
}

#[cfg(test)]
pub(super) mod tests {
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    /// Returns the status and the problem that `/test` answers.
    pub(crate) async fn answered(router: axum::Router) -> (StatusCode, serde_json::Value) {
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
        let (status, problem) = answered(router.layer(CatchPanicLayer::custom(panicked))).await;
        assert_eq!((status.as_u16(), &problem["code"]), (500, &serde_json::json!("internal")));
        assert!(problem["request_id"].is_string() && !problem.to_string().contains("secret"), "{problem}");
    }

    #[test]
    fn invented_methods_share_a_label() {
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), "other");
        assert_eq!(method(&Method::PATCH), "PATCH");
    }
}
