//! A TCP stream for a connection. A write that makes no progress fails, and no answer is lost when the stream closes.
//! In: an accepted stream. Out: bytes. The socket tells [`Activity`] when bytes arrive, and whether a write is waiting.
//! Knows nothing of HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::activity::Activity;

/// How long a closed socket is still read, to receive the bytes that its client has already sent.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// A TCP stream whose writes fail if the client reads nothing for too long.
pub(crate) struct Socket {
    /// `None` only during drop.
    stream: Option<TcpStream>,
    activity: Arc<Activity>,
    timeout: Duration,
    /// The end of the time limit of the waiting write; `None` if no write is waiting.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Whether the server has ended its direction of the stream, and whether the client has ended the other direction.
    ended: (bool, bool),
    leaving: Arc<Semaphore>,
}

impl Socket {
    /// `leaving` has the places for sockets that are still being read after they were closed.
    pub(crate) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        write_timeout: Duration,
        leaving: Arc<Semaphore>,
    ) -> Self {
        Self { stream: Some(stream), activity, timeout: write_timeout, waiting: None, ended: (false, false), leaving }
    }

    /// Returns the first byte that arrives, without taking it out of the stream. `None`: the client has closed its
    /// side.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
        let mut byte = [0];
        let mut first = ReadBuf::new(&mut byte);
        let count = ready!(self.stream().poll_peek(cx, &mut first))?;
        Poll::Ready(Ok((count > 0).then_some(byte[0])))
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.stream.as_mut().expect("the stream is only taken by drop"))
    }

    fn write<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = write(self.stream(), cx) {
            if self.waiting.take().is_some() {
                self.activity.write_waits(false);
            }
            return Poll::Ready(result);
        }
        if self.waiting.is_none() {
            self.activity.write_waits(true);
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + timeout)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl Drop for Socket {
    /// Closing a socket with unread bytes resets the connection, and the reset may overtake the last answer. So after a
    /// graceful shutdown the client gets some time to read everything and to close its side.
    fn drop(&mut self) {
        let Some(stream) = self.stream.take().filter(|_| self.ended == (true, false)) else { return };
        let (Ok(runtime), Ok(place)) =
            (tokio::runtime::Handle::try_current(), Arc::clone(&self.leaving).try_acquire_owned())
        else {
            return;
        };
        runtime.spawn(linger(stream, place));
    }
}

async fn linger(mut stream: TcpStream, _place: OwnedSemaphorePermit) {
    let mut piece = [0; 4096];
    let drain = async { while matches!(stream.read(&mut piece).await, Ok(read) if read > 0) {} };
    // It does not matter whether the stream ends or the wait times out.
    let _ = tokio::time::timeout(LINGER_TIME, drain).await;
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.stream().poll_read(cx, buf))?;
        let count = buf.filled().len() - before;
        if count > 0 {
            self.activity.bytes_came(count);
        } else if buf.remaining() > 0 {
            self.ended.1 = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream().poll_shutdown(cx))?;
        self.ended.0 = true;
        Poll::Ready(Ok(()))
    }
}
