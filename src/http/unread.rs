//! The body of a request. The handler that reads the body shares it with the layer that reads the rest.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;

/// A place for a body. It is empty until a body is put into it.
#[derive(Default)]
pub(super) struct Unread(Mutex<State>);

#[derive(Default)]
struct State {
    body: Body,
    /// Whether a handler may still read the body.
    is_in_use: bool,
}

impl Unread {
    /// Keeps a body until its handler reads it.
    pub(super) fn put(&self, body: Body) {
        *self.0.lock() = State { body, is_in_use: true };
    }

    /// Notes that the handler has stopped reading.
    pub(super) fn leave(&self) {
        self.0.lock().is_in_use = false;
    }

    /// Returns the body if its handler stopped reading before the body's end.
    pub(super) fn take(&self) -> Option<Body> {
        let mut state = self.0.lock();
        let is_left = !state.is_in_use && !state.body.is_end_stream();
        is_left.then(|| std::mem::take(&mut state.body))
    }

    pub(super) fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.0.lock().body).poll_frame(cx)
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.0.lock().body.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.0.lock().body)
    }
}
