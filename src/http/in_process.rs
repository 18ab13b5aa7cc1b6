//! Requests of this process -> the answers of the routes, without sockets. Knows nothing of connections: there is no
//! client whose address, key or pace would matter.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::poll_fn;
use tokio::sync::mpsc::Receiver;
use tower::ServiceExt as _;

use super::router::router;
use super::state::AppState;

/// The most bytes of an answer that is returned as a whole. It is longer than any description of a collection.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// The type of a body of lines.
const LINES: &str = "application/x-ndjson";

/// The routes of a server that only its own process asks.
pub struct InProcess(Router);

/// A whole answer.
#[derive(Debug)]
pub struct WholeAnswer {
    pub status: u16,
    pub text: String,
    /// How long to wait before the same request is sent again, if it was refused.
    pub retry_after: Option<Duration>,
}

/// An answer that is read while it is made.
pub struct AnswerStream {
    pieces: BodyDataStream,
    /// The rest of the last piece.
    piece: Bytes,
}

impl InProcess {
    pub fn new(state: AppState) -> Self {
        Self(router(state))
    }

    /// Answers a request with JSON, or without a body.
    pub async fn ask(&self, method: Method, target: &str, json: Option<&str>) -> WholeAnswer {
        let body = json.map_or_else(Body::empty, |json| Body::from(json.to_owned()));
        whole(self.answer(method, target, "application/json", body).await).await
    }

    /// Answers one request with lines of JSON, which are read from `pieces` while the answer is made. An answer with
    /// another status than success is returned as a whole.
    pub async fn stream(&self, target: &str, mut pieces: Receiver<Vec<u8>>) -> Result<AnswerStream, WholeAnswer> {
        let pieces = poll_fn(move |cx| pieces.poll_recv(cx)).map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        let answer = self.answer(Method::POST, target, LINES, Body::from_stream(pieces)).await;
        if answer.status().is_success() {
            return Ok(AnswerStream { pieces: answer.into_body().into_data_stream(), piece: Bytes::new() });
        }
        Err(whole(answer).await)
    }

    async fn answer(&self, method: Method, target: &str, of_type: &'static str, body: Body) -> Response {
        let request = Request::builder().method(method).uri(target).header(CONTENT_TYPE, of_type).body(body);
        let Ok(answer) = self.0.clone().oneshot(request.expect("the target is percent-encoded")).await;
        answer
    }
}

impl AnswerStream {
    /// Reads some bytes, and returns their number; 0 at the end.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.next().await {
                Some(piece) => self.piece = piece.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let taken = self.piece.split_to(buffer.len().min(self.piece.len()));
        buffer[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}

async fn whole(answer: Response) -> WholeAnswer {
    let status = answer.status().as_u16();
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = axum::body::to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    WholeAnswer { status, text, retry_after: retry_after.map(Duration::from_secs) }
}
