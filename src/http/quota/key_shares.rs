//! The shares of key names. In: the name of a key and its limits. Out: its share. Shares are found without a lock,
//! because every request looks for one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::meters::Meters;
use super::share::{Owner, Share};
use crate::keys::{Key, KeyLimits};
use crate::telemetry::{names::label, recorder};

/// The share of each key name that was used or is valid. The keys file limits how many there are.
#[derive(Default)]
pub(super) struct KeyShares(ArcSwap<HashMap<String, Arc<Share>>>);

impl KeyShares {
    /// Returns the share of a name, and sets its limits.
    pub(super) fn share(&self, name: &str, limits: &KeyLimits) -> Arc<Share> {
        let share = match self.0.load().get(name) {
            Some(share) => Arc::clone(share),
            None => self.add(name),
        };
        share.set_limits(limits);
        share
    }

    fn add(&self, name: &str) -> Arc<Share> {
        recorder::admit(label::KEY, name);
        let share = Arc::new(Share::new(Owner::Key(name.to_owned()), Meters::of_key(name)));
        // Another request may add the same name at the same time. The share that was added first is used.
        let before = self.0.rcu(|shares| {
            let mut shares = HashMap::clone(shares);
            shares.entry(name.to_owned()).or_insert_with(|| Arc::clone(&share));
            shares
        });
        before.get(name).map_or(share, Arc::clone)
    }

    /// Makes the shares of these keys, and removes all other shares together with their metrics.
    pub(super) fn keep(&self, valid: &[Arc<Key>]) {
        valid.iter().for_each(|key| drop(self.share(key.name(), key.limits())));
        let names: HashSet<_> = valid.iter().map(|key| key.name()).collect();
        let shares = self.0.load();
        for name in shares.keys().filter(|name| !names.contains(&***name)) {
            self.0.rcu(|shares| {
                let mut shares = HashMap::clone(shares);
                shares.remove(name);
                shares
            });
            recorder::forget(label::KEY, name);
        }
    }
}
