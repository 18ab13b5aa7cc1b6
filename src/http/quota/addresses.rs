//! The shares of addresses from which requests without a valid key come. Knows nothing of proxies and headers.

use std::net::IpAddr;
use std::sync::Arc;

use super::bounded::Bounded;
use super::meters::Meters;
use super::share::{Owner, Share};
use crate::config::AddressLimits;
use crate::keys::KeyLimits;

/// The share of each address.
pub(super) struct Addresses(Bounded<IpAddr>);

impl Addresses {
    /// Returns `None` if addresses have no limits.
    pub(super) fn new(limits: AddressLimits) -> Option<Self> {
        if limits == AddressLimits::default() {
            return None;
        }
        let AddressLimits { requests_per_second, bytes_per_second, requests_in_flight } = limits;
        let documents_per_second = None;
        let limits = KeyLimits { requests_per_second, bytes_per_second, documents_per_second, requests_in_flight };
        Some(Self(Bounded::new(move || Share::limited(Owner::Address, &limits, Meters::none()))))
    }

    /// Returns the share of an address.
    pub(super) fn share(&self, address: IpAddr) -> Arc<Share> {
        self.0.share(&address)
    }
}
