//! The current certificate -> handshakes. In: a certificate, perhaps newer ones later, and streams of bytes. Out: TLS
//! streams, or the reason why a handshake failed. Knows nothing of files.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::FallibleAccept;

use super::certificate::Certificate;
use crate::telemetry::names::value;

/// Makes TLS streams. Clones share the certificate.
#[derive(Clone)]
pub struct Acceptor {
    handshakes: TlsAcceptor,
    present: Arc<Present>,
}

/// The certificate for the next handshake. It is read once for each handshake, so the lock costs almost nothing.
struct Present(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Present {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl fmt::Debug for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Present(..)")
    }
}

impl Acceptor {
    /// Offers TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1. Clients may resume their sessions, even after
    /// [`renew`](Self::renew).
    pub fn new(certificate: &Certificate) -> Self {
        let present = Arc::new(Present(RwLock::new(Arc::clone(certificate.pair()))));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has cipher suites for both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&present) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Without tickets, only the last 256 sessions could be resumed.
        match ring::Ticketer::new() {
            Ok(ticketer) => config.ticketer = ticketer,
            Err(error) => tracing::warn!(%error, "cannot make TLS session tickets; clients repeat full handshakes"),
        }
        Self { handshakes: TlsAcceptor::from(Arc::new(config)), present }
    }

    /// Uses another certificate from the next handshake on. Open connections keep their certificate.
    pub fn renew(&self, certificate: &Certificate) {
        *self.present.0.write() = Arc::clone(certificate.pair());
    }

    /// Begins a handshake. If the handshake fails, the stream is returned, so that it can be closed properly.
    pub fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> FallibleAccept<S> {
        self.handshakes.accept(stream).into_fallible()
    }
}

/// Returns the reason why a handshake failed, as a label of metrics.
pub fn failure(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(_)) => value::HANDSHAKE_REFUSED,
        Some(_) => value::HANDSHAKE_INVALID,
        None => value::HANDSHAKE_CLOSED,
    }
}
