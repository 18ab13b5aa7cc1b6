//! The bytes of a connection, as HTTP sees them: the bytes of its socket, or the bytes that TLS has decrypted.
//! The handshake takes place when the first bytes are read. So the time limit of the first request includes the
//! handshake. The handshake runs in the connection's own task and ends with the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::{FallibleAccept, TlsStream};

use super::socket::Socket;
use crate::telemetry::names::{self, label, value};
use crate::tls::{self, Acceptor};

/// The first byte of a TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// The answer to plain HTTP on a port for TLS.
const USE_HTTPS: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 52\r\n\
    connection: close\r\n\
    \r\n\
    This port speaks TLS. Use https:// instead of http.\n";

/// The bytes of a connection.
pub(crate) enum Wire {
    Plain(Socket),
    Tls(Box<Secured>),
}

impl Wire {
    pub(crate) fn new(socket: Socket, tls: Option<&Acceptor>) -> Self {
        match tls {
            None => Self::Plain(socket),
            Some(acceptor) => Self::Tls(Box::new(Secured::Fresh(socket, acceptor.clone()))),
        }
    }
}

/// A connection on a port for TLS.
pub(crate) enum Secured {
    /// Nothing has arrived.
    Fresh(Socket, Acceptor),
    Handshake(FallibleAccept<Socket>),
    Open(TlsStream<Socket>),
    /// The client speaks plain HTTP. These bytes are sent as the answer.
    PlainHttp(Socket, &'static [u8]),
    /// No handshake was possible.
    Over,
}

impl Secured {
    /// Drives the handshake until there is a TLS stream. Returns `None` if there will be none.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<&mut TlsStream<Socket>>>> {
        // The same check appears twice: the borrow checker does not accept a reference that is returned from within the
        // loop.
        while !matches!(self, Self::Open(_)) {
            match self {
                Self::Fresh(socket, _) => {
                    let first = ready!(socket.poll_first(cx))?;
                    self.begin(first);
                }
                Self::Handshake(handshake) => match ready!(Pin::new(handshake).poll(cx)) {
                    Ok(open) => *self = Self::Open(open),
                    Err((error, socket)) => {
                        *self = Self::Over;
                        return Poll::Ready(Err(failed(error, socket, cx)));
                    }
                },
                Self::PlainHttp(socket, left) => {
                    while !left.is_empty() {
                        let sent = ready!(Pin::new(&mut *socket).poll_write(cx, left))?;
                        *left = &left[sent..];
                    }
                    ready!(Pin::new(socket).poll_shutdown(cx))?;
                    *self = Self::Over;
                }
                Self::Over => return Poll::Ready(Ok(None)),
                Self::Open(_) => {}
            }
        }
        match self {
            Self::Open(open) => Poll::Ready(Ok(Some(open))),
            _ => Poll::Ready(Ok(None)),
        }
    }

    fn begin(&mut self, first: Option<u8>) {
        let Self::Fresh(socket, acceptor) = std::mem::replace(self, Self::Over) else { return };
        match first {
            // A load balancer may open a connection only to check that the port is open.
            None => {}
            Some(HANDSHAKE) => *self = Self::Handshake(acceptor.accept(socket)),
            Some(letter) if letter.is_ascii_uppercase() => {
                count(value::HANDSHAKE_PLAIN_HTTP);
                *self = Self::PlainHttp(socket, USE_HTTPS);
            }
            // This handshake will fail, and the client gets an alert.
            Some(_) => *self = Self::Handshake(acceptor.accept(socket)),
        }
    }

    /// Returns the stream after the handshake. HTTP writes nothing before that.
    fn open(&mut self) -> io::Result<Pin<&mut TlsStream<Socket>>> {
        match self {
            Self::Open(open) => Ok(Pin::new(open)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

fn failed(error: io::Error, mut socket: Socket, cx: &mut Context<'_>) -> io::Error {
    count(tls::failure(&error));
    // The client should get the alert. So the server ends only its own direction, and the client can close first.
    let _ = Pin::new(&mut socket).poll_shutdown(cx);
    error
}

fn count(reason: &'static str) {
    metrics::counter!(names::TLS_HANDSHAKES_FAILED, label::REASON => reason).increment(1);
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(secured) => match ready!(secured.poll_open(cx))? {
                Some(open) => Pin::new(open).poll_read(cx, buf),
                None => Poll::Ready(Ok(())),
            },
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Tls(secured) => secured.open()?.poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Tls(secured) => secured.open()?.poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(_) => true,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(secured) => match secured.open() {
                Ok(open) => open.poll_flush(cx),
                Err(_) => Poll::Ready(Ok(())),
            },
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(secured) => match secured.open() {
                Ok(open) => open.poll_shutdown(cx),
                Err(_) => Poll::Ready(Ok(())),
            },
        }
    }
}
