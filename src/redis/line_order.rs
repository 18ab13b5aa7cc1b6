//! The order of the documents of one stream. Several of them are inserted at once. A document that shares a band, a
//! content or the id with earlier ones waits until these are answered, so it sees them.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Ended turns are forgotten when there are more keys, and again whenever the number of keys has doubled since.
const KEYS_MIN: usize = 16_384;

/// The order of the documents of one stream.
#[derive(Default)]
pub struct LineOrder {
    hasher: RandomState,
    last: Mutex<Last>,
}

/// The last turn of each key. Keys are hashed. If two of them have the same hash, a document waits without need.
#[derive(Default)]
struct Last {
    turns: HashMap<u64, CancellationToken>,
    /// Ended turns are forgotten if there are more keys.
    keys_max: usize,
}

/// The place of a document in the order. It ends when it is dropped.
pub(super) struct Turn {
    /// They are cancelled when the earlier documents have ended.
    earlier: Vec<CancellationToken>,
    _ended: DropGuard,
}

impl LineOrder {
    /// Takes the next turn, for a document with these keys.
    pub(super) fn take<K: Hash>(&self, keys: impl Iterator<Item = K>) -> Turn {
        let mut keys: Vec<_> = keys.map(|key| self.hasher.hash_one(key)).collect();
        // Otherwise, a document with a key twice would wait for itself.
        keys.sort_unstable();
        keys.dedup();
        let ended = CancellationToken::new();
        let mut last = self.last.lock();
        let before = keys.into_iter().filter_map(|key| last.turns.insert(key, ended.clone()));
        let earlier = before.filter(|turn| !turn.is_cancelled()).collect();
        if last.turns.len() > last.keys_max.max(KEYS_MIN) {
            last.turns.retain(|_, turn| !turn.is_cancelled());
            last.keys_max = 2 * last.turns.len();
        }
        Turn { earlier, _ended: ended.drop_guard() }
    }
}

impl Turn {
    /// Waits until all earlier documents have ended that share a key with this one.
    pub(super) async fn comes(&self) {
        for earlier in &self.earlier {
            earlier.cancelled().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_turn_waits_for_all_earlier_ones_with_a_common_key() {
        let turns = LineOrder::default();
        let first = turns.take(["a", "b", "a"].into_iter());
        let other = turns.take(["c"].into_iter());
        let second = turns.take(["b", "c"].into_iter());
        let third = turns.take(["b"].into_iter());
        let has_come = |turn: &Turn| turn.comes().now_or_never().is_some();
        assert!(has_come(&first) && has_come(&other) && !has_come(&second) && !has_come(&third));
        drop(first);
        assert!(!has_come(&second));
        drop(other);
        assert!(has_come(&second) && !has_come(&third));
        drop(second);
        assert!(has_come(&third));
    }

    #[test]
    fn ended_turns_are_forgotten() {
        let turns = LineOrder::default();
        let open = turns.take([u64::MAX].into_iter());
        for key in 0..100_000_u64 {
            drop(turns.take([key].into_iter()));
        }
        assert!(turns.last.lock().turns.len() <= KEYS_MIN + 1);
        let waits = turns.take([u64::MAX].into_iter());
        assert!(waits.comes().now_or_never().is_none());
        drop(open);
        assert!(waits.comes().now_or_never().is_some());
    }
}
