//! The layer that holds each client to its limits, and adds to its answers how much is left.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Caller;
use super::error::Problem;
use super::quota::{Place, Quota, Share, write_fields};
use super::refusals::{Peer, Reason, network};
use super::requires::OPEN_PATHS;
use super::state::AppState;

/// The place of a request whose answer is on its way, and the quota that the rest of its body counts for. Both are kept
/// until the answer has been sent.
#[derive(Clone)]
pub(super) struct Held {
    _place: Arc<Place>,
    quota: Quota,
}

impl Held {
    /// Counts bytes that came after the answer was made.
    pub(super) fn charge_bytes(&self, bytes: usize) {
        self.quota.charge_bytes(bytes);
    }
}

/// Holds an accepted request to the limits of its client.
pub(super) async fn hold(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    if OPEN_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let caller = request.extensions().get::<Caller>().cloned();
    let key = caller.as_ref().and_then(|caller| Some((caller.name()?, caller.limits()?)));
    let share = match key {
        Some((name, limits)) => Some(state.shares().of_key(name, limits)),
        None => stranger(&state, &request),
    };
    let Some(share) = share else { return next.run(request).await };
    let mut response = match share.begin() {
        Ok(place) => {
            let quota = Quota::new(Arc::clone(&share));
            request.extensions_mut().insert(quota.clone());
            let mut response = next.run(request).await;
            response.extensions_mut().insert(Held { _place: Arc::new(place), quota });
            response
        }
        Err(problem) => {
            if key.is_none() {
                state.refusals().note(request.extensions(), Reason::AddressLimit);
            }
            problem.into_response()
        }
    };
    if key.is_some() {
        write_fields(&share, response.headers_mut());
    }
    response
}

/// Answers a request without a valid key: with `problem`, or, if its address has reached a limit, 429. So guessing keys
/// is limited.
pub(super) fn refused(state: &AppState, request: &Request, reason: Reason, problem: Problem) -> Response {
    let Some(share) = stranger(state, request) else {
        state.refusals().note(request.extensions(), reason);
        return problem.into_response();
    };
    match share.begin() {
        Ok(place) => {
            state.refusals().note(request.extensions(), reason);
            let mut response = problem.into_response();
            response.extensions_mut().insert(Held { _place: Arc::new(place), quota: Quota::new(share) });
            response
        }
        Err(over_limit) => {
            state.refusals().note(request.extensions(), Reason::AddressLimit);
            over_limit.into_response()
        }
    }
}

/// Returns the share of the request's address; `None` if addresses have no limits.
fn stranger(state: &AppState, request: &Request) -> Option<Arc<Share>> {
    let Peer(address) = request.extensions().get::<Peer>()?;
    state.shares().of_address(network(*address))
}
