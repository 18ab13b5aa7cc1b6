//! Settings that are possible and probably a mistake. Goes in: checked settings. Comes out: a sentence for each.

use jiff::Timestamp;

use super::api_key::ApiKey;
use super::checked::Config;
use crate::keys;
use crate::tls;

impl Config {
    /// What is probably a mistake in the settings themselves.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.api_key.as_ref().is_some_and(ApiKey::is_short) {
            warnings.push("the API key is short enough to be guessed; use at least 16 random characters".to_owned());
        }
        if let Some(everybody) = self.server.addresses.trusted_proxies.everybody() {
            warnings.push(format!(
                "server.trusted_proxies has {everybody}, so any client can claim any address in X-Forwarded-For; name \
                 your proxies only"
            ));
        }
        warnings
    }

    /// What will end soon, or has ended, of the files that the settings name. A running server tells this itself.
    pub fn endings(&self, now: Timestamp) -> Vec<String> {
        let mut endings = Vec::new();
        if let Some(tls) = &self.tls {
            let expires = tls.certificate.expires();
            if expires <= now {
                endings.push(format!("the TLS certificate expired at {expires}; clients refuse it"));
            } else if expires.duration_since(now) < tls::SOON {
                endings.push(format!("the TLS certificate expires at {expires}"));
            }
        }
        if let Some(file) = &self.keys_file {
            if self.api_key.is_none() && file.keys().iter().all(|key| key.is_expired(now)) {
                endings.push("no key is valid, so every request is refused; add one with `hapax keys add`".to_owned());
            }
            if let Some((name, expires)) = keys::next_to_end(file.keys().iter(), now)
                && expires.duration_since(now) < keys::SOON
            {
                endings.push(format!(
                    "the last key named {name:?} expires at {expires}; add another with `hapax keys add`"
                ));
            }
        }
        endings
    }
}
