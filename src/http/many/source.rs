//! A bulk request's body -> its documents, line by line, while it is still arriving.
//! Limits the work and memory that a client can cause: lines, bytes in a line, and bytes that produce no answer. Knows
//! nothing of answers.

use bytes::Bytes;
use tokio::io::AsyncRead;

use super::feed::Feed;
use super::lines::{NumberedLine, Splitter};
use super::rooms::LineRooms;
use super::shutdown::Shutdown;
use super::states::{Input, too_long};
use super::work::DocumentWork;
use crate::http::body::{self, Window};
use crate::http::dto::document::BYTE_ORDER_MARK;
use crate::http::error::{Code, Problem};
use crate::http::quota::Quota;
use crate::http::state::AppState;

/// Lines shorter than this are copied out of their piece, so that they do not keep the whole piece in memory.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// The lines of a request, as they arrive.
pub(super) struct LineSource {
    feed: Feed,
    splitter: Splitter,
    rooms: LineRooms,
    shutdown: Shutdown,
    lines_max: u64,
    line_bytes_max: usize,
    /// The most bytes in a row that may produce no answer. The server notices that a client has left only when it sends
    /// an answer.
    barren_bytes_max: u64,
    /// Whether the request is duplex. After its first line, a duplex client may be idle between two lines, because it
    /// may wait for answers before it sends more.
    duplex: bool,
    work: DocumentWork,
    ended: bool,
    /// The reason why the lines ended before the body did.
    fatal: Option<Problem>,
}

impl LineSource {
    /// Reads nothing yet. `window` is the memory reserved for the decoder.
    pub(super) fn new(
        state: &AppState,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        duplex: bool,
        work: &DocumentWork,
        window: Window,
        quota: Quota,
    ) -> Self {
        let limits = state.limits();
        Self {
            feed: Feed::new(limits, reader, duplex, window, quota).asking(work.lookups()),
            splitter: Splitter::new(limits.bulk_line_bytes_max),
            rooms: LineRooms::new(state, work.answer_bytes_max()),
            shutdown: Shutdown::new(state, work.caller().clone(), duplex),
            lines_max: if duplex { u64::MAX } else { limits.bulk_lines_max },
            line_bytes_max: limits.bulk_line_bytes_max,
            barren_bytes_max: limits.bulk_body_bytes_max,
            duplex,
            work: work.clone(),
            ended: false,
            fatal: None,
        }
    }

    /// Returns the number of lines that have begun so far, including blank ones.
    pub(super) fn lines(&self) -> u64 {
        self.splitter.lines()
    }

    /// Returns the reason why the lines ended before the body did.
    pub(super) fn fatal(&mut self) -> Option<Problem> {
        self.fatal.take()
    }

    /// Returns the next line that is not blank; `None` after the last one, or if reading failed.
    pub(super) async fn next(&mut self) -> Option<Input<u64>> {
        let input = match self.paid_line().await {
            Ok(line) => self.input(line?).await,
            Err(problem) => Err(problem),
        };
        input.map_err(|problem| self.fatal = Some(problem)).ok()
    }

    /// Reads and discards the rest.
    pub(super) async fn throw_away(&mut self) {
        self.feed.throw_away().await;
    }

    /// Returns the next line once the client's limits allow it. A long line does not wait here, because it holds a
    /// place and memory that other requests need.
    async fn paid_line(&mut self) -> Result<Option<NumberedLine>, Problem> {
        self.feed.settle(&mut self.shutdown).await?;
        let line = self.next_line().await?;
        if line.is_some() {
            self.feed.pay_for_line(self.rooms.has_long(), &mut self.shutdown).await?;
        }
        Ok(line)
    }

    /// Each round reads or searches one piece, and a pause follows each piece; see [`pace`](crate::http::pace).
    async fn next_line(&mut self) -> Result<Option<NumberedLine>, Problem> {
        loop {
            let line = self.splitter.next_line();
            let line = line.or_else(|| self.ended.then(|| self.splitter.end()).flatten());
            let ended = line.as_ref().map_or(self.splitter.ended(), |line| line.number);
            if ended > self.lines_max {
                let detail = format!(
                    "the request has more than {} lines (`server.bulk_lines_max`); ?duplex=true lifts this limit",
                    self.lines_max
                );
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if line.is_some() || self.ended {
                return Ok(line);
            }
            if self.splitter.barren() > self.barren_bytes_max {
                let detail = format!(
                    "a line, or a run of blank lines, is longer than {} bytes (`server.bulk_body_bytes_max`); ?duplex=true does not lift this limit",
                    self.barren_bytes_max
                );
                return Err(Problem::new(Code::TooLarge, detail));
            }
            if self.splitter.held() == 0 {
                self.feed.bytes_due(&mut self.shutdown).await?;
            }
            self.rooms.hold(self.splitter.held(), &mut self.shutdown).await?;
            // A duplex client may wait for answers before it sends more, so it gets time between two lines.
            let idle = self.duplex && self.splitter.ended() > 0 && !self.splitter.begun();
            match self.feed.next(idle, &mut self.shutdown).await? {
                Some(piece) => self.splitter.feed(piece),
                None => self.ended = true,
            }
        }
    }

    async fn input(&mut self, NumberedLine { number, text }: NumberedLine) -> Result<Input<u64>, Problem> {
        let Some(mut json) = text else {
            self.rooms.pass_over();
            let json = Err(too_long(self.line_bytes_max));
            return Ok(Input { tag: number, json, room: None, answer_bytes_max: 0, answer: None });
        };
        if number == 1 && json.starts_with(BYTE_ORDER_MARK.as_bytes()) {
            json = json.slice(BYTE_ORDER_MARK.len()..);
        }
        if json.len() < COPIED_BYTES_MAX {
            json = Bytes::copy_from_slice(&json);
        }
        let bytes = body::json_bytes(&json).await + self.work.shingle_bytes(json.len());
        let room = self.rooms.line(bytes, &mut self.shutdown).await?;
        // Every line reserves this memory last. So a line that has memory for its answer waits for nothing else.
        let answer = Some(self.rooms.answer(&mut self.shutdown).await?);
        let answer_bytes_max = self.rooms.answer_bytes_max();
        Ok(Input { tag: number, json: Ok(json), room: Some(room), answer_bytes_max, answer })
    }
}
