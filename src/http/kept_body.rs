//! A response body that keeps a value until the body is dropped. The body is dropped once the connection has taken the
//! last byte, or is closed.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// A body with the same bytes as `body`.
pub(super) struct Keeping<K> {
    body: Body,
    _kept: K,
}

impl<K> Keeping<K> {
    pub(super) fn new(body: Body, kept: K) -> Self {
        Self { body, _kept: kept }
    }
}

impl<K: Unpin> HttpBody for Keeping<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
