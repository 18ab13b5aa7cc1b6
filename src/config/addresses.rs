//! The section `[address_limits]`, which limits clients without a valid key, and `server.trusted_proxies`. It must
//! never know how a limit is enforced, or the meaning of a header.

use std::net::IpAddr;

use ipnet::IpNet;

use super::error::ConfigError;
use super::ranges::{each, within};
use super::raw::RawAddressLimits;

/// The settings about the addresses of clients.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    pub limits: AddressLimits,
    pub trusted_proxies: TrustedProxies,
}

impl Addresses {
    pub(super) fn check(limits: &RawAddressLimits, proxies: &[String]) -> Result<Self, ConfigError> {
        Ok(Self { limits: AddressLimits::check(limits)?, trusted_proxies: TrustedProxies::new(proxies)? })
    }
}

/// The limits of one address. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressLimits {
    pub requests_per_second: Option<u64>,
    pub bytes_per_second: Option<u64>,
    pub requests_in_flight: Option<u64>,
}

impl AddressLimits {
    fn check(raw: &RawAddressLimits) -> Result<Self, ConfigError> {
        let limit = |key, value, max| within(key, value, 0..=max).map(|value| Some(value).filter(|&value| value > 0));
        Ok(Self {
            requests_per_second: limit("address_limits.requests_per_second", raw.requests_per_second, 1_000_000)?,
            bytes_per_second: limit("address_limits.bytes_per_second", raw.bytes_per_second, 1 << 40)?,
            requests_in_flight: limit("address_limits.requests_in_flight", raw.requests_in_flight, 1_000_000)?,
        })
    }
}

/// The proxies whose `X-Forwarded-For` is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Reads addresses and networks, such as `10.0.0.5` and `10.0.0.0/8`.
    pub fn new(list: &[String]) -> Result<Self, ConfigError> {
        let net = |text: &str| text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        each("server.trusted_proxies", list, net, "addresses and networks, such as 10.0.0.5 or 10.0.0.0/8").map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a network in the list that contains every address.
    pub fn everybody(&self) -> Option<IpNet> {
        self.0.iter().copied().find(|net| net.prefix_len() == 0)
    }

    /// Whether the address is in the list. An IPv4 address must not be written as IPv6.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(&address))
    }
}
