//! Memory for the lines of a bulk request and for their answers. If there is no memory, the request waits.
//!
//! Each request has [`BEGUN_BYTES`] for a line that has begun. A longer line first needs one of a few places for long
//! lines. Then the line reserves all the memory that it can need, in one step. A request that holds memory never waits
//! for more, so no request waits for ever. (The memory of its decoder is counted separately, and no line waits for
//! that.) Without the places, 32 lines that never end would take nearly all memory. If a line took its memory bit by
//! bit, a very long line would wait for memory that it holds itself.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::shutdown::Shutdown;
use crate::http::answer::{Answers, LineRoom};
use crate::http::body::{Budget, Room};
use crate::http::error::{Code, Problem};
use crate::http::state::AppState;

/// The memory that each request has for a line that has begun.
const BEGUN_BYTES: usize = 256 * 1024;

/// The memory of one request.
pub(super) struct LineRooms {
    budget: Budget,
    timeout: Duration,
    line_bytes_max: usize,
    long_lines: Arc<Semaphore>,
    /// The threads on which the waits run.
    threads: Handle,
    /// The place and the memory of a long line while it arrives.
    long: Option<(OwnedSemaphorePermit, Room)>,
    /// An upper bound on the size of a line's answer, in bytes.
    answer_bytes_max: usize,
    /// The memory for the answers of this request, and the memory for the answers of all bulk requests.
    answers: [Answers; 2],
}

impl LineRooms {
    /// Reserves nothing yet. No answer may exceed `answer_bytes_max` bytes.
    pub(super) fn new(state: &AppState, answer_bytes_max: usize) -> Self {
        let limits = state.limits();
        Self {
            budget: state.budget().clone(),
            timeout: limits.request_timeout,
            line_bytes_max: limits.bulk_line_bytes_max,
            long_lines: Arc::clone(state.long_lines()),
            threads: state.stream_threads().handle().clone(),
            long: None,
            answer_bytes_max: answer_bytes_max.min(limits.answer_bytes_max),
            // Even if the client leaves as much unread as it may, this is enough memory to answer the lines that have
            // begun.
            answers: [
                Answers::of_one_request(limits.bulk_answer_buffer_bytes_max + 2 * limits.answer_bytes_max),
                state.bulk_answers().clone(),
            ],
        }
    }

    pub(super) fn answer_bytes_max(&self) -> usize {
        self.answer_bytes_max
    }

    /// Must be called before the server reads more of a line that has `held` bytes so far. If the line is long, waits
    /// for a place for long lines, and for all the memory that the line can need while it arrives.
    pub(super) async fn hold(&mut self, held: usize, shutdown: &mut Shutdown) -> Result<(), Problem> {
        if held <= BEGUN_BYTES {
            self.long = None;
        } else if self.long.is_none() {
            let take = || {
                let places = Arc::clone(&self.long_lines);
                async move { places.acquire_owned().await.expect("the places are never closed") }
            };
            let place = self.in_time(take, "request bodies", shutdown).await?;
            let room = self.room(2 * self.line_bytes_max, shutdown).await?;
            self.long = Some((place, room));
        }
        Ok(())
    }

    /// Whether the line that is arriving, or has just arrived, holds a place for long lines.
    pub(super) fn has_long(&self) -> bool {
        self.long.is_some()
    }

    /// Gives back the memory of a line that is skipped.
    pub(super) fn pass_over(&mut self) {
        self.long = None;
    }

    /// Reserves memory for a whole line that takes `bytes` bytes while it is worked on.
    pub(super) async fn line(&mut self, bytes: usize, shutdown: &mut Shutdown) -> Result<Room, Problem> {
        match self.long.take() {
            Some((_place, mut room)) if bytes <= room.bytes() => {
                room.shrink(bytes);
                Ok(room)
            }
            // The places limit how many such lines wait. The memory is given back before the wait, because the line
            // would otherwise wait for memory that it holds itself.
            Some((_place, room)) => {
                drop(room);
                self.room(bytes, shutdown).await
            }
            None => self.room(bytes, shutdown).await,
        }
    }

    /// Reserves memory for a line's answer.
    pub(super) async fn answer(&self, shutdown: &mut Shutdown) -> Result<LineRoom, Problem> {
        let ([own, shared], bytes) = (&self.answers, self.answer_bytes_max);
        // Only the client frees this memory, by reading its answers. Another limit applies to how long that may take.
        let own = shutdown.unless(own.wait(bytes)).await?;
        let take = || {
            let shared = shared.clone();
            async move { shared.wait(bytes).await }
        };
        let shared = self.in_time(take, "answers", shutdown).await?;
        Ok(LineRoom::new(own, shared))
    }

    async fn room(&self, bytes: usize, shutdown: &mut Shutdown) -> Result<Room, Problem> {
        let take = || {
            let budget = self.budget.clone();
            async move { budget.wait(bytes).await }
        };
        self.in_time(take, "request bodies", shutdown).await
    }

    /// Waits until other requests give back memory or places. Waits at most for `request_timeout`, and ends when the
    /// server is told to stop. The wait is a separate task, because this stream is not polled while its client reads
    /// nothing. A wait that is not polled would keep its place in the queue and block all others behind it.
    async fn in_time<F: Future<Output: Send + 'static> + Send + 'static>(
        &self,
        take: impl Fn() -> F,
        memory_for: &str,
        shutdown: &mut Shutdown,
    ) -> Result<F::Output, Problem> {
        if let Some(given) = take().now_or_never() {
            return Ok(given);
        }
        let given = AbortOnDropHandle::new(self.threads.spawn(take()));
        let given = shutdown.unless(timeout(self.timeout, given)).await?.map_err(|_| {
            let detail =
                format!("all memory for {memory_for} is in use; later lines were not read and can be sent again");
            Problem::new(Code::Overloaded, detail)
        })?;
        given.map_err(|error| Problem::internal(&error.to_string()))
    }
}
