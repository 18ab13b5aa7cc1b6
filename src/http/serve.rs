//! A listening socket -> answered connections, HTTP/1.1 and HTTP/2 without TLS, until told to stop.
//! Hyper's own loop under axum, because axum's `serve` has no time limit on a request's head: a client that sends it
//! byte by byte holds its connection for ever, and holds up the shutdown too.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::state::{AppState, HttpLimits};
use crate::telemetry::names;

/// After this long without a sign of life an HTTP/2 client is asked for one, and after as long again given up.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const STREAMS_PER_CONNECTION_MAX: u32 = 256;
/// All headers of a request; an id in the query may take 6 KiB of it.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How long to wait when the process has no file descriptor for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` resolves and open requests are done, or the time for that is over.
///
/// Returns how many connections had to be cut off.
pub async fn serve(listener: TcpListener, state: AppState, shutdown: impl Future<Output = ()>) -> usize {
    let limits = *state.limits();
    let draining = state.draining().clone();
    let router = super::router(state);
    let builder = builder(&limits);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let cut = CancellationToken::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let begun = Arc::new(AtomicBool::new(false));
        let service = mark(router.clone(), Arc::clone(&begun));
        let io = TokioIo::new(Impatient::new(stream, limits.write_timeout));
        let connection = graceful.watch(builder.serve_connection(io, service).into_owned());
        let cut = cut.clone();
        tokio::spawn(async move {
            let _open = Open::new(place);
            let mut connection = std::pin::pin!(connection);
            // Hyper's timer begins with the first byte that tells HTTP/1 from HTTP/2; this one with the connection.
            let mute = async {
                tokio::time::sleep(limits.header_timeout).await;
                if begun.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                result = &mut connection => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "connection ended");
                    }
                }
                () = mute => tracing::debug!("connection closed: no request in time"),
                () = cut.cancelled() => {}
            }
        });
    }
    drop(listener);
    draining.cancel();
    tracing::info!(connections = graceful.count(), "draining");
    if tokio::time::timeout(limits.drain_timeout, graceful.shutdown()).await.is_ok() {
        return 0;
    }
    let left = limits.connections_max - places.available_permits();
    cut.cancel();
    left
}

fn builder(limits: &HttpLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEADER_BYTES_MAX * 2);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .max_header_list_size(HEADER_BYTES_MAX as u32);
    builder
}

/// The next connection, once there is a place for it: the others wait in the kernel's queue.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting to join them with later ones only costs time.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "no TCP_NODELAY");
                }
                return (stream, place);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The router, noting that a request has come.
fn mark(
    router: Router,
    begun: Arc<AtomicBool>,
) -> impl hyper::service::Service<
    axum::http::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send + 'static,
> + Send
+ 'static {
    hyper::service::service_fn(move |request| {
        begun.store(true, Ordering::Relaxed);
        router.clone().call(request)
    })
}

/// An open connection: its place and its count.
struct Open {
    _place: OwnedSemaphorePermit,
}

impl Open {
    fn new(place: OwnedSemaphorePermit) -> Self {
        metrics::gauge!(names::HTTP_CONNECTIONS).increment(1.0);
        Self { _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!(names::HTTP_CONNECTIONS).decrement(1.0);
    }
}

/// A connection that fails when its client takes nothing for too long.
struct Impatient {
    stream: TcpStream,
    timeout: Duration,
    /// Set while a write is waiting.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self { stream, timeout, waiting: None }
    }

    fn write<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = write(Pin::new(&mut self.stream), cx) {
            self.waiting = None;
            return Poll::Ready(result);
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + timeout)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
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
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
