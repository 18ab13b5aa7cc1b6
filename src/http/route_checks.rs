//! The checks that every route makes before and around its handler: what the key allows, query parameters, whether the
//! server has started, the limit on concurrent requests, and the time limit.

use std::pin::pin;

use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};

use super::admin_action::AdminAction;
use super::admission::Class;
use super::caller::Caller;
use super::coarse;
use super::deadline::{Deadline, GivenUp};
use super::early::{judge_work, judged_early};
use super::error::{Code, Problem};
use super::notes::{Notes, caller_of};
use super::query::{self, Query};
use super::refusals::Reason;
use super::required_scopes::Requires;
use super::routes::Route;
use super::sending::AnyProgress;
use super::state::AppState;
use super::turn::Turn;

/// Checks that the key and the route allow the request and its parameters, and that the server has started. Then
/// enforces the limits on concurrency and time. Bulk requests are exempt from these two limits. Probes and metrics are
/// exempt from the limit on concurrency.
pub(super) async fn admit<F>(
    state: &AppState,
    route: &'static Route,
    mut request: Request,
    handle: impl FnOnce(Request) -> F + Send,
) -> Response
where
    F: Future<Output = Response> + Send,
{
    match allowed(state, route, &request) {
        Ok(query) => query.attach(request.extensions_mut()),
        Err(problem) => return problem.into_response(),
    }
    if route.path.starts_with("/v1/") {
        // Without `may_use`, the wait would reveal that the collection exists.
        if state.boot().ready().is_err() && may_use(&request) {
            state.boot().wait(request.uri().path(), state.limits().start_wait, state.draining()).await;
        }
        if let Err(problem) = state.boot().collections() {
            return problem.into_response();
        }
    }
    if route.streams {
        let mut response = handle(request).await;
        response.extensions_mut().insert(AnyProgress);
        return response;
    }
    let class = route.class();
    let places = state.admission().of(class);
    let notes = Notes::attached(request.extensions_mut());
    // A request with a body takes its place only once the whole body has arrived: the extractor of the body takes the
    // place.
    let turn = notes.queue(Turn::new(places));
    if class != Class::Probe {
        let judged = judged_early(request.version());
        let arrived = if judged { Ok(()) } else { places.arrive(|| judge_work(&request, state.cpu())) };
        if let Err(problem) = arrived.and_then(|()| if takes_body(route) { Ok(()) } else { turn.take() }) {
            return problem.into_response();
        }
    }
    let action = AdminAction::of(route, &request);
    let response = answer(state, &notes, request, handle).await;
    if let Some(action) = action {
        action.answered(response.status());
    }
    turn.end();
    response
}

/// Whether the request's key may use the collection in the path; true if the path names none.
fn may_use(request: &Request) -> bool {
    query::collection(request.uri().path()).is_none_or(|name| caller_of(request.extensions()).may_use(&name))
}

/// Returns the parameters, if both the key and the route allow them.
fn allowed(state: &AppState, route: &Route, request: &Request) -> Result<Query, Problem> {
    let parse = || Query::parse(request.uri().query().unwrap_or_default(), route.query);
    if route.requires == Requires::Nothing {
        return parse();
    }
    let caller = caller_of(request.extensions());
    let refused = |problem| {
        state.refusals().note(request.extensions(), Reason::Forbidden);
        problem
    };
    route.requires.check(caller).and_then(|()| coarse::check_route(route, caller)).map_err(refused)?;
    let query = parse()?;
    coarse::check_parameters(&query, caller).map_err(refused)?;
    Ok(query)
}

/// Whether a request on this route has a body that the server waits for.
fn takes_body(route: &Route) -> bool {
    matches!(route.method, Method::POST | Method::PUT | Method::PATCH)
}

/// Returns the handler's answer, or 503 if it takes too long, or 401 if the key of the request is revoked before the
/// answer is ready.
async fn answer<F>(state: &AppState, notes: &Notes, request: Request, handle: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response>,
{
    // Arriving bytes postpone the deadline: slow bodies have a time limit of their own (`Patience`).
    let deadline = notes.must_end(Deadline::after(2 * state.limits().request_timeout));
    match deadline.hold(pin!(handle(request)), || notes.caller().and_then(Caller::ended)).await {
        Ok(response) => response,
        Err(GivenUp::Revoked(problem)) => problem.into_response(),
        Err(GivenUp::Late) => {
            let detail =
                "the answer was not ready in time; a write may have been made; it is safe to send the request again";
            Problem::new(Code::Overloaded, detail).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::HttpLimits;
    use crate::http::front::tests::answered;

    #[tokio::test]
    async fn an_answer_that_takes_too_long_is_given_up() {
        let defaults = crate::config::defaults().server.limits;
        let limits = HttpLimits { request_timeout: Duration::from_millis(10), ..defaults };
        let (status, problem) = answered(axum::routing::get(std::future::pending::<String>), limits).await;
        assert_eq!((status.as_u16(), &problem["code"]), (503, &serde_json::json!("overloaded")));
    }
}
