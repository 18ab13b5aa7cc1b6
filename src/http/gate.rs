//! Decides which requests may come in: those that show the API key, or, if no key is configured, those that
//! [`Access`](super::access::Access) accepts. Probes are always accepted.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{Code, Problem};
use super::refusals::Reason;
use super::state::AppState;

/// Paths that never require a key, because orchestrators have none.
pub(super) const OPEN_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// Answers 401 unless the request shows the key.
pub(super) async fn ask_key(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let Some(key) = state.api_key() else { return next.run(request).await };
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let (reason, detail) = match shown(request.headers()) {
        Some(token) if key.admits(token) => return next.run(request).await,
        Some(_) => (Reason::WrongKey, "the API key is wrong"),
        None => (Reason::NoKey, "the request has no API key; send it as `Authorization: Bearer KEY`"),
    };
    state.refusals().note(&request, reason);
    Problem::new(Code::Unauthorized, detail).into_response()
}

/// Whether these headers show the key. True if none is configured.
fn shows_key(state: &AppState, headers: &HeaderMap) -> bool {
    state.api_key().is_none_or(|key| shown(headers).is_some_and(|token| key.admits(token)))
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    // RFC 9110, 11.1: the scheme is case-insensitive, and one or more spaces follow it.
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether other routes would accept the request. Only then may a probe return more than its status.
pub(super) fn admits(state: &AppState, request: &Request) -> bool {
    shows_key(state, request.headers()) && (state.api_key().is_some() || state.access().refusal(request).is_ok())
}

/// If no key protects the server, answers 403 to requests that a page of another site may have made a browser send.
/// Probes are exempt: an orchestrator may call them under any host name, and they reveal nothing.
pub(super) async fn refuse_foreign(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if state.api_key().is_none()
        && !OPEN_PATHS.contains(&request.uri().path())
        && let Err((reason, problem)) = state.access().refusal(&request)
    {
        state.refusals().note(&request, reason);
        return problem.into_response();
    }
    next.run(request).await
}
