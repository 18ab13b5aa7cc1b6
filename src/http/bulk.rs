//! A body of JSON lines -> a body of JSON lines, while it is still arriving.
//! Reading, working and writing go on side by side. What is not read by the client is kept up to a bound; then
//! reading stops; then, after a while, the stream is ended with a `fatal` line. Without a `summary` line at its
//! end an answer is not complete.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::Serialize;
use tokio::io::AsyncRead;
use tokio::sync::{Notify, mpsc};
use tracing::Instrument;

use super::answer::{LineRoom, PIECE_BYTES};
use super::body::Room;
use super::dto::summary::Summary;
use super::dto::verdict::VerdictBody;
use super::error::{Code, Problem, ProblemBody};
use super::leftover;
use super::source::Source;
use super::state::{AppState, Place};
use super::work::{Answer, Work};
use crate::telemetry::names::{self, label};

/// Answers handed to the connection at once.
const ANSWERS_AT_ONCE: usize = 256;

/// One bulk request.
pub struct Bulk {
    /// What is done with each line.
    pub work: Work,
    /// Lifts the bounds on bytes and lines.
    pub duplex: bool,
    /// For the problems in it.
    pub request_id: String,
    /// Its place among the bulk requests.
    pub(super) place: Place,
    /// The room that its decoder takes.
    pub(super) window: Room,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum AnswerLine {
    Verdict {
        line: u64,
        #[serde(flatten)]
        verdict: VerdictBody,
    },
    Deleted {
        line: u64,
        id: String,
        deleted: u64,
    },
    Error {
        line: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        error: ProblemBody,
    },
    Fatal {
        line: u64,
        error: ProblemBody,
    },
    Summary {
        lines: u64,
        summary: Summary,
    },
}

impl AnswerLine {
    fn kind(&self) -> &'static str {
        match self {
            Self::Verdict { .. } => "verdict",
            Self::Deleted { .. } => "deleted",
            Self::Error { .. } => "error",
            Self::Fatal { .. } => "fatal",
            Self::Summary { .. } => "summary",
        }
    }
}

impl Bulk {
    /// Starts the work; the answer's body ends when it is done.
    pub fn start(self, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>) -> Body {
        let limits = state.limits();
        let (writer, body) = answers(limits.bulk_answer_buffer_bytes_max, limits.bulk_stall_timeout);
        let state = state.clone();
        let run = async move {
            tokio::select! {
                // The client has gone: what is decided is kept, the rest is not begun.
                () = writer.gone() => tracing::debug!("bulk client left"),
                () = self.run(&state, reader, &writer) => {}
            }
        };
        tokio::spawn(run.in_current_span());
        body
    }

    async fn run(self, state: &AppState, reader: Box<dyn AsyncRead + Send + Unpin>, writer: &Writer) {
        let Self { work, duplex, request_id, place, window } = self;
        let collection = work.collection.clone();
        let mut source = Source::new(state, reader, duplex, &work, window);
        let mut summary = Summary::default();
        let mut last_line = 0;
        let stalled = {
            let inputs = futures::stream::unfold(&mut source, async |source| Some((source.next().await?, source)));
            let mut answers = std::pin::pin!(work.answers(inputs));
            loop {
                let Some((line, answer, room)) = answers.next().await else { break false };
                last_line = line;
                let line = match answer {
                    Answer::Verdict(verdict) => {
                        summary.verdict(&verdict);
                        AnswerLine::Verdict { line, verdict: VerdictBody::new(collection.name(), verdict) }
                    }
                    Answer::Deleted { id, was_there } => {
                        summary.deletion(was_there);
                        AnswerLine::Deleted { line, id: id.as_str().to_owned(), deleted: was_there.into() }
                    }
                    Answer::Failed { id, problem } => {
                        summary.error();
                        let id = id.map(|id| id.as_str().to_owned());
                        AnswerLine::Error { line, id, error: problem.into_body(&request_id) }
                    }
                };
                if writer.write(&line, room).await.is_err() {
                    break true;
                }
            }
        };
        let fatal = if stalled {
            Some(Problem::new(Code::Stalled, "the answers were not read; what follows this line was not answered"))
        } else {
            source.fatal()
        };
        match fatal {
            Some(problem) => {
                writer.push(&AnswerLine::Fatal { line: last_line, error: problem.into_body(&request_id) }, None);
                // Closing on unread bytes would reset the connection, and the line be lost on its way.
                let courtesy = if stalled { state.limits().bulk_stall_timeout } else { leftover::TIME_MAX };
                let _ = tokio::time::timeout(courtesy, source.throw_away()).await;
            }
            None => writer.push(&AnswerLine::Summary { lines: source.lines(), summary }, None),
        }
        drop(place);
    }
}

/// The end of the answers where they are made.
struct Writer {
    lines: mpsc::UnboundedSender<Unread>,
    held: Arc<Held>,
    held_max: usize,
    stall_timeout: Duration,
}

/// A line that the connection has not taken, and its room.
type Unread = (Bytes, Option<LineRoom>);

/// Bytes of answers that the connection has not taken.
#[derive(Default)]
struct Held {
    bytes: AtomicUsize,
    taken: Notify,
}

/// The client has not read for too long.
struct Stalled;

fn answers(held_max: usize, stall_timeout: Duration) -> (Writer, Body) {
    let (lines, mut receiver) = mpsc::unbounded_channel::<Unread>();
    let held = Arc::new(Held::default());
    let writer = Writer { lines, held: Arc::clone(&held), held_max, stall_timeout };
    let (mut batch, mut unread) = (Vec::with_capacity(ANSWERS_AT_ONCE), VecDeque::new());
    let stream = futures::stream::poll_fn(move |cx| {
        if unread.is_empty() {
            ready!(receiver.poll_recv_many(cx, &mut batch, ANSWERS_AT_ONCE));
            unread.extend(batch.drain(..));
        }
        let piece = joined(&mut unread);
        held.bytes.fetch_sub(piece.len(), Ordering::AcqRel);
        held.taken.notify_one();
        Poll::Ready((!piece.is_empty()).then_some(Ok::<_, std::convert::Infallible>(piece)))
    });
    (writer, Body::from_stream(stream))
}

/// Some of the first lines, in memory of its own: joined, so that a thousand short lines are not a thousand chunks, and
/// in pieces, so that a long one does not stay whole until its end is taken.
fn joined(unread: &mut VecDeque<Unread>) -> Bytes {
    let bytes: usize = unread.iter().map(|(line, _)| line.len()).sum();
    let mut piece = BytesMut::with_capacity(bytes.min(PIECE_BYTES));
    while piece.len() < PIECE_BYTES
        && let Some((line, room)) = unread.front_mut()
    {
        piece.extend_from_slice(&line.split_to(line.len().min(PIECE_BYTES - piece.len())));
        room.iter_mut().for_each(|room| room.shrink(line.len()));
        if line.is_empty() {
            unread.pop_front();
        }
    }
    piece.freeze()
}

impl Writer {
    /// Resolves when the client has gone.
    async fn gone(&self) {
        self.lines.closed().await;
    }

    /// Adds a line at once, whatever is held.
    fn push(&self, line: &AnswerLine, mut room: Option<LineRoom>) {
        metrics::counter!(names::HTTP_BULK_LINES, label::KIND => line.kind()).increment(1);
        // As long as it can get, so that a long one is not copied while it grows.
        let mut bytes = Vec::with_capacity(room.as_ref().map_or(0, LineRoom::json_bytes_max).clamp(256, 1 << 30));
        serde_json::to_writer(&mut bytes, line).expect("an answer is always JSON");
        bytes.push(b'\n');
        bytes.shrink_to_fit();
        room.iter_mut().for_each(|room| room.shrink(bytes.len()));
        self.held.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        // Fails when the client has gone, which gone() tells.
        let _ = self.lines.send((bytes.into(), room));
    }

    /// Adds a line, then waits while too much is held.
    async fn write(&self, line: &AnswerLine, room: Option<LineRoom>) -> Result<(), Stalled> {
        self.push(line, room);
        while self.held.bytes.load(Ordering::Acquire) > self.held_max {
            // notify_one leaves a permit, so a wake-up between the load and here is not lost.
            tokio::time::timeout(self.stall_timeout, self.held.taken.notified()).await.map_err(|_| Stalled)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    fn line(number: u64) -> AnswerLine {
        AnswerLine::Deleted { line: number, id: "x".repeat(1000), deleted: 1 }
    }

    #[tokio::test]
    async fn answers_are_held_up_to_the_bound_without_a_reader() {
        let (writer, body) = answers(100_000, Duration::from_millis(50));
        for number in 0..90 {
            assert!(writer.write(&line(number), None).await.is_ok());
        }
        let mut full = false;
        for number in 90..100 {
            full |= writer.write(&line(number), None).await.is_err();
        }
        assert!(full, "the bound holds");
        drop(writer);
        let read = to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(read.iter().filter(|&&byte| byte == b'\n').count(), 100, "nothing that was pushed is lost");
    }

    #[tokio::test]
    async fn a_reader_lets_the_writer_go_on() {
        let (writer, body) = answers(5_000, Duration::from_secs(5));
        let reader = tokio::spawn(async move { to_bytes(body, usize::MAX).await.unwrap().len() });
        for number in 0..1_000 {
            assert!(writer.write(&line(number), None).await.is_ok());
        }
        drop(writer);
        assert!(reader.await.unwrap() > 1_000_000);
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_noticed() {
        let (writer, body) = answers(5_000, Duration::from_secs(5));
        drop(body);
        writer.gone().await;
    }

    #[test]
    fn lines_carry_their_kind_first() {
        let text = serde_json::to_string(&AnswerLine::Summary { lines: 3, summary: Summary::default() }).unwrap();
        assert!(text.starts_with(r#"{"kind":"summary","lines":3,"summary":{"documents":0,"errors":0,"#), "{text}");
        let error = Problem::new(Code::TooLarge, "x").into_body("r");
        let text = serde_json::to_string(&AnswerLine::Error { line: 17, id: None, error }).unwrap();
        assert!(
            text.starts_with(r#"{"kind":"error","line":17,"error":{"type":"urn:hapax:problem:too-large""#),
            "{text}"
        );
    }
}
