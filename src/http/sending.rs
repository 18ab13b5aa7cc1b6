//! An answer's body -> the same body in small pieces, dropped if the client does not take them.
//! TCP cannot notice an HTTP/2 client that grants no window: the client answers pings, but takes no bytes. Hyper then
//! takes one piece of the body and does not poll for more. So the body must be freed here: a timer drops it and tells
//! the connection to end. Knows nothing of the body's content.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, Version};
use bytes::Buf;
use futures::task::AtomicWaker;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::answer::PIECE_BYTES;
use super::kept_body::Keeping;
use super::pace::longer;
use crate::telemetry::names;

/// The bytes that an HTTP/1.1 connection takes before its client reads any.
const TAKEN_AT_ONCE: u64 = 64 * 1024;

/// How long a client may leave an answer unread. Waiting uses this time up, and each byte that the client takes
/// restores some of it.
#[derive(Clone, Copy)]
pub(super) struct SendingPace {
    pub(super) timeout: Duration,
    /// The number of bytes that restore one second. `None`: any progress restores the whole time.
    pub(super) bytes_per_second_min: Option<u64>,
}

/// Marks a response for which any progress is enough, because it is a stream whose bytes are limited elsewhere.
#[derive(Clone, Copy)]
pub(super) struct AnyProgress;

/// A body that is being sent.
pub(super) struct Sending {
    shared: Arc<Watched>,
    _watch: AbortOnDropHandle<()>,
}

/// The state that the body and its timer share.
struct Watched {
    made: Instant,
    pace: SendingPace,
    state: Mutex<SendingState>,
    /// When bytes began to wait for the client: the milliseconds after `made`, plus one. 0 means that no bytes wait.
    waiting_since: AtomicU64,
    waker: AtomicWaker,
}

struct SendingState {
    /// `None` once the body has been sent or given up.
    held: Option<HeldBody>,
    left: Duration,
    given_up: bool,
    when_given_up: Option<Box<dyn FnOnce() + Send>>,
}

struct HeldBody {
    body: Body,
    /// The part of a long piece that has not been sent.
    rest: Bytes,
    /// Kept until the connection or the timer drops the body.
    _guard: Box<dyn Send>,
}

/// Attached to a response, so that other code can learn that the response was given up.
#[derive(Clone)]
pub(super) struct GivenUp(Arc<Watched>);

impl GivenUp {
    /// Calls `act` if the answer is given up.
    pub(super) fn then(&self, act: impl FnOnce() + Send + 'static) {
        self.0.state.lock().when_given_up = Some(Box::new(act));
    }

    /// Returns a handle that tells how long the client has left the answer unread. The handle does not keep the answer
    /// in memory.
    pub(super) fn unread(&self) -> Unread {
        Unread(Arc::downgrade(&self.0))
    }
}

/// An answer that is being sent, or that has ended.
pub(super) struct Unread(Weak<Watched>);

impl Unread {
    /// Returns true until the answer has been sent or given up.
    pub(super) fn is_open(&self) -> bool {
        self.0.upgrade().is_some_and(|watched| watched.state.lock().held.is_some())
    }

    /// Returns how long bytes have been waiting for the client; `None` if no bytes are waiting.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.0.upgrade()?.waited()
    }
}

/// Watches the client take a response's body. The body keeps `guard` until it is sent or given up.
pub(super) fn watched(
    mut response: Response<Body>,
    version: Version,
    mut pace: SendingPace,
    guard: impl Send + Unpin + 'static,
) -> Response<Body> {
    if response.extensions_mut().remove::<AnyProgress>().is_some() {
        pace.bytes_per_second_min = None;
    }
    let (mut head, body) = response.into_parts();
    let short = version != Version::HTTP_2 && body.size_hint().upper().is_some_and(|bytes| bytes <= TAKEN_AT_ONCE);
    if short || body.is_end_stream() {
        // The connection takes such a body at once, and TCP itself tells whether the client reads it.
        return Response::from_parts(head, Body::new(Keeping::new(body, guard)));
    }
    let held = HeldBody { body, rest: Bytes::new(), _guard: Box::new(guard) };
    let state = SendingState { held: Some(held), left: pace.timeout, given_up: false, when_given_up: None };
    let shared = Arc::new(Watched {
        made: Instant::now(),
        pace,
        state: Mutex::new(state),
        waiting_since: AtomicU64::new(1),
        waker: AtomicWaker::new(),
    });
    head.extensions.insert(GivenUp(Arc::clone(&shared)));
    let watch = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&shared).watch()));
    Response::from_parts(head, Body::new(Sending { shared, _watch: watch }))
}

impl Watched {
    fn now(&self) -> u64 {
        self.made.elapsed().as_millis() as u64 + 1
    }

    /// Returns how long bytes have been waiting; `None` if no bytes are waiting.
    fn waited(&self) -> Option<Duration> {
        let since = self.waiting_since.load(Ordering::Acquire);
        (since > 0).then(|| Duration::from_millis(self.now().saturating_sub(since)))
    }

    /// Drops the answer once the client has used up its time to read it.
    async fn watch(self: Arc<Self>) {
        loop {
            let left = self.state.lock().left;
            let wait = match self.waited() {
                None => self.pace.timeout,
                Some(waited) if waited < left => left - waited,
                Some(_) => return self.give_up(),
            };
            // One millisecond is added, because times are counted in whole milliseconds.
            tokio::time::sleep(wait + Duration::from_millis(1)).await;
        }
    }

    fn give_up(&self) {
        let (held, act) = {
            let mut state = self.state.lock();
            state.given_up = state.held.is_some();
            (state.held.take(), state.when_given_up.take())
        };
        if held.is_some() {
            tracing::debug!("dropped an answer: the client did not read it");
            metrics::counter!(names::HTTP_ANSWERS_GIVEN_UP).increment(1);
            // Done outside of the lock, because both the drop and the call may run other code.
            drop(held);
            act.into_iter().for_each(|act| act());
            self.waker.wake();
        }
    }
}

/// Wakes the task when the body has more to send. The client's time runs from then on, even if hyper does not poll the
/// body.
impl Wake for Watched {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let _ = self.waiting_since.compare_exchange(0, self.now(), Ordering::AcqRel, Ordering::Relaxed);
        self.waker.wake();
    }
}

impl SendingState {
    /// Records that the client took the bytes that were waiting.
    fn taken(&mut self, waited: Duration, pace: &SendingPace) {
        self.left = match pace.bytes_per_second_min {
            Some(_) => self.left.saturating_sub(waited),
            None => pace.timeout,
        };
    }

    /// Records that this many bytes were handed to the connection.
    fn earn(&mut self, bytes: usize, pace: &SendingPace) {
        if let Some(bytes_per_second_min) = pace.bytes_per_second_min {
            let earned = Duration::from_secs_f64(bytes as f64 / bytes_per_second_min as f64);
            self.left = (self.left + earned).min(pace.timeout);
        }
    }
}

impl HeldBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        // Copies part of a long piece. A slice would keep the whole piece in memory while the connection holds it.
        let piece = match self.rest.len() {
            0..=PIECE_BYTES => std::mem::take(&mut self.rest),
            _ => self.rest.copy_to_bytes_apart(PIECE_BYTES),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_over(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}

/// Copies the bytes, unlike [`Buf::copy_to_bytes`], which shares them.
trait CopyApart {
    fn copy_to_bytes_apart(&mut self, bytes: usize) -> Bytes;
}

impl CopyApart for Bytes {
    fn copy_to_bytes_apart(&mut self, bytes: usize) -> Bytes {
        let copy = Self::copy_from_slice(&self[..bytes]);
        self.advance(bytes);
        copy
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // The answer is dropped here, because the timer's task may exist for a little longer.
        let (held, act) = {
            let mut state = self.shared.state.lock();
            (state.held.take(), state.when_given_up.take())
        };
        drop((held, act));
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let shared = &self.shared;
        shared.waker.register(cx.waker());
        let mut state = shared.state.lock();
        if state.given_up {
            return Poll::Ready(Some(Err(axum::Error::new("the client did not read the answer"))));
        }
        if let Some(waited) = shared.waited() {
            state.taken(waited, &shared.pace);
        }
        // Reset before the poll, because the body may wake the task during the poll.
        shared.waiting_since.store(0, Ordering::Release);
        let Some(held) = &mut state.held else { return Poll::Ready(None) };
        let waker = Waker::from(Arc::clone(shared));
        let polled = held.poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(frame) = &polled {
            let sent = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            state.earn(sent.map_or(0, Bytes::len), &shared.pace);
            // Also set after the last piece: the connection keeps that piece until the client has a window for it, and
            // drops this body only then.
            shared.waiting_since.store(shared.now(), Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let state = self.shared.state.lock();
        !state.given_up && state.held.as_ref().is_none_or(HeldBody::is_over)
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.shared.state.lock();
        let Some(held) = &state.held else { return SizeHint::with_exact(0) };
        longer(&held.body.size_hint(), held.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use futures::StreamExt;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(50);
    /// Long enough even on a busy machine.
    const LONG: Duration = Duration::from_secs(30);

    struct Flag(Arc<AtomicBool>);

    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    fn sending(body: Body, bytes_per_second_min: Option<u64>) -> (Body, Arc<AtomicBool>) {
        let dropped = Arc::new(AtomicBool::new(false));
        let pace = SendingPace { timeout: TIMEOUT, bytes_per_second_min };
        let guard = Flag(Arc::clone(&dropped));
        (watched(Response::new(body), Version::HTTP_2, pace, guard).into_body(), dropped)
    }

    async fn until_set(flag: &AtomicBool) {
        let set = async {
            while !flag.load(Ordering::Acquire) {
                tokio::time::sleep(TIMEOUT / 5).await;
            }
        };
        tokio::time::timeout(LONG, set).await.expect("it is dropped");
    }

    #[tokio::test]
    async fn a_body_that_nobody_asks_for_is_dropped() {
        let (body, dropped) = sending(Body::from(vec![1; 1_000_000]), Some(1));
        until_set(&dropped).await;
        assert!(!body.is_end_stream());
        assert!(body.into_data_stream().next().await.unwrap().is_err(), "what was cut does not look whole");
    }

    #[tokio::test]
    async fn a_body_that_is_taken_too_slowly_is_dropped() {
        // A client that takes a piece earns one millisecond, but it takes a piece only every ten milliseconds.
        let (body, dropped) = sending(Body::from(vec![1; 100 * PIECE_BYTES]), Some(1000 * PIECE_BYTES as u64));
        let mut pieces = body.into_data_stream();
        let (mut taken, mut cut) = (0, false);
        while let Some(piece) = pieces.next().await {
            cut |= piece.is_err();
            if cut {
                break;
            }
            taken += 1;
            tokio::time::sleep(TIMEOUT / 5).await;
        }
        assert!(cut && taken < 100, "{taken}");
        until_set(&dropped).await;
    }

    #[tokio::test]
    async fn a_body_that_is_taken_comes_whole_in_small_pieces() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        let (body, dropped) = sending(Body::from(bytes.clone()), Some(1));
        assert_eq!(body.size_hint().exact(), Some(300_000));
        let mut pieces = body.into_data_stream();
        let mut seen = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            seen.extend_from_slice(&piece);
        }
        assert!(seen == bytes);
        drop(pieces);
        assert!(dropped.load(Ordering::Acquire));
    }

    #[tokio::test]
    async fn a_stream_with_nothing_to_say_is_kept_until_it_has() {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<Result<Bytes, std::io::Error>>();
        let stream = futures::stream::unfold(receiver, async |mut all| Some((all.recv().await?, all)));
        let (body, dropped) = sending(Body::from_stream(stream), None);
        let mut pieces = body.into_data_stream();
        assert!(futures::poll!(pieces.next()).is_pending());
        tokio::time::sleep(6 * TIMEOUT).await;
        assert!(!dropped.load(Ordering::Acquire), "the client is not to blame");
        // Now the client is to blame: bytes are waiting, and it does not take them.
        sender.send(Ok(Bytes::from_static(b"x"))).unwrap();
        until_set(&dropped).await;
    }
}
