//! TLS of a running server: the settings -> an acceptor for each listener, and a task that loads a renewed certificate.

use std::net::SocketAddr;

use crate::config::Tls;
use crate::http::Listener;
use crate::tls::{self, Acceptor};
use tokio::net::TcpListener;

/// The TLS acceptors of the listener for requests and of the listener for probes.
#[derive(Default)]
pub(super) struct Secure {
    server: Option<Acceptor>,
    probes: Option<Acceptor>,
}

impl Secure {
    /// Begins to watch the certificate's files. Without settings, both listeners speak plain HTTP.
    pub(super) fn start(tls: Option<Tls>) -> Self {
        let Some(Tls { files, certificate, admin_listen }) = tls else { return Self::default() };
        let acceptor = Acceptor::new(&certificate);
        tokio::spawn(tls::watch(files, certificate, acceptor.clone()));
        Self { probes: admin_listen.then(|| acceptor.clone()), server: Some(acceptor) }
    }

    pub(super) fn server(&self, socket: TcpListener) -> Listener {
        Listener::new(socket, self.server.clone())
    }

    pub(super) fn probes(&self, socket: TcpListener) -> Listener {
        Listener::new(socket, self.probes.clone())
    }

    /// Returns the URL of the server.
    pub(super) fn server_url(&self, address: SocketAddr) -> String {
        url(self.server.as_ref(), address)
    }

    /// Returns the URL of the listener for probes.
    pub(super) fn probes_url(&self, address: SocketAddr) -> String {
        url(self.probes.as_ref(), address)
    }
}

fn url(tls: Option<&Acceptor>, address: SocketAddr) -> String {
    let scheme = if tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}
