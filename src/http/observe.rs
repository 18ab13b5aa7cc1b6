//! Gives each request its id, counts it in the metrics, writes out its problem if there is one, and watches its client
//! read the answer. Values that a client chose, such as queries, ids, texts and keys, are never logged or counted. The
//! only exceptions are the ids of the request and of its trace.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::error::{Code, Problem};
use super::leftover::Leftover;
use super::limiting::Held;
use super::pace::PacedBody;
use super::request_id;
use super::sending::{SendingPace, watched};
use super::served::{Meters, ServedPath};
use crate::config::HttpLimits;
use crate::telemetry::request::{RequestLabels, ShortId, current_trace, within};
use crate::telemetry::trace::{self, Trace, span_ended};

/// The field of W3C Trace Context that names the trace of a request.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Gives the request its id, counts it, writes out problems, and watches the client read the answer.
pub(super) async fn observe<F>(
    limits: &HttpLimits,
    path: &ServedPath,
    request: Request,
    answer: impl FnOnce(Request) -> F + Send,
) -> Response
where
    F: Future<Output = Response> + Send,
{
    let bytes_per_second_min = Some(limits.answer_bytes_per_second_min);
    let pace = SendingPace { timeout: limits.write_timeout, bytes_per_second_min };
    let meters = Arc::clone(path.meters(request.method()));
    let (request_id, method, route) = (request_id::of(&request), meters.method(), path.path());
    let trace = Trace::of(traceparent(request.headers()));
    let labels = Arc::new(RequestLabels { request_id, method, route, trace });
    let in_flight = InFlight::begin(meters);
    let (version, head) = (request.version(), request.method() == Method::HEAD);
    let mut request = request.map(PacedBody::of);
    let answered = async {
        let leftover = Leftover::of(&mut request);
        let mut response = answer(request).await;
        let held = take_leftover(leftover, &mut response).await;
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            response = problem.render(response, labels.request_id.as_str());
            if head {
                *response.body_mut() = Body::empty();
            }
        }
        request_id::attach(&labels.request_id, &mut response);
        in_flight.answered(response.status());
        watched(response, version, pace, (in_flight, held))
    };
    within(Arc::clone(&labels), answered).await
}

/// Returns the trace that the client names; `None` if it names several.
fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let only = given.next().filter(|_| given.next().is_none())?;
    only.to_str().ok()
}

/// Reads the part of the body that the handler has not read. Returns the request's place among the requests of its
/// client.
async fn take_leftover(leftover: Option<Leftover>, response: &mut Response) -> Option<Held> {
    let too_slow = response.extensions().get::<Problem>().is_some_and(|problem| problem.code == Code::RequestTimeout);
    let held = response.extensions_mut().remove::<Held>();
    if let Some(leftover) = leftover.filter(|_| !too_slow) {
        let bytes = leftover.drain().await;
        held.iter().for_each(|held| held.charge_bytes(bytes));
    }
    held
}

/// Returns the answer to a request that was refused before its route was looked up.
pub(super) fn early_refusal(problem: Problem, id: &ShortId) -> Response {
    let mut answer = problem.render(Response::new(Body::empty()), id.as_str());
    request_id::attach(id, &mut answer);
    answer
}

/// Counts a request as ended when its answer has been sent or dropped.
struct InFlight {
    begun: Instant,
    meters: Arc<Meters>,
}

impl InFlight {
    fn begin(meters: Arc<Meters>) -> Self {
        meters.in_flight().increment(1.0);
        Self { begun: Instant::now(), meters }
    }

    /// Counts and logs an answer.
    fn answered(&self, status: StatusCode) {
        self.meters.count(status);
        let elapsed_ms = || self.begun.elapsed().as_secs_f64() * 1e3;
        if let Some(span) = current_trace().filter(|_| trace::is_written()) {
            let took = self.begun.elapsed();
            span_ended!(span, "request", trace::before(took), took, status = status.as_u16());
        }
        // Metrics already show a busy server and a full index. Log lines for them would only make other lines hard to
        // find.
        let expected = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE].contains(&status);
        if status.is_server_error() && !expected {
            tracing::error!(status = status.as_u16(), elapsed_ms = elapsed_ms(), "request failed");
        } else {
            tracing::debug!(status = status.as_u16(), elapsed_ms = elapsed_ms(), "request answered");
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.meters.in_flight().decrement(1.0);
        self.meters.took(self.begun.elapsed());
    }
}

/// Turns a panic into a problem. The problem does not contain the panic's message, which may contain a client's data.
pub(super) fn panicked(cause: Box<dyn Any + Send>) -> Response {
    // Only a literal message is logged: it is from our own code. A formatted message may contain the client's data.
    let cause = cause
        .downcast_ref::<&str>()
        .copied()
        .unwrap_or("message withheld; the log line of the panic has its place in the source");
    Problem::internal(&format!("panic: {cause}")).into_response()
}

#[cfg(test)]
mod tests {
    use crate::http::front::tests::answered;

    #[tokio::test]
    async fn a_panic_is_a_problem_that_tells_nothing_of_its_message() {
        async fn broken() -> String {
            panic!("the document said: secret")
        }
        let limits = crate::config::defaults().server.limits;
        let (status, problem) = answered(axum::routing::get(broken), limits).await;
        assert_eq!((status.as_u16(), &problem["code"]), (500, &serde_json::json!("internal")));
        assert!(problem["request_id"].is_string() && !problem.to_string().contains("secret"), "{problem}");
    }
}
