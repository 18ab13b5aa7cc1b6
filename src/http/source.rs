//! A bulk request's body -> its documents, one line after another, while it is still arriving.
//! Bounds what a client makes the server wait for, decode and keep: bytes, lines, the time that a line takes to arrive,
//! and memory. Knows nothing of answers.
//!
//! Memory: a request has [`BEGUN_BYTES`] for a line that has begun. A longer one takes one of a few places for long
//! lines, and at once all the room that it can need: a request that has room never waits for more, so none waits for
//! ever. Without the places 32 lines that never end would take nearly all of the room; without "at once" a line as long as
//! all of the room would wait for what it holds itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::answer::{Answers, LineRoom};
use super::body::{self, Budget, Patience, Room};
use super::error::{Code, Problem};
use super::leftover;
use super::lines::{Line, Splitter};
use super::state::AppState;
use super::work::{Input, Op, Work};
use crate::collections::Collection;

/// Bytes of a line that has begun which each request has memory for.
const BEGUN_BYTES: usize = 256 * 1024;
/// Lines of fewer bytes are copied out of the piece that they came in, so that they do not keep all of it.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// The lines of a request, as they arrive.
pub(super) struct Source {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    splitter: Splitter,
    /// Memory for the pieces.
    buffer: BytesMut,
    bytes: u64,
    bytes_max: u64,
    lines_max: u64,
    line_bytes_max: usize,
    /// Most bytes in a row that come to no answer: a client that has left is noticed when answers are sent.
    barren_bytes_max: u64,
    /// A client that waits for answers before it sends more may be idle between two lines, once it has sent one.
    duplex: bool,
    idle_timeout: Duration,
    patience: Patience,
    stop: futures::future::BoxFuture<'static, ()>,
    budget: Budget,
    room_timeout: Duration,
    long_lines: Arc<Semaphore>,
    /// A place for a long line, and its room, while it arrives.
    long: Option<(OwnedSemaphorePermit, Room)>,
    op: Op,
    collection: Collection,
    /// Most bytes of a line's answer.
    answer_bytes_max: usize,
    /// Memory for the answers of this request, and of all bulk requests.
    answers: [Answers; 2],
    _window: Room,
    ended: bool,
    /// Why the lines end before the body does.
    fatal: Option<Problem>,
}

impl Source {
    /// Nothing has been read yet. `window` is the room that the decoder takes.
    pub(super) fn new(
        state: &AppState,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        duplex: bool,
        work: &Work,
        window: Room,
    ) -> Self {
        let limits = *state.limits();
        let draining = state.draining().clone();
        let stop = async move {
            draining.cancelled().await;
            // A bounded request may still end by itself; an endless one will not.
            if !duplex {
                tokio::time::sleep(limits.drain_timeout / 2).await;
            }
        };
        Self {
            reader,
            splitter: Splitter::new(limits.bulk_line_bytes_max),
            buffer: BytesMut::new(),
            bytes: 0,
            bytes_max: if duplex { u64::MAX } else { limits.bulk_body_bytes_max },
            lines_max: if duplex { u64::MAX } else { limits.bulk_lines_max },
            line_bytes_max: limits.bulk_line_bytes_max,
            barren_bytes_max: limits.bulk_body_bytes_max,
            duplex,
            idle_timeout: limits.bulk_idle_timeout,
            patience: Patience::new(limits.request_timeout, limits.body_bytes_per_second_min),
            stop: Box::pin(stop),
            budget: state.budget().clone(),
            room_timeout: limits.request_timeout,
            long_lines: Arc::clone(state.long_lines()),
            long: None,
            op: work.op,
            collection: work.collection.clone(),
            answer_bytes_max: work.op.answer_bytes_max().min(limits.answer_bytes_max),
            // While as much is held unread as may be, there is room to answer what has begun.
            answers: [
                Answers::of_one_request(limits.bulk_answer_buffer_bytes_max + 2 * limits.answer_bytes_max),
                state.bulk_answers().clone(),
            ],
            _window: window,
            ended: false,
            fatal: None,
        }
    }

    /// Lines begun so far, blank ones included.
    pub(super) fn lines(&self) -> u64 {
        self.splitter.lines()
    }

    /// Why the lines ended before the body did.
    pub(super) fn fatal(&mut self) -> Option<Problem> {
        self.fatal.take()
    }

    /// The next line that is not blank; `None` after the last, or when something ended the lines.
    pub(super) async fn next(&mut self) -> Option<Input<u64>> {
        let input = match self.next_line().await {
            Ok(line) => self.input(line?).await,
            Err(problem) => Err(problem),
        };
        input.map_err(|problem| self.fatal = Some(problem)).ok()
    }

    /// Reads on, keeping nothing.
    pub(super) async fn throw_away(&mut self) {
        let mut seen = 0;
        while seen < leftover::BYTES_MAX
            && let Ok(Some(piece)) = body::piece(&mut self.reader, &mut self.buffer).await
        {
            seen += piece.len();
        }
    }

    /// Each round reads or looks at one piece, and each piece is followed by a pause: see [`pace`](super::pace).
    async fn next_line(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            let line = self.splitter.next_line();
            let line = line.or_else(|| self.ended.then(|| self.splitter.end()).flatten());
            let ended = line.as_ref().map_or(self.splitter.ended(), |line| line.number);
            if ended > self.lines_max {
                let detail = format!("a bulk request has at most {} lines; ?duplex=true lifts this", self.lines_max);
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if line.is_some() || self.ended {
                return Ok(line);
            }
            if self.splitter.barren() > self.barren_bytes_max {
                let detail = format!(
                    "blank lines in a row, or one line, have at most {} bytes; ?duplex=true does not lift this",
                    self.barren_bytes_max
                );
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if self.splitter.held() <= BEGUN_BYTES {
                self.long = None;
            } else if self.long.is_none() {
                self.long = Some(self.long_line().await?);
            }
            self.fill().await?;
        }
    }

    async fn input(&mut self, Line { number, text }: Line) -> Result<Input<u64>, Problem> {
        let long = self.long.take();
        let Some(mut json) = text else {
            let detail = format!("a line has at most {} bytes", self.line_bytes_max);
            let json = Err(Problem::new(Code::TooLarge, detail));
            return Ok(Input { tag: number, json, room: None, answer_bytes_max: 0, answer: None });
        };
        if number == 1 && json.starts_with(b"\xEF\xBB\xBF") {
            json = json.slice(3..);
        }
        if json.len() < COPIED_BYTES_MAX {
            json = Bytes::copy_from_slice(&json);
        }
        let bytes = body::json_bytes(&json).await + self.op.shingle_bytes(&self.collection, json.len());
        let room = match long {
            Some((_place, mut room)) if bytes <= room.bytes() => {
                room.shrink(bytes);
                room
            }
            // Its place bounds how many such lines wait; room that it held could be what they wait for.
            Some((_place, room)) => {
                drop(room);
                self.room(bytes).await?
            }
            None => self.room(bytes).await?,
        };
        // Last, and by everyone: a line that has room for its answer waits for nothing more.
        let (bytes, [own, shared]) = (self.answer_bytes_max, self.answers.clone());
        let own = self.unless_stopped(own.wait(bytes)).await?;
        let shared = self.unless_stopped(shared.wait(bytes)).await?;
        let answer = Some(LineRoom { own, shared });
        Ok(Input { tag: number, json: Ok(json), room: Some(room), answer_bytes_max: bytes, answer })
    }

    /// Waits for a place for a long line, and for all the room that the line can need as it arrives.
    async fn long_line(&mut self) -> Result<(OwnedSemaphorePermit, Room), Problem> {
        let places = Arc::clone(&self.long_lines);
        let place = async move { places.acquire_owned().await.expect("the places are never closed") };
        let place = self.in_time(place).await?;
        let room = self.room(2 * self.line_bytes_max).await?;
        Ok((place, room))
    }

    async fn room(&mut self, bytes: usize) -> Result<Room, Problem> {
        let budget = self.budget.clone();
        self.in_time(async move { budget.wait(bytes).await }).await
    }

    /// What others give back, for as long as a client may keep the server waiting, and not beyond a stop.
    async fn in_time<T>(&mut self, given: impl Future<Output = T>) -> Result<T, Problem> {
        let given = timeout(self.room_timeout, given);
        self.unless_stopped(given).await?.map_err(|_| {
            let detail = "the memory for request bodies is used up; later lines were not read";
            Problem::new(Code::Overloaded, detail)
        })
    }

    /// What comes by itself in time: a client that does not read its answers is cut off, and their room is free.
    async fn unless_stopped<T>(&mut self, given: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::select! {
            biased;
            () = &mut self.stop => Err(shutting_down()),
            given = given => Ok(given),
        }
    }

    /// Reads one piece.
    async fn fill(&mut self) -> Result<(), Problem> {
        let idle = self.duplex && self.splitter.ended() > 0 && !self.splitter.begun();
        if idle {
            self.patience.renew();
        }
        let (begun, left) = (Instant::now(), if idle { self.idle_timeout } else { self.patience.left() });
        let piece = tokio::select! {
            // First, because what is to be decoded is always ready.
            biased;
            () = &mut self.stop => return Err(shutting_down()),
            piece = timeout(left, body::piece(&mut self.reader, &mut self.buffer)) => piece,
        };
        let piece = piece.map_err(|_| self.stalled(idle))?.map_err(|error| body::broken(&error))?;
        let Some(piece) = piece else {
            self.ended = true;
            return Ok(());
        };
        if !idle {
            self.patience.waited(begun.elapsed(), piece.len());
        }
        self.bytes += piece.len() as u64;
        if self.bytes > self.bytes_max {
            let detail = format!("a bulk body has at most {} bytes; ?duplex=true lifts this", self.bytes_max);
            return Err(Problem::new(Code::TooLarge, detail));
        }
        self.splitter.feed(piece);
        Ok(())
    }

    fn stalled(&self, idle: bool) -> Problem {
        let detail = match idle {
            true => format!("nothing arrived for {} s", self.idle_timeout.as_secs_f64()),
            false => self.patience.exhausted(),
        };
        Problem::new(Code::Stalled, format!("{detail}; later lines were not read"))
    }
}

fn shutting_down() -> Problem {
    Problem::new(Code::ShuttingDown, "the server is going down; later lines were not read")
}
