//! The bearer key. Probes stay open, all else asks for it where one is configured.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{Code, Problem};
use super::refusals::Reason;
use super::state::AppState;

/// Paths that never ask for a key: orchestrators have none.
pub const OPEN_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// 401 unless the request shows the key.
pub async fn check(State(state): State<AppState>, request: Request, next: Next) -> Response {
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
pub fn admits(state: &AppState, headers: &HeaderMap) -> bool {
    state.api_key().is_none_or(|key| shown(headers).is_some_and(|token| key.admits(token)))
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    // RFC 9110, 11.1: the scheme's case does not matter, and one space or more follows it.
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
