//! The texts of two PEM files -> a certificate with its key, ready for handshakes. Reads no files: their paths are only
//! for errors.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::Error as RustlsError;
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::error::CertificateError;
use super::files::{CertificateFiles, Contents};

/// The server's certificate with the certificates of its authorities, and its private key. `{:?}` does not show the
/// key.
#[derive(Clone)]
pub struct Certificate {
    pair: Arc<CertifiedKey>,
    expires: Timestamp,
}

impl Certificate {
    /// Reads both files and checks that they belong together.
    pub fn read(files: &CertificateFiles) -> Result<Self, CertificateError> {
        Self::new(files, &files.read()?)
    }

    /// Parses the contents of both files and checks that they belong together.
    pub(super) fn new(files: &CertificateFiles, contents: &Contents) -> Result<Self, CertificateError> {
        let chain = chain(files, contents.certificate())?;
        let expires = expires(files, &chain[0])?;
        let key = key(files, contents.key())?;
        let provider = ring::default_provider();
        let bad_key =
            |error: RustlsError| CertificateError::BadKey { path: files.key().to_owned(), detail: error.to_string() };
        provider.key_provider.load_private_key(key.clone_key()).map_err(bad_key)?;
        let pair = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            RustlsError::InconsistentKeys(_) => {
                CertificateError::Mismatch { certificate: files.certificate().to_owned(), key: files.key().to_owned() }
            }
            error => {
                CertificateError::BadCertificate { path: files.certificate().to_owned(), detail: error.to_string() }
            }
        })?;
        Ok(Self { pair: Arc::new(pair), expires })
    }

    pub(super) fn pair(&self) -> &Arc<CertifiedKey> {
        &self.pair
    }

    /// Whether both have the same certificates, including those of the authorities.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.pair.cert == other.pair.cert
    }

    /// Returns when the server's own certificate expires. It is the first one in its file.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("expires", &self.expires).finish_non_exhaustive()
    }
}

fn chain(files: &CertificateFiles, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let path = || files.certificate().to_owned();
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| CertificateError::BadCertificate { path: path(), detail: error.to_string() })?;
    if chain.is_empty() { Err(CertificateError::NoCertificate { path: path() }) } else { Ok(chain) }
}

fn expires(files: &CertificateFiles, certificate: &CertificateDer<'_>) -> Result<Timestamp, CertificateError> {
    let bad = |detail: String| CertificateError::BadCertificate { path: files.certificate().to_owned(), detail };
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| bad(error.to_string()))?;
    // RFC 5280, section 4.1.2.5: 99991231235959Z means that a certificate has no end. It is a valid timestamp.
    Timestamp::from_second(parsed.validity().not_after.timestamp()).map_err(|error| bad(error.to_string()))
}

fn key(files: &CertificateFiles, text: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let path = files.key().to_owned();
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        _ if text.windows(9).any(|word| word == b"ENCRYPTED") => CertificateError::KeyIsEncrypted { path },
        rustls_pki_types::pem::Error::NoItemsFound => CertificateError::NoKey { path },
        error => CertificateError::BadKey { path, detail: error.to_string() },
    })
}
