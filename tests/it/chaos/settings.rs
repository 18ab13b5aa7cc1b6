//! Changes of settings: new bandings, and times to live that are set and removed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hapax::collections::{BandingAsked, Changes, Collection};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::scopes::KEPT;
use super::world::{GHOSTS, SURE, banding};
use super::writers::STORE;
use super::{Chaos, PATIENCE};
use crate::support::documents::id;

impl Chaos {
    /// Builds one banding after another. The last one is the banding that misses nothing.
    pub(super) async fn change_bandings(self: Arc<Self>) {
        for next in [(32, 2), SURE, (21, 3), (30, 2)].into_iter().cycle() {
            if !self.goes_on() {
                break;
            }
            self.reband(next).await;
            self.tally.one("bandings");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        self.reband(SURE).await;
    }

    async fn reband(&self, next: (u32, u32)) {
        let banding = Some(BandingAsked::ByHand(banding(next)));
        self.collection.update(Changes { banding, ..Changes::default() }).await.unwrap();
    }

    /// Lets documents expire from time to time. In the end, documents no longer expire.
    pub(super) async fn change_ttls(self: Arc<Self>) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.wrapping_mul(333));
        while !self.settles.load(Ordering::Relaxed) {
            let ttl = Duration::from_secs(rng.random_range(1..3));
            let changes = Changes { ttl: Some(Some(ttl)), touch: Some(rng.random_bool(0.5)), ..Changes::default() };
            self.collection.update(changes).await.unwrap();
            self.ghost(ttl).await;
            stay(&self.collection).await;
            tokio::time::sleep(Duration::from_millis(rng.random_range(0..1500))).await;
        }
    }

    /// Stores a document that nothing else removes, and waits until it expires.
    async fn ghost(&self, ttl: Duration) {
        let (name, seed) = (id("ghost"), self.seed);
        let sent = Instant::now();
        while self.insert(&self.collection, name.clone(), (GHOSTS, 0), (0, KEPT), STORE).await.is_err() {
            assert!(sent.elapsed() < PATIENCE, "seed {seed}: the ghost is not stored");
        }
        loop {
            let there = self.collection.document(&name).await.unwrap().is_some();
            if !there {
                break;
            }
            assert!(sent.elapsed() < PATIENCE, "seed {seed}: nothing expires");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(sent.elapsed() >= ttl, "seed {seed}: expired after {:?} of {ttl:?}", sent.elapsed());
        self.tally.one("expired");
    }
}

async fn stay(collection: &Collection) {
    collection.update(Changes { ttl: Some(None), ..Changes::default() }).await.unwrap();
}
