//! The lines of a bulk answer -> its body.
//! Lines that the client does not read are kept up to a limit. At the limit the writer waits, and after a while it
//! returns [`Stalled`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, mpsc};

use super::answer_line::AnswerLine;
use crate::http::answer::{LineRoom, PIECE_BYTES};
use crate::telemetry::names::{self, label};

/// How many lines are handed to the connection at once.
const ANSWERS_AT_ONCE: usize = 256;

/// Writes lines into the answer's body.
pub(super) struct LineWriter {
    lines: mpsc::UnboundedSender<Unread>,
    held: Arc<UnreadBytes>,
    held_max: usize,
    stall_timeout: Duration,
}

/// A line that the connection has not taken, with its memory.
type Unread = (Bytes, Option<LineRoom>);

/// The number of bytes that the connection has not taken.
#[derive(Default)]
struct UnreadBytes {
    bytes: AtomicUsize,
    taken: Notify,
}

/// The client has read nothing for too long.
pub(super) struct Stalled;

/// Returns a writer, and the body that receives its lines.
pub(super) fn answers(held_max: usize, stall_timeout: Duration) -> (LineWriter, Body) {
    let (lines, mut receiver) = mpsc::unbounded_channel::<Unread>();
    let held = Arc::new(UnreadBytes::default());
    let writer = LineWriter { lines, held: Arc::clone(&held), held_max, stall_timeout };
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

/// Copies the first lines into one piece. Short lines are joined, so that a thousand of them are not a thousand chunks.
/// A long line is split, so that it does not stay in memory whole until its end is taken.
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

impl LineWriter {
    /// Resolves when the client has closed the connection.
    pub(super) async fn gone(&self) {
        self.lines.closed().await;
    }

    /// Adds a line without waiting, however many are held.
    pub(super) fn push(&self, line: &AnswerLine, mut room: Option<LineRoom>) {
        metrics::counter!(names::HTTP_BULK_LINES, label::KIND => line.kind()).increment(1);
        // Allocates the longest that the line can be, so that a long line is not copied while it grows.
        let mut bytes = Vec::with_capacity(room.as_ref().map_or(0, LineRoom::json_bytes_max).clamp(256, 1 << 30));
        serde_json::to_writer(&mut bytes, line).expect("an answer is always JSON");
        bytes.push(b'\n');
        bytes.shrink_to_fit();
        room.iter_mut().for_each(|room| room.shrink(bytes.len()));
        self.held.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        // Fails if the client has closed the connection, which `gone` reports.
        let _ = self.lines.send((bytes.into(), room));
    }

    /// Adds a line, then waits while too many bytes are held.
    pub(super) async fn write(&self, line: &AnswerLine, room: Option<LineRoom>) -> Result<(), Stalled> {
        self.push(line, room);
        while self.held.bytes.load(Ordering::Acquire) > self.held_max {
            // notify_one stores a permit, so a wake-up between the load and this await is not lost.
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
}
