//! Decides which requests are let in. If keys are configured, a request needs a valid key. If no key is configured,
//! [`Access`](super::foreign::Access) decides. Probes are always accepted. Later, `required_scopes.rs` decides
//! whether the key allows the route. `request/path.rs` and `request/targets.rs` decide whether it allows the
//! collection.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::caller::Caller;
use super::error::{Code, Problem};
use super::notes::Notes;
use super::refusals::Reason;
use super::required_scopes::is_open;
use super::state::AppState;
use crate::keys::Shown;

/// Attaches the caller to the request. Returns 401 if a key is required and the request has no valid key.
pub(super) fn ask_key(state: &AppState, request: &mut Request) -> Result<(), (Reason, Problem)> {
    match caller(state, request.headers()) {
        Ok(caller) => {
            Notes::attached(request.extensions_mut()).allow(caller);
            Ok(())
        }
        Err(_) if is_open(request.uri().path()) => Ok(()),
        Err((reason, detail)) => Err((reason, Problem::new(Code::Unauthorized, detail))),
    }
}

fn caller(state: &AppState, headers: &HeaderMap) -> Result<Caller, (Reason, &'static str)> {
    if state.keys().is_open() {
        return Ok(Caller::anyone());
    }
    if headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
        // A proxy in front of the server may have checked one of these fields, and the server might use another one.
        return Err((Reason::NoKey, "the request has several `Authorization` fields; send one"));
    }
    match shown(headers).map(|text| state.keys().find(text)) {
        Some(Shown::Valid(key)) => Ok(Caller::with(key)),
        Some(Shown::Expired) => Err((Reason::ExpiredKey, "the API key has expired; use a new one")),
        Some(Shown::Unknown) => Err((Reason::WrongKey, "the API key is wrong")),
        None => Err((Reason::NoKey, "the request has no API key; send it as `Authorization: Bearer KEY`")),
    }
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    // RFC 9110, 11.1: the scheme is case-insensitive, and one or more spaces follow it.
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Returns the caller of a probe, if other routes would accept the caller too. The answer to a probe contains more than
/// a status only for such a caller.
pub(super) fn admitted<'a>(state: &AppState, request: &'a Request) -> Option<&'a Caller> {
    let caller = Notes::of(request.extensions())?.caller()?;
    (!state.keys().is_open() || state.access().refusal(request).is_ok()).then_some(caller)
}

/// If no key protects the server, returns 403 for a request that a browser may have sent for a page of another site.
/// Probes are exempt: an orchestrator may call them under any host name, and they reveal nothing. So are the pages of
/// the console: a link on any page may lead to them.
pub(super) fn refuse_foreign(state: &AppState, request: &Request) -> Result<(), Problem> {
    if !state.keys().is_open() || is_open(request.uri().path()) {
        return Ok(());
    }
    state.access().refusal(request).map_err(|(reason, problem)| {
        state.refusals().note(request.extensions(), reason);
        problem
    })
}
