//! The section `[tls]`: the files of the certificate. Out: a certificate that was read, so that a server with broken
//! files does not start. It must never know how a handshake is made.

use std::io::ErrorKind;

use super::error::ConfigError;
use super::ranges::impossible;
use super::raw::RawTls;
use super::secrets::denied;
use crate::tls::{Certificate, CertificateError, CertificateFiles};

/// The section `[tls]`, if it names a certificate.
#[derive(Clone, Debug)]
pub struct Tls {
    pub files: CertificateFiles,
    /// The contents of the files when the settings were checked.
    pub certificate: Certificate,
    /// Whether the listener for probes also uses TLS.
    pub admin_listen: bool,
}

impl Tls {
    pub(super) fn check(raw: RawTls) -> Result<Option<Self>, ConfigError> {
        let given = |path: &std::path::Path| !path.as_os_str().is_empty();
        match (given(&raw.cert_file), given(&raw.key_file)) {
            (true, true) => {}
            (true, false) => return Err(half("tls.cert_file", "tls.key_file", &raw.cert_file)),
            (false, true) => return Err(half("tls.key_file", "tls.cert_file", &raw.key_file)),
            (false, false) if raw.admin_listen => {
                let allowed = "must be false if tls.cert_file and tls.key_file are not set".to_owned();
                return Err(impossible("tls.admin_listen", raw.admin_listen, allowed));
            }
            (false, false) => return Ok(None),
        }
        let files = CertificateFiles::new(raw.cert_file, raw.key_file);
        let certificate = Certificate::read(&files).map_err(refused)?;
        Ok(Some(Self { files, certificate, admin_listen: raw.admin_listen }))
    }

    /// Whether the section names a certificate. It does not read the file.
    pub(super) fn is_on(raw: &RawTls) -> bool {
        !raw.cert_file.as_os_str().is_empty()
    }
}

fn half(key: &'static str, missing: &str, path: &std::path::Path) -> ConfigError {
    impossible(key, path.display(), format!("{missing} must be set, too; a server needs a certificate and its key"))
}

fn refused(error: CertificateError) -> ConfigError {
    match error {
        CertificateError::Unreadable { path, source } if source.kind() == ErrorKind::PermissionDenied => {
            let detail = denied(&path);
            ConfigError::SecretFile { key: "the file in [tls]", path, detail }
        }
        error => ConfigError::Tls(error),
    }
}
