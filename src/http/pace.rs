//! A client's stream -> the same bytes in pieces, with pauses in which this server's own tasks run. This file has
//! nothing to do with slow clients: `body/patience.rs` and `sending.rs` limit those. A decoder that has input is always
//! ready, and so is a body that has already arrived. A loop that reads such a stream would block its thread until
//! everything is decoded: other connections, timers and signals would have to wait. Two kilobytes can decode to
//! gigabytes. Here each poll takes little input and returns little output. After 64 KiB there is a pause in which other
//! tasks run. Knows nothing of requests.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, ReadBuf, Take};

/// The most bytes that one poll of a reader returns.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// The most bytes that a decoder takes in one poll. They may decode to nothing: an empty zstd frame has 9 bytes and an
/// empty gzip member has 20. The decoder is set up again for each such frame or member.
const SIP_BYTES: usize = 2 * 1024;
/// Each frame of a body costs this many bytes in addition to its own bytes, because a client may send frames of one
/// byte. Each piece that a reader returns costs at least this many bytes.
const PIECE_COST: usize = 2 * 1024;

/// Lets the thread run its other tasks, and handle its connections and timers. Waking this task directly is not enough:
/// the task would be queued ahead of events that have just arrived, and the runtime checks for events only after 61
/// tasks.
fn pause(cx: &mut Context<'_>) {
    _ = pin!(tokio::task::yield_now()).poll(cx);
}

/// A reader that returns limited pieces, and pauses after a certain number of bytes or pieces.
pub(super) struct Paced<R> {
    reader: Take<R>,
    /// The bytes and the cost of pieces since the last pause.
    spent: usize,
}

impl<R: AsyncRead + Unpin> Paced<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: reader.take(0), spent: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Paced<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.spent >= PIECE_BYTES {
            self.spent = 0;
            pause(cx);
            return Poll::Pending;
        }
        let before = buf.filled().len();
        self.reader.set_limit(PIECE_BYTES as u64);
        ready!(Pin::new(&mut self.reader).poll_read(cx, buf))?;
        self.spent += (buf.filled().len() - before).max(PIECE_COST);
        Poll::Ready(Ok(()))
    }
}

/// The input of a decoder, a few bytes at a time, because a decoder keeps reading until it has output.
pub(super) struct Sips<R> {
    reader: R,
    /// The bytes taken since the last pause.
    taken: usize,
}

impl<R> Sips<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, taken: 0 }
    }
}

impl<R: AsyncBufRead + Unpin> AsyncRead for Sips<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let sip = ready!(self.as_mut().poll_fill_buf(cx))?;
        let read = sip.len().min(buf.remaining());
        buf.put_slice(&sip[..read]);
        self.consume(read);
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncBufRead + Unpin> AsyncBufRead for Sips<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { reader, taken } = self.get_mut();
        if *taken >= SIP_BYTES {
            *taken = 0;
            pause(cx);
            return Poll::Pending;
        }
        let sip = ready!(Pin::new(reader).poll_fill_buf(cx))?;
        Poll::Ready(Ok(&sip[..sip.len().min(SIP_BYTES - *taken)]))
    }

    fn consume(mut self: Pin<&mut Self>, bytes: usize) {
        self.taken += bytes;
        Pin::new(&mut self.reader).consume(bytes);
    }
}

/// A body in frames of limited size, with a pause after a certain number of bytes or frames.
pub(super) struct PacedBody {
    body: Body,
    frame_cost: usize,
    /// The part of the last frame that has not been returned.
    rest: Bytes,
    /// The bytes and the cost of frames since the last pause.
    spent: usize,
}

impl PacedBody {
    /// Returns `body` itself if it cannot be long.
    pub(super) fn of(body: Body) -> Body {
        Self::with(body, PIECE_COST)
    }

    /// Pauses after each frame. This is for the output of an encoder, which returns a frame instead of pausing when its
    /// input pauses.
    pub(super) fn encoded(body: Body) -> Body {
        Self::with(body, PIECE_BYTES)
    }

    fn with(body: Body, frame_cost: usize) -> Body {
        match HttpBody::size_hint(&body).upper() {
            Some(bytes) if bytes <= PIECE_BYTES as u64 / 16 => body,
            _ => Body::new(Self { body, frame_cost, rest: Bytes::new(), spent: 0 }),
        }
    }
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.spent >= PIECE_BYTES {
            self.spent = 0;
            pause(cx);
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else { return Poll::Ready(None) };
            self.spent += self.frame_cost;
            match frame?.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let bytes = self.rest.len().min(PIECE_BYTES);
        self.spent += bytes;
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        longer(&self.body.size_hint(), self.rest.len())
    }
}

/// Returns the size of a body with `rest` bytes added. These bytes were already taken from the body, but have not been
/// returned yet.
pub(super) fn longer(hint: &SizeHint, rest: usize) -> SizeHint {
    let mut whole = SizeHint::new();
    whole.set_lower(hint.lower() + rest as u64);
    if let Some(upper) = hint.upper() {
        whole.set_upper(upper + rest as u64);
    }
    whole
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use futures::StreamExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Runs a future to its end, and counts its polls.
    async fn polls<T>(work: impl Future<Output = T>) -> (T, usize) {
        let (mut work, mut polls) = (pin!(work), 0);
        let made = std::future::poll_fn(|cx| {
            polls += 1;
            work.as_mut().poll(cx)
        });
        (made.await, polls)
    }

    #[tokio::test]
    async fn a_reader_that_is_always_ready_pauses_after_each_piece() {
        let bytes: Vec<u8> = (0..10 * PIECE_BYTES + 1).map(|at| (at % 251) as u8).collect();
        let mut read = Vec::new();
        let (_, times) = polls(Paced::new(&bytes[..]).read_to_end(&mut read)).await;
        assert!(read == bytes && times > 10, "{times}");
        let mut sips = Vec::new();
        let (_, times) = polls(Sips::new(&bytes[..]).read_to_end(&mut sips)).await;
        assert!(sips == bytes && times >= bytes.len() / SIP_BYTES, "{times}");
    }

    #[tokio::test]
    async fn a_body_pauses_after_so_many_bytes_or_frames() {
        let bytes = Bytes::from((0..10 * PIECE_BYTES).map(|at| (at % 251) as u8).collect::<Vec<_>>());
        for each in [100, 10_000, bytes.len()] {
            let frames: Vec<_> = bytes.chunks(each).map(|frame| Ok::<_, io::Error>(frame.to_vec())).collect();
            let count = frames.len();
            let body = PacedBody::of(Body::from_stream(futures::stream::iter(frames)));
            let (made, times) = polls(to_bytes(body, usize::MAX)).await;
            assert!(made.unwrap() == bytes, "frames of {each}");
            assert!(times > (bytes.len() + count * PIECE_COST) / (2 * PIECE_BYTES), "{times} polls of {count} frames");
        }
        let whole = PacedBody::of(Body::from(bytes.clone()));
        assert_eq!(HttpBody::size_hint(&whole).exact(), Some(bytes.len() as u64));
        let mut frames = whole.into_data_stream();
        assert_eq!(frames.next().await.unwrap().unwrap().len(), PIECE_BYTES);
    }
}
