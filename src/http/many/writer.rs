//! The lines of a bulk answer -> its body.
//! Lines that the client does not read are kept up to a limit. At the limit the writer waits, and after a while it
//! returns [`Stalled`]. Lines are handed to the connection in groups. The connection runs on another thread, which has
//! priority over the thread that makes the lines. Waking the connection's thread for each line would cost a third of
//! the time of a short check.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use metrics::Counter;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::answer_line::{AnswerLine, VERDICT};
use crate::http::answer::{LineRoom, PIECE_BYTES};
use crate::telemetry::names::{self, label};

/// The most bytes of lines that may wait to be handed to the connection.
const GROUP_BYTES_MAX: usize = 16 * 1024;
/// The longest time that lines may wait to be handed to the connection.
const GROUP_TIME_MAX: Duration = Duration::from_millis(1);

/// Writes lines into the answer's body.
pub(super) struct LineWriter {
    groups: mpsc::UnboundedSender<Vec<Unread>>,
    /// The lines that have not been handed to the connection yet, and the number of their bytes.
    group: Mutex<(Vec<Unread>, usize)>,
    held: Arc<UnreadBytes>,
    held_max: usize,
    stall_timeout: Duration,
    /// The lowest rate at which the client may take a long line. The longer the line, the more time the client has for
    /// it.
    bytes_per_second_min: u64,
    /// Counts lines with verdicts. Stored, because looking the counter up by its label takes longer than counting.
    verdicts: Counter,
}

/// A line that the connection has not taken, with the memory reserved for it.
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
pub(super) fn answers(held_max: usize, stall_timeout: Duration, bytes_per_second_min: u64) -> (LineWriter, Body) {
    let (groups, mut receiver) = mpsc::unbounded_channel::<Vec<Unread>>();
    let held = Arc::new(UnreadBytes::default());
    let (group, verdicts) = (Mutex::default(), lines_of(VERDICT));
    let writer =
        LineWriter { groups, group, held: Arc::clone(&held), held_max, stall_timeout, bytes_per_second_min, verdicts };
    let mut unread = VecDeque::new();
    let stream = futures::stream::poll_fn(move |cx| {
        if unread.is_empty() {
            unread.extend(ready!(receiver.poll_recv(cx)).into_iter().flatten());
        }
        let piece = joined(&mut unread);
        held.bytes.fetch_sub(piece.len(), Ordering::AcqRel);
        held.taken.notify_one();
        Poll::Ready((!piece.is_empty()).then_some(Ok::<_, std::convert::Infallible>(piece)))
    });
    (writer, Body::from_stream(stream))
}

/// Returns the counter of lines of this kind.
fn lines_of(kind: &'static str) -> Counter {
    metrics::counter!(names::HTTP_BULK_LINES, label::KIND => kind)
}

/// Copies the first lines into one piece. Short lines are joined, so that there are fewer chunks. A long line is split,
/// so that its beginning can leave memory before its end is taken.
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
        self.groups.closed().await;
    }

    /// Adds the last line without waiting, even if the limit on held bytes is exceeded.
    pub(super) fn push(&self, line: &AnswerLine, room: Option<LineRoom>) {
        self.add(line, room);
        self.flush();
    }

    /// Waits for `next`, after which the next line can be made. If that takes long, the lines that were added so far
    /// are handed to the connection.
    pub(super) async fn until<T>(&self, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        let waits = !self.group.lock().0.is_empty();
        if waits {
            if let Ok(next) = tokio::time::timeout(GROUP_TIME_MAX, next.as_mut()).await {
                return next;
            }
            self.flush();
        }
        next.await
    }

    /// Hands all lines to the connection.
    fn flush(&self) {
        let (lines, _) = std::mem::take(&mut *self.group.lock());
        if !lines.is_empty() {
            // Fails if the client has closed the connection, which `gone` reports.
            let _ = self.groups.send(lines);
        }
    }

    fn add(&self, line: &AnswerLine, mut room: Option<LineRoom>) {
        match line.kind() {
            VERDICT => self.verdicts.increment(1),
            kind => lines_of(kind).increment(1),
        }
        // Allocates the largest size that the line can have, so that a long line is not copied while it grows.
        let mut bytes = Vec::with_capacity(room.as_ref().map_or(0, LineRoom::json_bytes_max).clamp(256, 1 << 30));
        line.write(&mut bytes).expect("memory takes everything, and an answer is always JSON");
        bytes.push(b'\n');
        bytes.shrink_to_fit();
        room.iter_mut().for_each(|room| room.shrink(bytes.len()));
        self.held.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        let mut group = self.group.lock();
        group.1 += bytes.len();
        group.0.push((bytes.into(), room));
    }

    /// Adds a line, and then waits while too many bytes are held. If no other line will follow soon (`last`), the line
    /// is handed to the connection at once, together with the lines before it.
    pub(super) async fn write(&self, line: &AnswerLine, room: Option<LineRoom>, last: bool) -> Result<(), Stalled> {
        self.add(line, room);
        let bytes = self.group.lock().1;
        if last || bytes > GROUP_BYTES_MAX || self.held.bytes.load(Ordering::Acquire) > self.held_max {
            self.flush();
        }
        let too_many = self.held.bytes.load(Ordering::Acquire).saturating_sub(self.held_max);
        if too_many == 0 {
            return Ok(());
        }
        let taken = async {
            while self.held.bytes.load(Ordering::Acquire) > self.held_max {
                // notify_one stores a permit, so a wake-up between the load and this await is not missed.
                self.held.taken.notified().await;
            }
        };
        let longest = Duration::from_secs_f64(too_many as f64 / self.bytes_per_second_min as f64);
        tokio::time::timeout(self.stall_timeout + longest, taken).await.map_err(|_| Stalled)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use futures::StreamExt;

    use super::*;

    fn line(number: u64) -> AnswerLine {
        AnswerLine::Deleted { line: number, id: "x".repeat(1000), deleted: 1 }
    }

    #[tokio::test]
    async fn answers_are_held_up_to_the_bound_without_a_reader() {
        let (writer, body) = answers(100_000, Duration::from_millis(50), 1 << 30);
        for number in 0..90 {
            assert!(writer.write(&line(number), None, false).await.is_ok());
        }
        let mut full = false;
        for number in 90..100 {
            full |= writer.write(&line(number), None, false).await.is_err();
        }
        assert!(full, "the bound holds");
        writer.flush();
        drop(writer);
        let read = to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(read.iter().filter(|&&byte| byte == b'\n').count(), 100, "nothing that was pushed is lost");
    }

    #[tokio::test]
    async fn a_reader_lets_the_writer_go_on() {
        let (writer, body) = answers(5_000, Duration::from_secs(5), 1 << 30);
        let reader = tokio::spawn(async move { to_bytes(body, usize::MAX).await.unwrap().len() });
        for number in 0..1_000 {
            assert!(writer.write(&line(number), None, false).await.is_ok());
        }
        writer.flush();
        drop(writer);
        assert!(reader.await.unwrap() > 1_000_000);
    }

    #[tokio::test]
    async fn lines_wait_for_others_and_not_for_long() {
        let (writer, body) = answers(100_000, Duration::from_secs(5), 1 << 30);
        let mut pieces = body.into_data_stream();
        let mut lines_read = async || {
            let piece = pieces.next().await.unwrap().unwrap();
            piece.iter().filter(|&&byte| byte == b'\n').count()
        };
        for number in 0..3 {
            assert!(writer.write(&line(number), None, number == 2).await.is_ok());
        }
        assert_eq!(lines_read().await, 3, "with the last one for now");
        assert!(writer.write(&line(3), None, false).await.is_ok());
        tokio::select! {
            () = writer.until(std::future::pending()) => {}
            lines = lines_read() => assert_eq!(lines, 1, "nothing else came"),
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_noticed() {
        let (writer, body) = answers(5_000, Duration::from_secs(5), 1 << 30);
        drop(body);
        writer.gone().await;
    }
}
