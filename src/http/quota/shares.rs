//! The shares of all clients: of key names, of addresses without a valid key, and of sources of documents.

use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::Addresses;
use super::key_shares::KeyShares;
use super::share::Share;
use super::sources::Sources;
use crate::config::AddressLimits;
use crate::keys::{Key, KeyLimits};

pub(crate) struct Shares {
    keys: KeyShares,
    /// `None`: addresses have no limits.
    addresses: Option<Addresses>,
    sources: Sources,
}

impl Shares {
    pub(crate) fn new(address_limits: AddressLimits, source_documents_per_second: Option<u64>) -> Self {
        let (addresses, sources) = (Addresses::new(address_limits), Sources::new(source_documents_per_second));
        Self { keys: KeyShares::default(), addresses, sources }
    }

    /// Returns the rate limits of all sources.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the share of a key name, and sets its limits.
    pub(crate) fn of_key(&self, name: &str, limits: &KeyLimits) -> Arc<Share> {
        self.keys.share(name, limits)
    }

    /// Returns the share of an address; `None` if addresses have no limits.
    pub(crate) fn of_address(&self, address: IpAddr) -> Option<Arc<Share>> {
        self.addresses.as_ref().map(|addresses| addresses.share(address))
    }

    /// Makes the metrics of these keys, and removes the metrics of all others.
    pub(crate) fn keep_keys(&self, valid: &[Arc<Key>]) {
        self.keys.keep(valid);
    }
}
