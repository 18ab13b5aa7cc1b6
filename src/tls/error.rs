//! The reasons why the files of a certificate cannot be used: the file, what is wrong with it, what to do.

use std::io;
use std::path::PathBuf;

/// The reason why two files are not a certificate with its key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} has more than {bytes_max} bytes, so it is not the file of a certificate or a key")]
    TooLong { path: PathBuf, bytes_max: u64 },
    #[error("{path} has no certificate; it must be in PEM form, with a line -----BEGIN CERTIFICATE-----")]
    NoCertificate { path: PathBuf },
    #[error("{path} is not a valid file of certificates: {detail}; give the server's certificate in PEM form")]
    BadCertificate { path: PathBuf, detail: String },
    #[error(
        "the private key in {path} is protected by a password; write the key without a password: \
         `openssl pkey -in {path} -out FILE`"
    )]
    KeyIsEncrypted { path: PathBuf },
    #[error("{path} has no private key; it must be in PEM form, with a line -----BEGIN PRIVATE KEY-----")]
    NoKey { path: PathBuf },
    #[error("the private key in {path} cannot be used: {detail}; give an ECDSA (P-256 or P-384), Ed25519 or RSA key")]
    BadKey { path: PathBuf, detail: String },
    #[error(
        "the private key in {key} does not belong to the first certificate in {certificate}; give the key of the \
         server's certificate, and put that certificate before those of its authorities"
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
}
