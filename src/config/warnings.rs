//! Settings that are valid, but probably a mistake. In: checked settings. Out: one sentence for each mistake.

use jiff::Timestamp;

use super::addresses::Addresses;
use super::api_key::ApiKey;
use super::tls::Tls;
use crate::keys::{self, KeysFile};
use crate::tls::Life;

/// Returns the probable mistakes in the settings themselves.
pub fn warnings(api_key: Option<&ApiKey>, addresses: &Addresses) -> Vec<String> {
    let mut warnings = Vec::new();
    if api_key.is_some_and(ApiKey::is_short) {
        warnings.push("the API key is short enough to be guessed; use at least 16 random characters".to_owned());
    }
    if let Some(everybody) = addresses.trusted_proxies.everybody() {
        warnings.push(format!(
            "server.trusted_proxies has {everybody}, so any client can claim any address in X-Forwarded-For; name your \
             proxies only"
        ));
    }
    warnings
}

/// Returns a warning if a certificate has expired or expires soon. A running server reports this itself.
pub fn certificate_ends(tls: &Tls, now: Timestamp) -> Option<String> {
    let expires = tls.certificate.expires();
    match Life::at(now, expires) {
        Life::Long => None,
        Life::EndsSoon => Some(format!("the TLS certificate expires at {expires}")),
        Life::Over => Some(format!("the TLS certificate expired at {expires}; clients refuse it")),
    }
}

/// Returns a warning if no key of a file is valid, or if the last key of a name expires soon. A running server reports
/// this itself.
pub fn keys_end(file: &KeysFile, now: Timestamp) -> Option<String> {
    if file.keys().iter().all(|key| key.is_expired(now)) {
        return Some("no key is valid, so every request is refused; add one with `hapax keys add`".to_owned());
    }
    let (name, expires) = keys::next_to_end(file.keys().iter(), now)?;
    keys::is_soon(expires, now)
        .then(|| format!("the last key named {name:?} expires at {expires}; add another with `hapax keys add`"))
}
