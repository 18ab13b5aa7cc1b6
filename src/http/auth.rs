//! The bearer key. Probes stay open, all else asks for it where one is configured.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::{Code, Problem};
use super::state::AppState;

/// Paths that never ask for a key: orchestrators have none.
pub const OPEN_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// 401 unless the request shows the key.
pub async fn check(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let Some(key) = state.api_key() else { return next.run(request).await };
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let shown = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    // RFC 9110, 11.1: the scheme's case does not matter, and one space or more follows it.
    let token = shown.and_then(|value| {
        let (scheme, token) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
    });
    match token {
        Some(token) if key.admits(token) => next.run(request).await,
        Some(_) => Problem::new(Code::Unauthorized, "the key is not the right one").into_response(),
        None => Problem::new(Code::Unauthorized, "send the key as `Authorization: Bearer …`").into_response(),
    }
}
