//! Memory for a bulk request's lines and for their answers, waited for.
//!
//! A request has [`BEGUN_BYTES`] for a line that has begun. A longer one takes one of a few places for long
//! lines, and at once all the room that it can need: a request that has room never waits for more, so none waits for
//! ever. Without the places 32 lines that never end would take nearly all of the room; without "at once" a line as long as
//! all of the room would wait for what it holds itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::shutdown::Shutdown;
use crate::http::answer::{Answers, LineRoom};
use crate::http::body::{Budget, Room};
use crate::http::error::{Code, Problem};
use crate::http::state::AppState;

/// Bytes of a line that has begun which each request has memory for.
const BEGUN_BYTES: usize = 256 * 1024;

/// The memory of one request.
pub(super) struct LineRooms {
    budget: Budget,
    timeout: Duration,
    line_bytes_max: usize,
    long_lines: Arc<Semaphore>,
    /// A place for a long line, and its room, while it arrives.
    long: Option<(OwnedSemaphorePermit, Room)>,
    /// Most bytes of a line's answer.
    answer_bytes_max: usize,
    /// Memory for the answers of this request, and of all bulk requests.
    answers: [Answers; 2],
}

impl LineRooms {
    /// Nothing is taken yet. An answer of more than `answer_bytes_max` bytes cannot be.
    pub(super) fn new(state: &AppState, answer_bytes_max: usize) -> Self {
        let limits = state.limits();
        Self {
            budget: state.budget().clone(),
            timeout: limits.request_timeout,
            line_bytes_max: limits.bulk_line_bytes_max,
            long_lines: Arc::clone(state.long_lines()),
            long: None,
            answer_bytes_max: answer_bytes_max.min(limits.answer_bytes_max),
            // While as much is held unread as may be, there is room to answer what has begun.
            answers: [
                Answers::of_one_request(limits.bulk_answer_buffer_bytes_max + 2 * limits.answer_bytes_max),
                state.bulk_answers().clone(),
            ],
        }
    }

    /// Most bytes of a line's answer.
    pub(super) fn answer_bytes_max(&self) -> usize {
        self.answer_bytes_max
    }

    /// Before more is read of a line of which `held` bytes are there: waits for a place for a long line, and for all the
    /// room that the line can need as it arrives.
    pub(super) async fn hold(&mut self, held: usize, shutdown: &mut Shutdown) -> Result<(), Problem> {
        if held <= BEGUN_BYTES {
            self.long = None;
        } else if self.long.is_none() {
            let places = Arc::clone(&self.long_lines);
            let place = async move { places.acquire_owned().await.expect("the places are never closed") };
            let place = self.in_time(place, shutdown).await?;
            let room = self.room(2 * self.line_bytes_max, shutdown).await?;
            self.long = Some((place, room));
        }
        Ok(())
    }

    /// The line is not kept.
    pub(super) fn pass_over(&mut self) {
        self.long = None;
    }

    /// Room for a line that is there, and takes `bytes` bytes while it is worked on.
    pub(super) async fn line(&mut self, bytes: usize, shutdown: &mut Shutdown) -> Result<Room, Problem> {
        match self.long.take() {
            Some((_place, mut room)) if bytes <= room.bytes() => {
                room.shrink(bytes);
                Ok(room)
            }
            // Its place bounds how many such lines wait; room that it held could be what they wait for.
            Some((_place, room)) => {
                drop(room);
                self.room(bytes, shutdown).await
            }
            None => self.room(bytes, shutdown).await,
        }
    }

    /// Room for a line's answer. It comes by itself in time: a client that does not read its answers is cut off, and their
    /// room is free.
    pub(super) async fn answer(&self, shutdown: &mut Shutdown) -> Result<LineRoom, Problem> {
        let [own, shared] = &self.answers;
        let own = shutdown.unless(own.wait(self.answer_bytes_max)).await?;
        let shared = shutdown.unless(shared.wait(self.answer_bytes_max)).await?;
        Ok(LineRoom::new(own, shared))
    }

    async fn room(&self, bytes: usize, shutdown: &mut Shutdown) -> Result<Room, Problem> {
        self.in_time(self.budget.wait(bytes), shutdown).await
    }

    /// What others give back, for as long as a client may keep the server waiting, and not beyond a stop.
    async fn in_time<T>(&self, given: impl Future<Output = T>, shutdown: &mut Shutdown) -> Result<T, Problem> {
        shutdown.unless(timeout(self.timeout, given)).await?.map_err(|_| {
            let detail = "the memory for request bodies is used up; later lines were not read";
            Problem::new(Code::Overloaded, detail)
        })
    }
}
