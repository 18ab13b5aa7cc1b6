//! A listening socket, and whether its connections speak TLS.

use tokio::net::TcpListener;

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

    pub(super) fn tls(&self) -> Option<&Acceptor> {
        self.tls.as_ref()
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}
