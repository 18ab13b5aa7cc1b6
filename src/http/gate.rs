//! Who may come in: whoever shows the key, or where none is configured, whoever [`Access`](super::access::Access)
//! admits. Probes stay open.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{Code, Problem};
use super::refusals::Reason;
use super::state::AppState;

/// Paths that never ask for a key: orchestrators have none.
pub(super) const OPEN_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// 401 unless the request shows the key.
pub(super) async fn ask_key(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let Some(key) = state.api_key() else { return next.run(request).await };
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let (reason, detail) = match shown(request.headers()) {
        Some(token) if key.admits(token) => return next.run(request).await,
        Some(_) => (Reason::WrongKey, "the key is not the right one"),
        None => (Reason::NoKey, "send the key as `Authorization: Bearer …`"),
    };
    state.refusals().note(&request, reason);
    Problem::new(Code::Unauthorized, detail).into_response()
}

/// Whether these headers show the key, if there is one.
fn shows_key(state: &AppState, headers: &HeaderMap) -> bool {
    state.api_key().is_none_or(|key| shown(headers).is_some_and(|token| key.admits(token)))
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    // RFC 9110, 11.1: the scheme's case does not matter, and one space or more follows it.
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether other routes would accept the request: only then is it told more than probes need.
pub(super) fn admits(state: &AppState, request: &Request) -> bool {
    shows_key(state, request.headers()) && (state.api_key().is_some() || state.access().refusal(request).is_ok())
}

/// 403 for what a page of another site may have made a browser send, if no key protects the server. Probes stay
/// open: an orchestrator may call them under any name, and they tell nothing.
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
