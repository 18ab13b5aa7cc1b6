//! Decides which servers a client trusts when it speaks TLS. In: `--ca`. Out: settings for handshakes, and a sentence
//! for each reason why a handshake failed. Knows nothing of requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{CertificateError, Error as RustlsError};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::tls::{authorities_in, authorities_of_the_system};

/// The authorities whose certificates are accepted.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    /// The authorities of the system, or of $SSL_CERT_FILE or $SSL_CERT_DIR.
    System,
    /// Only the authorities in this file.
    File(PathBuf),
    /// Every certificate is accepted. This is only for a request that goes to this machine and contains no key.
    Anyone,
}

/// The reason why the trusted authorities are not known.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("--ca {path}: {detail}; it must be a file with the certificates of authorities in PEM form")]
    File { path: PathBuf, detail: String },
    #[error("this system has no certificates of authorities{detail}; give a file with them with --ca")]
    NoAuthorities { detail: String },
}

impl Trust {
    /// Takes the authorities from `ca`, or from the system.
    pub(super) fn new(ca: Option<&Path>) -> Self {
        ca.map_or(Self::System, |path| Self::File(path.to_owned()))
    }

    /// Reads the certificates of the authorities.
    pub(super) fn settings(&self) -> Result<TlsConfig, TrustError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let settings = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        let authorities = match self {
            Self::Anyone => return Ok(settings.disable_verification(true).build()),
            Self::System => authorities_of_the_system().map_err(|detail| TrustError::NoAuthorities { detail })?,
            Self::File(path) => {
                authorities_in(path).map_err(|detail| TrustError::File { path: path.clone(), detail })?
            }
        };
        let authorities: Vec<_> =
            authorities.iter().map(|authority| Certificate::from_der(authority).to_owned()).collect();
        Ok(settings.root_certs(RootCerts::Specific(Arc::new(authorities))).build())
    }
}

/// Returns the error of a handshake, if `error` is one.
pub(super) fn handshake_error(error: &ureq::Error) -> Option<&RustlsError> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Returns the reason why a handshake failed, and what to do.
pub(super) fn explain(error: &RustlsError) -> String {
    match error {
        RustlsError::InvalidCertificate(reason) => untrusted(reason),
        RustlsError::InvalidMessage(_) => {
            "the answer is not TLS. If the server speaks plain HTTP, give its URL with http://".to_owned()
        }
        error => format!("the TLS handshake failed: {error}"),
    }
}

/// `DnsName("hapax.internal")` -> `hapax.internal`
fn bare(name: &str) -> &str {
    name.split_once('(').map_or(name, |(_, inner)| inner.trim_matches(['"', ')']))
}

fn untrusted(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is from an authority that is not trusted. Give the certificate of that authority with --ca"
                .to_owned()
        }
        CertificateError::NotValidForName => {
            "its certificate is for another name than the host name of the URL".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = if presented.is_empty() {
                "none".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            };
            format!("its certificate is for other names than the host name of the URL: {names}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired. Renew it on the server; the clock of this machine may also be wrong"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet. The clock of this machine or of the authority may be wrong".to_owned()
        }
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (CA:TRUE), so a server may not use it. Make another for the server"
                .to_owned()
        }
        other => format!("its certificate is not accepted: {other}"),
    }
}
