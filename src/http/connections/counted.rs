//! The body of a request or of an answer -> the same body. Its pieces count as traffic that the connection carries.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use axum::http::Request;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::activity::Activity;

/// A body with the same bytes as `body`.
pub(super) struct Counted<B> {
    body: B,
    activity: Arc<Activity>,
}

impl<B> Counted<B> {
    pub(super) fn new(body: B, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

/// Counts the headers of a request, and wraps its body.
pub(super) fn counted_request<B>(request: Request<B>, activity: &Arc<Activity>) -> Request<Counted<B>> {
    activity.carried_headers(request.headers());
    request.map(|body| Counted::new(body, Arc::clone(activity)))
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.activity.carried(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
