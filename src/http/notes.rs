//! The facts that the server's layers record about one request: the client and its rights, the request's place, its
//! deadline, and its body. The notes are attached to the request once, in one allocation, and handlers take the parts
//! that they need. Knows nothing of a request's content.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::caller::Caller;
use super::deadline::Deadline;
use super::error::Problem;
use super::turn::Turn;
use super::unread::Unread;

/// The notes on one request. Clones refer to the same notes.
#[derive(Clone)]
pub(super) struct Notes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `None` in tests that call handlers without a connection.
    peer: Option<IpAddr>,
    /// The address of the client if the request came through trusted proxies.
    client: OnceLock<IpAddr>,
    caller: OnceLock<Caller>,
    turn: OnceLock<Turn>,
    deadline: OnceLock<Deadline>,
    unread: Unread,
}

impl Notes {
    /// Begins the notes on a request from this address.
    pub(super) fn from(peer: IpAddr) -> Self {
        Self(Arc::new(Shared { peer: Some(peer), ..Shared::default() }))
    }

    /// Returns the notes that are attached to a request.
    pub(super) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Returns the notes that are attached to a request, and attaches new ones if there are none.
    pub(super) fn attached(extensions: &mut Extensions) -> Self {
        extensions.get_or_insert_with(|| Self(Arc::default())).clone()
    }
}

impl Notes {
    /// Returns the address of the client. Behind trusted proxies, this is the address that they name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.0.client.get().copied().or(self.0.peer)
    }

    /// Records the client that trusted proxies name.
    pub(super) fn comes_from(&self, client: IpAddr) {
        self.0.client.get_or_init(|| client);
    }

    pub(super) fn allow(&self, caller: Caller) {
        self.0.caller.get_or_init(|| caller);
    }

    /// Returns the request's caller. Probes may have none.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    /// Records the request's place among the requests of its class.
    pub(super) fn queue(&self, turn: Turn) -> &Turn {
        self.0.turn.get_or_init(|| turn)
    }

    /// Returns the request's place among the requests of its class.
    pub(super) fn turn(&self) -> &Turn {
        self.0.turn.get().expect("requests of all routes with a body have a turn")
    }

    pub(super) fn must_end(&self, deadline: Deadline) -> &Deadline {
        self.0.deadline.get_or_init(|| deadline)
    }

    pub(super) fn deadline(&self) -> &Deadline {
        self.0.deadline.get().expect("requests of all routes with a body have a deadline")
    }

    pub(super) fn unread(&self) -> &Unread {
        &self.0.unread
    }
}

/// Returns the caller of a request that `authentication.rs` has accepted.
pub(super) fn caller_of(extensions: &Extensions) -> &Caller {
    Notes::of(extensions)
        .and_then(Notes::caller)
        .expect("the gate has noted the caller of every request that needs one")
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(caller_of(&parts.extensions).clone())
    }
}
