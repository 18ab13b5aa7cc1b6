//! Reads and discards the part of a request's body that its handler did not read, up to a limit. An HTTP/1.1 connection
//! can be used again only after the whole body was read. If a connection is closed with unread bytes, it is reset, and
//! the answer may be lost. Also, a client that reuses connections could send its next request on a connection that is
//! closing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::header::EXPECT;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::notes::Notes;

/// The most bytes that are read and discarded.
pub(super) const BYTES_MAX: usize = 32 << 20;
/// The longest time that is spent on reading and discarding.
pub(super) const TIME_MAX: Duration = Duration::from_secs(2);

/// The server's half of the shared body.
pub(super) struct Leftover(Notes);

/// The handler's half of the shared body.
struct SharedBody(Notes);

impl Leftover {
    /// Replaces the request's body with a shared one. `None` if there is nothing to discard after the handler.
    pub(super) fn of(request: &mut Request<Body>) -> Option<Self> {
        // A client that waits for `100 Continue` has sent nothing. A read would tell this client to send its body.
        if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
            return None;
        }
        let notes = Notes::attached(request.extensions_mut());
        notes.unread().put(std::mem::take(request.body_mut()));
        *request.body_mut() = Body::new(SharedBody(notes.clone()));
        Some(Self(notes))
    }

    /// Reads the rest, unless a stream still uses the handler's half. Returns the length of the rest.
    pub(super) async fn drain(self) -> usize {
        match self.0.unread().take() {
            // In a box, so that the future stays small for a body that was read to its end.
            Some(body) => Box::pin(discard(body)).await,
            None => 0,
        }
    }
}

/// Reads and discards a body, within the limits. Returns the number of bytes.
pub(super) async fn discard(body: Body) -> usize {
    let (mut frames, mut seen) = (body.into_data_stream(), 0);
    let drain = async {
        while seen < BYTES_MAX
            && let Some(Ok(piece)) = frames.next().await
        {
            seen += piece.len();
        }
    };
    // It does not matter whether the body ends or the wait times out.
    let _ = tokio::time::timeout(TIME_MAX, drain).await;
    seen
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.0.unread().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.unread().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.unread().size_hint()
    }
}

impl Drop for SharedBody {
    fn drop(&mut self) {
        self.0.unread().leave();
    }
}
