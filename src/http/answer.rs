//! An answer's value -> the body that is sent, within the memory that all answers share.
//! Memory is reserved before the work begins, for the longest answer that the request can produce. So if there is no
//! memory for its answer, a write is refused before it is made. While an answer is built, it counts twice: as a value
//! and as JSON. While it is sent, it counts once, until the client has taken the last byte. Knows nothing of an
//! answer's content.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use metrics::Gauge;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Code, Problem};
use crate::telemetry::names;

/// The least memory that is reserved for an answer at first. It is enough for a verdict with a few matches.
const ROOM_BYTES_MIN: usize = 16 * 1024;
/// The longest answer that counts as short, in bytes of JSON. It is enough for a verdict with the default number of
/// matches.
const SHORT_BYTES_MAX: usize = 256 * 1024;
/// The memory that one compression encoder of an answer takes.
const ENCODER_BYTES: usize = 1280 * 1024;
/// The size of the pieces in which an answer is stored. Each piece has its own allocation, so a piece that the
/// connection still holds does not keep the others in memory.
pub(super) const PIECE_BYTES: usize = 16 * 1024;
/// The first piece starts at this size and grows.
const PIECE_BYTES_FIRST: usize = 1024;

/// The memory for answers, shared by all requests.
#[derive(Clone)]
pub(super) struct Answers {
    free: Arc<Semaphore>,
    /// Memory for short answers, used when no other memory is free. So a client that does not read its long answers
    /// does not block other clients.
    kept: Arc<Semaphore>,
    /// The size limit for an answer that cannot be shortened, in bytes of JSON.
    longest: usize,
    /// Reserved for encoders, which get no other memory. So the encoders of unread answers take no memory from other
    /// answers.
    encoders: Arc<Semaphore>,
    /// The metric of the reserved memory. The handle is looked up once, because each bulk line changes the metric eight
    /// times.
    taken: Gauge,
}

/// A part of the memory for answers; given back when dropped.
pub(super) struct AnswerRoom {
    permit: OwnedSemaphorePermit,
    taken: Gauge,
}

impl Answers {
    pub(super) fn new(bytes: usize) -> Self {
        let [free, kept, encoders] =
            [bytes.min(Semaphore::MAX_PERMITS), 0, 0].map(|bytes| Arc::new(Semaphore::new(bytes)));
        Self { free, kept, longest: bytes / 4, encoders, taken: metrics::gauge!(names::HTTP_ANSWER_BYTES) }
    }

    /// Makes the share of the memory that one request may use. The metric does not count this share again, because the
    /// total already includes it.
    pub(super) fn of_one_request(bytes: usize) -> Self {
        Self { taken: Gauge::noop(), ..Self::new(bytes) }
    }

    /// Reserves an eighth of the memory for answers of up to [`SHORT_BYTES_MAX`].
    pub(super) fn keeping_some_for_short_ones(self) -> Self {
        let kept = self.free.available_permits() / 8;
        self.kept.add_permits(self.free.forget_permits(kept));
        Self { longest: self.free.available_permits() / 4, ..self }
    }

    /// Returns the size limit for an answer that cannot be shortened, in bytes of JSON.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Reserves memory for an answer of at most `bytes` bytes of JSON, or for a shorter one if memory is scarce.
    /// Returns 503 if there is no memory at all.
    pub(super) fn take(&self, bytes: usize) -> Result<AnswerRoom, Problem> {
        // Grants at most half of the free memory, so that a large request leaves some memory for the next request.
        let granted = (2 * bytes).min((self.free.available_permits() / 2).max(ROOM_BYTES_MIN));
        let permit = Arc::clone(&self.free).try_acquire_many_owned(granted.min(u32::MAX as usize) as u32);
        let permit = permit.or_else(|full| match bytes {
            0..=SHORT_BYTES_MAX => {
                Arc::clone(&self.kept).try_acquire_many_owned((2 * bytes).min(ROOM_BYTES_MIN) as u32)
            }
            _ => Err(full),
        });
        match permit {
            Ok(permit) => Ok(AnswerRoom::new(permit, self.taken.clone())),
            Err(_) => Err(scarce()),
        }
    }

    /// Reserves an eighth of the memory for encoders, but at least the memory of one encoder. Reserves nothing if that
    /// would be more than a quarter of the memory.
    pub(super) fn keeping_some_for_encoders(self) -> Self {
        let free = self.free.available_permits();
        let kept = (free / 8).max(ENCODER_BYTES);
        let kept = if kept <= free / 4 { kept } else { 0 };
        self.encoders.add_permits(self.free.forget_permits(kept));
        self
    }

    /// Reserves memory for an encoder; `None` if there is none.
    pub(super) fn encoder(&self) -> Option<AnswerRoom> {
        let permit = Arc::clone(&self.encoders).try_acquire_many_owned(ENCODER_BYTES as u32).ok()?;
        Some(AnswerRoom::new(permit, self.taken.clone()))
    }

    /// Waits until there is memory for an answer of at most `bytes` bytes of JSON. `bytes` must not exceed half of the
    /// total.
    pub(super) async fn wait(&self, bytes: usize) -> AnswerRoom {
        let bytes = (2 * bytes).min(u32::MAX as usize) as u32;
        let permit = Arc::clone(&self.free).acquire_many_owned(bytes).await;
        AnswerRoom::new(permit.expect("the memory is never closed"), self.taken.clone())
    }
}

impl AnswerRoom {
    fn new(permit: OwnedSemaphorePermit, taken: Gauge) -> Self {
        taken.increment(permit.num_permits() as f64);
        Self { permit, taken }
    }

    /// Returns the most bytes of JSON that fit into this memory while the answer is built.
    pub(super) fn json_bytes_max(&self) -> usize {
        self.permit.num_permits() / 2
    }

    /// Releases the memory that the answer does not need. Call this when the value is complete. `json_bytes` is the
    /// largest number of bytes of JSON that the value can become. Twice as much stays reserved: the value and its JSON
    /// count once each.
    pub(super) fn is_made(&mut self, json_bytes: usize) {
        self.shrink(2 * json_bytes);
    }

    /// Reduces the reservation to `bytes`, for example when the answer's value has been dropped and only its bytes are
    /// left.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let held = self.permit.num_permits();
        if bytes < held {
            self.taken.decrement((held - bytes) as f64);
            drop(self.permit.split(held - bytes));
        }
    }
}

impl Drop for AnswerRoom {
    fn drop(&mut self) {
        self.taken.decrement(self.permit.num_permits() as f64);
    }
}

/// 503: there is no memory for the answer.
pub(super) fn scarce() -> Problem {
    Problem::new(
        Code::Overloaded,
        "all memory for answers is in use; try again later, or raise `server.answers_bytes_max`",
    )
}

/// The memory for one line of a bulk answer, counted against the share of its request and against the total.
pub(crate) struct LineRoom {
    own: AnswerRoom,
    shared: AnswerRoom,
}

impl LineRoom {
    pub(super) fn new(own: AnswerRoom, shared: AnswerRoom) -> Self {
        Self { own, shared }
    }

    pub(super) fn json_bytes_max(&self) -> usize {
        self.own.json_bytes_max()
    }

    pub(super) fn is_made(&mut self, json_bytes: usize) {
        self.own.is_made(json_bytes);
        self.shared.is_made(json_bytes);
    }

    pub(super) fn shrink(&mut self, bytes: usize) {
        self.own.shrink(bytes);
        self.shared.shrink(bytes);
    }
}

/// A value to answer as JSON, with the memory reserved for it.
pub struct Answer<T> {
    value: T,
    write: fn(&T, &mut Pieces) -> io::Result<()>,
    room: AnswerRoom,
}

impl<T: Serialize> Answer<T> {
    pub(super) fn new(value: T, room: AnswerRoom) -> Self {
        let write = |value: &T, pieces: &mut Pieces| {
            pieces.json(value);
            Ok(())
        };
        Self::written(value, write, room)
    }
}

impl<T> Answer<T> {
    /// Makes an answer of a value that `write` writes as JSON.
    pub(super) fn written(value: T, write: fn(&T, &mut Pieces) -> io::Result<()>, room: AnswerRoom) -> Self {
        Self { value, write, room }
    }
}

impl<T> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let Self { value, write, room } = self;
        let mut pieces = Pieces::default();
        write(&value, &mut pieces).expect("memory takes everything, and an answer is always JSON");
        drop(value);
        pieces.into_response(room)
    }
}

/// JSON in pieces, while it is being written.
#[derive(Default)]
pub(super) struct Pieces {
    full: VecDeque<Bytes>,
    last: BytesMut,
    bytes: usize,
}

impl Pieces {
    pub(super) fn json(&mut self, value: &impl Serialize) {
        serde_json::to_writer(self, value).expect("an answer is always JSON");
    }

    pub(super) fn text(&mut self, text: &str) {
        io::Write::write_all(self, text.as_bytes()).expect("memory takes everything");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Inserts `front` before these pieces.
    pub(super) fn prepend(&mut self, mut front: Self) {
        front.finish();
        self.bytes += front.bytes;
        front.full.append(&mut self.full);
        self.full = front.full;
    }

    fn finish(&mut self) {
        if !self.last.is_empty() {
            self.full.push_back(self.last.split().freeze());
        }
    }

    pub(super) fn into_response(self, mut room: AnswerRoom) -> Response {
        room.shrink(self.bytes);
        let body = Body::new(Sent { full: self.full, last: self.last.freeze(), left: self.bytes, room });
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == PIECE_BYTES {
            self.finish();
        }
        if self.last.len() == self.last.capacity() {
            let wanted = (self.last.len() * 2).clamp(PIECE_BYTES_FIRST, PIECE_BYTES);
            // An answer that fills its first piece is long, so more bytes are likely to follow.
            let wanted = if self.full.is_empty() { wanted } else { PIECE_BYTES };
            self.last.reserve(wanted - self.last.len());
        }
        let room = (self.last.capacity() - self.last.len()).min(PIECE_BYTES - self.last.len());
        let written = bytes.len().min(room);
        self.last.extend_from_slice(&bytes[..written]);
        self.bytes += written;
        Ok(written)
    }

    // JSON is written in dozens of tiny parts, which nearly always fit.
    #[inline]
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= self.last.capacity().min(PIECE_BYTES) - self.last.len() {
            self.last.extend_from_slice(bytes);
            self.bytes += bytes.len();
            return Ok(());
        }
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An answer that is being sent, with the memory reserved for it.
struct Sent {
    full: VecDeque<Bytes>,
    last: Bytes,
    left: usize,
    room: AnswerRoom,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // The previous piece has been sent when the next one is requested. The last piece has been sent when this body
        // is dropped.
        let left = self.left;
        self.room.shrink(left);
        let piece = self.full.pop_front().unwrap_or_else(|| std::mem::take(&mut self.last));
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        self.left -= piece.len();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_in_pieces_says_what_it_says_whole_and_gives_room_back_as_it_goes() {
        let answers = Answers::new(10 << 20);
        let value: Vec<String> = (0..5_000).map(|number| format!("\"{number}\" and more")).collect();
        let room = answers.take(1 << 20).unwrap();
        assert_eq!(answers.free.available_permits(), 8 << 20);
        let whole = serde_json::to_vec(&value).unwrap();
        let mut body = Answer::new(value, room).into_response().into_body();
        assert_eq!(answers.free.available_permits(), (10 << 20) - whole.len());
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut seen = Vec::new();
        while let Some(frame) = futures::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            assert_eq!(answers.free.available_permits(), (10 << 20) - (whole.len() - seen.len()));
            seen.extend_from_slice(&piece);
        }
        assert!(seen == whole);
    }

    #[test]
    fn scarce_memory_makes_answers_shorter_and_then_refuses() {
        let answers = Answers::new(1 << 20);
        let mut held = Vec::new();
        let refused = loop {
            match answers.take(1 << 20) {
                Ok(room) => held.push(room),
                Err(problem) => break problem,
            }
        };
        assert_eq!(refused.code, Code::Overloaded);
        assert!(refused.retry_after.is_some());
        let bytes: Vec<usize> = held.iter().map(AnswerRoom::json_bytes_max).collect();
        assert!(bytes[0] == 1 << 18 && bytes.is_sorted_by(|a, b| a >= b), "{bytes:?}");
        assert_eq!(bytes.last(), Some(&(ROOM_BYTES_MIN / 2)));
        drop(held);
        assert!(answers.take(100).is_ok());
        assert_eq!(answers.free.available_permits(), 1 << 20);
        assert_eq!(answers.take(1 << 20).unwrap().json_bytes_max(), answers.longest());
    }

    // One HTTP/2 connection requested 75 long answers and read none of them. Until the server gave them up, a minute
    // later, the checks of every other client failed with 503, although their answers have only a few hundred bytes.
    #[test]
    fn long_answers_that_are_not_taken_leave_room_for_short_ones() {
        let answers = Answers::new(1 << 20).keeping_some_for_short_ones();
        let mut held = Vec::new();
        while let Ok(room) = answers.take(1 << 20) {
            held.push(room);
        }
        let mut short: Vec<AnswerRoom> = std::iter::from_fn(|| answers.take(SHORT_BYTES_MAX).ok()).collect();
        assert_eq!(short.len(), (1 << 17) / ROOM_BYTES_MIN);
        // Once these answers are built, there is memory for other answers.
        short.iter_mut().for_each(|room| room.is_made(300));
        assert!(answers.take(SHORT_BYTES_MAX).is_ok());
        drop((held, short));
        assert_eq!(answers.free.available_permits() + answers.kept.available_permits(), 1 << 20);
    }
}
