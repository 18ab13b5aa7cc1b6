//! Counts refused requests by reason, and logs at most one line for each address in a minute. In: the client's address,
//! and its key if the key is valid. Out: the counter and the line. A line names the key of the request that led to the
//! line. Values that the client chose, such as a host name or a path, are never logged.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use axum::http::Extensions;
use parking_lot::Mutex;

use super::caller::Caller;
use super::notes::Notes;
use crate::telemetry::REFUSED;
use crate::telemetry::names::{self, label, value};

/// At most one line per address in this time. The next line has the number of refusals since the last line.
const PERIOD: Duration = Duration::from_secs(60);
/// How many addresses are remembered. All other addresses share one line.
const ADDRESSES_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No key was sent, but one is required.
    NoKey,
    WrongKey,
    ExpiredKey,
    /// The key does not allow the request.
    Forbidden,
    /// No key is configured, and the `Host` is not one of the server's names.
    ForeignHost,
    /// No key is configured, and the request comes from a page of another site.
    ForeignPage,
    /// The request has no valid key, and its address has reached one of its limits.
    AddressLimit,
}

impl Reason {
    const ALL: [Self; 7] = [
        Self::NoKey,
        Self::WrongKey,
        Self::ExpiredKey,
        Self::Forbidden,
        Self::ForeignHost,
        Self::ForeignPage,
        Self::AddressLimit,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::NoKey => value::REFUSED_NO_KEY,
            Self::WrongKey => value::REFUSED_WRONG_KEY,
            Self::ExpiredKey => value::REFUSED_EXPIRED_KEY,
            Self::Forbidden => value::REFUSED_FORBIDDEN,
            Self::ForeignHost => value::REFUSED_FOREIGN_HOST,
            Self::ForeignPage => value::REFUSED_FOREIGN_PAGE,
            Self::AddressLimit => value::REFUSED_ADDRESS_LIMIT,
        }
    }
}

/// The refusals of the last minute, by address.
pub(super) struct Refusals {
    by_address: Mutex<HashMap<Option<IpAddr>, Lately>>,
}

struct Lately {
    logged: Instant,
    since_then: u64,
}

impl Refusals {
    pub(super) fn new() -> Self {
        for reason in Reason::ALL {
            metrics::counter!(names::HTTP_REFUSED, label::REASON => reason.as_str()).increment(0);
        }
        Self { by_address: Mutex::default() }
    }

    /// Counts the refusal of a request that has these extensions. Logs the refusal, unless the address had a line less
    /// than a minute ago.
    pub(super) fn note(&self, extensions: &Extensions, reason: Reason) {
        metrics::counter!(names::HTTP_REFUSED, label::REASON => reason.as_str()).increment(1);
        let notes = Notes::of(extensions);
        let peer = notes.and_then(Notes::address).map(network);
        let Some((address, refused)) = self.due(peer, Instant::now()) else { return };
        let address = address.map_or_else(|| "others".to_owned(), |address| address.to_string());
        let key = notes.and_then(Notes::caller).and_then(Caller::name);
        tracing::warn!(target: REFUSED, address, key, reason = reason.as_str(), refused, "requests were refused");
    }

    /// Returns the address to log, and the number of its refusals; `None` if no line is due.
    fn due(&self, address: Option<IpAddr>, now: Instant) -> Option<(Option<IpAddr>, u64)> {
        let mut by_address = self.by_address.lock();
        if by_address.len() >= ADDRESSES_MAX && !by_address.contains_key(&address) {
            by_address.retain(|_, lately| now.duration_since(lately.logged) < PERIOD);
        }
        let full = by_address.len() >= ADDRESSES_MAX && !by_address.contains_key(&address);
        let address = address.filter(|_| !full);
        match by_address.get_mut(&address) {
            Some(lately) if now.duration_since(lately.logged) < PERIOD => {
                lately.since_then += 1;
                None
            }
            Some(lately) => {
                let refused = lately.since_then + 1;
                *lately = Lately { logged: now, since_then: 0 };
                Some((address, refused))
            }
            None => {
                by_address.insert(address, Lately { logged: now, since_then: 0 });
                Some((address, 1))
            }
        }
    }
}

/// Returns the address itself, or the /64 network of an IPv6 address, because one client may use the whole network.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[test]
    fn an_address_has_a_line_a_period_with_the_count_of_those_between() {
        let refusals = Refusals::new();
        let start = Instant::now();
        assert_eq!(refusals.due(v4(1), start), Some((v4(1), 1)));
        for second in 1..=59 {
            assert_eq!(refusals.due(v4(1), start + Duration::from_secs(second)), None);
        }
        assert_eq!(refusals.due(v4(2), start), Some((v4(2), 1)), "each address has its own");
        assert_eq!(refusals.due(v4(1), start + PERIOD), Some((v4(1), 60)));
    }

    #[test]
    fn a_flood_of_addresses_shares_one_line_and_a_bounded_memory() {
        let refusals = Refusals::new();
        let start = Instant::now();
        let lines = (0..100_000).filter(|&number| refusals.due(v4(number), start).is_some()).count();
        assert_eq!(lines, ADDRESSES_MAX + 1, "and one for all others");
        assert_eq!(refusals.by_address.lock().len(), ADDRESSES_MAX + 1);
        assert_eq!(refusals.due(v4(200_000), start + PERIOD), Some((v4(200_000), 1)), "later there is room again");
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("::1"), "::1");
    }
}
