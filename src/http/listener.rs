//! A listening socket, and whether its connections speak TLS.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use crate::tls::Acceptor;

/// A socket that listens for plain HTTP, or for HTTP over TLS.
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Acceptor>,
}

impl Listener {
    /// `tls` makes the handshakes; `None` means plain HTTP.
    pub fn new(tcp: TcpListener, tls: Option<Acceptor>) -> Self {
        Self { tcp, tls }
    }

    pub(super) fn tcp(&self) -> &TcpListener {
        &self.tcp
    }

    /// Consumes the listener, and returns its queue. Connections can still be taken out of the queue.
    pub(super) fn into_queue(self) -> io::Result<Queue> {
        self.tcp.into_std().map(Queue)
    }

    pub(super) fn tls(&self) -> Option<&Acceptor> {
        self.tls.as_ref()
    }
}

/// The connections that wait in the kernel's queue. Tokio knows only the connections that the kernel has already
/// reported, so this type asks the kernel itself.
pub(super) struct Queue(std::net::TcpListener);

impl Iterator for Queue {
    type Item = (TcpStream, SocketAddr);

    /// Takes one connection out of the queue; does not wait if the queue is empty.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.accept() {
                Ok((stream, peer)) => {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                    return stream.ok().map(|stream| (stream, peer));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return None,
            }
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}
