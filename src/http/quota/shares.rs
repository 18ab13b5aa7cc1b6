//! The shares of all clients: of key names, and of addresses without a valid key.

use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::Addresses;
use super::key_shares::KeyShares;
use super::share::Share;
use crate::config::AddressLimits;
use crate::keys::{Key, KeyLimits};

pub(crate) struct Shares {
    keys: KeyShares,
    /// `None`: addresses have no limits.
    addresses: Option<Addresses>,
}

impl Shares {
    pub(crate) fn new(address_limits: AddressLimits) -> Self {
        Self { keys: KeyShares::default(), addresses: Addresses::new(address_limits) }
    }

    /// Returns the share of a key name, with these limits from now on.
    pub(crate) fn of_key(&self, name: &str, limits: &KeyLimits) -> Arc<Share> {
        self.keys.share(name, limits)
    }

    /// Returns the share of an address; `None` if addresses have no limits.
    pub(crate) fn of_address(&self, address: IpAddr) -> Option<Arc<Share>> {
        self.addresses.as_ref().map(|addresses| addresses.share(address))
    }

    /// Makes the metrics of these keys, and removes those of all others.
    pub(crate) fn keep_keys(&self, valid: &[Arc<Key>]) {
        self.keys.keep(valid);
    }
}
