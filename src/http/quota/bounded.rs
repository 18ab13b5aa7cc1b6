//! The shares of clients that choose their own names, such as addresses. The number of shares is bounded.
//! In: the name of a client. Out: its share. Knows nothing of what clients are.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::bucket::Nanos;
use super::share::Share;

/// The number of maps. Each map has its own lock, so that clients seldom wait for each other.
const PARTS: usize = 16;
/// The most clients in one map. All further clients share one more entry, so that a client with many names gains
/// little.
const CLIENTS_MAX: usize = 4096;
/// The least time between two searches of a map for unused entries. A search reads the whole map.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// The share of each client.
pub(super) struct Bounded<K> {
    make: Box<dyn Fn() -> Share + Send + Sync>,
    hasher: RandomState,
    parts: [Mutex<Part<K>>; PARTS],
}

struct Part<K> {
    shares: HashMap<K, Arc<Share>>,
    others: Arc<Share>,
    searched: Option<Instant>,
}

impl<K: Hash + Eq> Bounded<K> {
    /// `make` makes the share of a client.
    pub(super) fn new(make: impl Fn() -> Share + Send + Sync + 'static) -> Self {
        let part = || Part { shares: HashMap::new(), others: Arc::new(make()), searched: None };
        let parts = std::array::from_fn(|_| Mutex::new(part()));
        Self { make: Box::new(make), hasher: RandomState::new(), parts }
    }

    /// Returns the share of a client.
    pub(super) fn share<Q: Hash + Eq + ToOwned<Owned = K> + ?Sized>(&self, client: &Q) -> Arc<Share>
    where
        K: Borrow<Q>,
    {
        let part = self.hasher.hash_one(client) as usize % PARTS;
        let mut part = self.parts[part].lock();
        if let Some(share) = part.shares.get(client) {
            return Arc::clone(share);
        }
        if part.shares.len() >= CLIENTS_MAX && part.searched.is_none_or(|at| at.elapsed() >= SEARCH_PAUSE) {
            let now = Nanos::now();
            part.shares.retain(|_, share| Arc::strong_count(share) > 1 || !share.is_unused(now));
            part.searched = Some(Instant::now());
        }
        if part.shares.len() >= CLIENTS_MAX {
            return Arc::clone(&part.others);
        }
        let share = Arc::new((self.make)());
        part.shares.insert(client.to_owned(), Arc::clone(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::quota::meters::Meters;
    use crate::http::quota::share::Owner;
    use crate::keys::KeyLimits;

    fn bounded(limits: KeyLimits) -> Bounded<u32> {
        Bounded::new(move || Share::limited(Owner::Address, &limits, Meters::none()))
    }

    #[test]
    fn each_client_has_its_own_limit() {
        let clients = bounded(KeyLimits { requests_per_second: Some(1), ..KeyLimits::default() });
        assert!(clients.share(&1).begin().is_ok());
        assert!(clients.share(&1).begin().is_err());
        assert!(clients.share(&2).begin().is_ok());
    }

    #[test]
    fn a_flood_of_clients_takes_bounded_memory_and_shares_one_limit() {
        let clients = bounded(KeyLimits { requests_in_flight: Some(1), ..KeyLimits::default() });
        let answered: Vec<_> = (0..200_000).filter_map(|number| clients.share(&number).begin().ok()).collect();
        let kept: usize = clients.parts.iter().map(|part| part.lock().shares.len()).sum();
        assert_eq!(kept, PARTS * CLIENTS_MAX);
        // Each kept client has one request in flight. The entry that all other clients of a map share has one too.
        assert_eq!(answered.len(), kept + PARTS);
    }
}
