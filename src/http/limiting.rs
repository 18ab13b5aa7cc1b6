//! Enforces the limits of each client, and adds to the client's answers how much of each limit is left. This file
//! counts only the request itself. Documents and bytes are counted through `quota/quota.rs`, by the code that works on
//! them.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};

use super::error::Problem;
use super::notes::Notes;
use super::quota::{Place, Quota, Share, write_fields};
use super::refusals::{Reason, network};
use super::required_scopes::is_open;
use super::state::AppState;

/// The place of a request whose answer is on its way, and the quota against which the rest of its body counts. Both are
/// kept until the answer has been sent.
#[derive(Clone)]
pub(super) struct Held {
    _place: Arc<Place>,
    quota: Quota,
}

impl Held {
    /// Counts bytes that arrived after the answer was made.
    pub(super) fn charge_bytes(&self, bytes: usize) {
        self.quota.charge_bytes(bytes);
    }
}

/// A request that was accepted under the limits of its client.
pub(super) enum Counted {
    /// The client has no limits, or the request is a probe.
    Free,
    Held {
        held: Held,
        /// The share of the request's key. Answers to clients without a key do not tell how much of a limit is left.
        told: Option<Arc<Share>>,
    },
}

/// Counts an accepted request against the limits of its client; returns 429 if a limit is reached.
pub(super) fn begin(state: &AppState, request: &mut Request) -> Result<Counted, Box<Response>> {
    if is_open(request.uri().path()) {
        return Ok(Counted::Free);
    }
    let caller = Notes::of(request.extensions()).and_then(Notes::caller);
    let key = caller.and_then(|caller| Some((caller.name()?, caller.limits()?)));
    let is_key = key.is_some();
    let share = match key {
        Some((name, limits)) => Some(state.shares().of_key(name, limits)),
        None => stranger(state, request),
    };
    let Some(share) = share else { return Ok(Counted::Free) };
    match share.begin() {
        Ok(place) => {
            let quota = Quota::new(Arc::clone(&share));
            request.extensions_mut().insert(quota.clone());
            let held = Held { _place: Arc::new(place), quota };
            Ok(Counted::Held { held, told: is_key.then_some(share) })
        }
        Err(problem) => {
            if !is_key {
                state.refusals().note(request.extensions(), Reason::AddressLimit);
            }
            let mut refusal = problem.into_response();
            if is_key {
                write_fields(&share, refusal.headers_mut());
            }
            Err(Box::new(refusal))
        }
    }
}

/// Adds to an answer how much of each limit is left, and keeps the request's place until the answer has been sent.
pub(super) fn end(counted: Counted, mut answer: Response) -> Response {
    if let Counted::Held { held, told } = counted {
        answer.extensions_mut().insert(held);
        if let Some(share) = told {
            write_fields(&share, answer.headers_mut());
        }
    }
    answer
}

/// Answers a request without a valid key with `problem`, or with 429 if its address has reached a limit. This limits
/// the guessing of keys.
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
    let address = Notes::of(request.extensions())?.address()?;
    state.shares().of_address(network(address))
}
