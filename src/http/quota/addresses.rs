//! The shares of addresses without a valid key: a bounded number of them.
//! Comes in: an address. Knows nothing of proxies and headers.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::bucket::Nanos;
use super::meters::Meters;
use super::share::{Owner, Share};
use crate::config::AddressLimits;
use crate::keys::KeyLimits;

/// Maps with a lock each, so that clients do not wait for each other.
const PARTS: usize = 16;
/// The addresses of one map. All others share one more entry, so that a client with many addresses gains little.
const ADDRESSES_MAX: usize = 4096;
/// The pause between two searches for entries that are not used, each of which reads a whole map.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// The share of each address.
pub(super) struct Addresses {
    limits: KeyLimits,
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

struct Part {
    shares: HashMap<IpAddr, Arc<Share>>,
    others: Arc<Share>,
    searched: Option<Instant>,
}

impl Addresses {
    /// Returns `None` if there are no limits.
    pub(super) fn new(limits: AddressLimits) -> Option<Self> {
        if limits == AddressLimits::default() {
            return None;
        }
        let AddressLimits { requests_per_second, bytes_per_second, requests_in_flight } = limits;
        let documents_per_second = None;
        let limits = KeyLimits { requests_per_second, bytes_per_second, documents_per_second, requests_in_flight };
        let part = || Part { shares: HashMap::new(), others: share(&limits), searched: None };
        Some(Self { limits, hasher: RandomState::new(), parts: std::array::from_fn(|_| Mutex::new(part())) })
    }

    /// Returns the share of an address.
    pub(super) fn share(&self, address: IpAddr) -> Arc<Share> {
        let part = self.hasher.hash_one(address) as usize % PARTS;
        let mut part = self.parts[part].lock();
        if let Some(share) = part.shares.get(&address) {
            return Arc::clone(share);
        }
        if part.shares.len() >= ADDRESSES_MAX && part.searched.is_none_or(|at| at.elapsed() >= SEARCH_PAUSE) {
            let now = Nanos::now();
            part.shares.retain(|_, share| Arc::strong_count(share) > 1 || !share.is_unused(now));
            part.searched = Some(Instant::now());
        }
        if part.shares.len() >= ADDRESSES_MAX {
            return Arc::clone(&part.others);
        }
        let share = share(&self.limits);
        part.shares.insert(address, Arc::clone(&share));
        share
    }
}

fn share(limits: &KeyLimits) -> Arc<Share> {
    let share = Share::new(Owner::Address, Meters::none());
    share.set_limits(limits);
    Arc::new(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        Addresses::new(AddressLimits { requests_per_second: Some(1), ..AddressLimits::default() }).unwrap()
    }

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn each_address_has_its_own_limit() {
        let addresses = addresses();
        assert!(addresses.share(v4(1)).begin().is_ok());
        assert!(addresses.share(v4(1)).begin().is_err());
        assert!(addresses.share(v4(2)).begin().is_ok());
        assert!(Addresses::new(AddressLimits::default()).is_none());
    }

    #[test]
    fn a_flood_of_addresses_takes_bounded_memory_and_shares_one_limit() {
        let limits = AddressLimits { requests_in_flight: Some(1), ..AddressLimits::default() };
        let addresses = Addresses::new(limits).unwrap();
        let answered: Vec<_> = (0..200_000).filter_map(|number| addresses.share(v4(number)).begin().ok()).collect();
        let kept: usize = addresses.parts.iter().map(|part| part.lock().shares.len()).sum();
        assert_eq!(kept, PARTS * ADDRESSES_MAX);
        // Each address that is kept has one request in flight, and so has the entry of all others of a map.
        assert_eq!(answered.len(), kept + PARTS);
    }
}
