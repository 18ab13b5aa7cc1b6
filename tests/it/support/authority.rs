//! A certificate authority for tests: certificates for servers, and clients that trust them.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hapax::tls::{Acceptor, Certificate, CertificateFiles};
use rcgen::{BasicConstraints, CertificateParams, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The names in a certificate for tests, unless a test sets other names.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM form.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// A TLS connection, and the results of its handshake.
pub type Tls = StreamOwned<ClientConnection, TcpStream>;

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a certificate for this machine.
    pub fn sign(&self) -> Pair {
        self.sign_with(&NAMES, |_| {})
    }

    pub fn sign_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Pair { certificate: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }

    /// Writes the authority's own certificate, for `--ca`.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let path = dir.join("ca.pem");
        fs::write(&path, &self.pem).unwrap();
        path
    }

    /// Returns the part that makes the handshakes of a server within the test's process.
    pub fn acceptor(&self, dir: &Path) -> Acceptor {
        let files = self.sign().write(dir);
        Acceptor::new(&Certificate::read(&files).unwrap())
    }

    /// Returns the settings of a client that trusts this authority and offers these protocols.
    pub fn trusted(&self, protocols: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        config
    }

    /// Connects, and makes the handshake.
    pub fn connect(&self, address: SocketAddr, protocols: &[&str]) -> std::io::Result<Tls> {
        connect(Arc::new(self.trusted(protocols)), address)
    }

    /// Returns the settings of an HTTP client that trusts this authority.
    pub fn for_agents(&self) -> ureq::tls::TlsConfig {
        let root = ureq::tls::Certificate::from_pem(self.pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ureq::tls::TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(ureq::tls::RootCerts::new_with_certs(&[root]))
            .build()
    }
}

/// Connects to 127.0.0.1, and makes the handshake.
pub fn connect(config: Arc<ClientConfig>, address: SocketAddr) -> std::io::Result<Tls> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut tls = ClientConnection::new(config, name).map_err(std::io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(tls, stream))
}

impl Pair {
    /// Writes both files, `cert.pem` and `key.pem`.
    pub fn write(&self, dir: &Path) -> CertificateFiles {
        let files = CertificateFiles::new(dir.join("cert.pem"), dir.join("key.pem"));
        fs::write(files.certificate(), &self.certificate).unwrap();
        fs::write(files.key(), &self.key).unwrap();
        files
    }

    /// The certificate as it is sent in handshakes.
    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}
