//! The authorities that a client trusts, and its own certificate -> settings for its handshakes.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::certificate::Certificate;

/// The settings of a client for its handshakes.
pub type ClientSettings = Arc<ClientConfig>;

/// Returns the settings of a client that trusts these authorities. `own` is the certificate that it shows.
pub fn client_settings(authorities: Vec<CertificateDer<'static>>, own: Option<&Certificate>) -> ClientSettings {
    let mut roots = RootCertStore::empty();
    // The system may have certificates that cannot be used.
    roots.add_parsable_certificates(authorities);
    let settings = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots);
    Arc::new(match own {
        None => settings.with_no_client_auth(),
        Some(own) => {
            let pair = CertifiedKey::clone(own.pair());
            settings.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair)))
        }
    })
}

/// Returns the certificates of the system's authorities: those of $SSL_CERT_FILE or $SSL_CERT_DIR, if these are set. An
/// error is the end of a sentence, or empty.
pub fn authorities_of_the_system() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(found.errors.first().map(|error| format!(": {error}")).unwrap_or_default());
    }
    Ok(found.certs)
}

/// Returns the certificates of the authorities in a file. An error says what is wrong with the file.
pub fn authorities_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    if found.is_empty() { Err("the file has no certificate".to_owned()) } else { Ok(found) }
}
