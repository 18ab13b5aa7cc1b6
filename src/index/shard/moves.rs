//! A shard grows, shrinks or splits: its entries move to other buckets.
//!
//! A shard grows by 40 to 80 %, each shard by a different share, so that few grow at the same time. Keys are not kept, and
//! computing one takes a random access to memory. But the bucket and the tag of an entry are the first bits of its key.
//! For most entries they tell the new bucket, too (`layout.rs`). Only the keys of the other entries are computed, with
//! memory prefetched some entries ahead.

use super::keys::Keys;
use super::layout::Layout;
use crate::index::place::Place;
use crate::index::pool::{BUCKET_ENTRIES, Bucket, PAGE_BUCKETS};

/// The range of loads, in percent, of a shard that has grown or shrunk. Each shard uses a different load in this range, so
/// that they do not all grow at the same time.
pub(super) const LOAD_GROWN: [usize; 2] = [52, 66];
/// The range of loads for a shard that gets all its entries at once. Such a shard must not take more than the memory
/// budget counts: a collection that has reached the budget must be able to replace its documents after a restart.
pub(super) const LOAD_FILLED: [usize; 2] = [58, 72];
/// The number of pages of a shard is rounded to the nearest whole number, but the load must not exceed this.
const LOAD_ROUNDED: usize = 80;

/// How many entries ahead memory is prefetched.
const AHEAD: usize = 32;

/// An entry that moves to another bucket.
pub(super) struct Moving {
    /// Its key, or a guess that stands for several keys.
    pub(super) key: u64,
    pub(super) entry: u32,
    is_guess: bool,
}

/// Finds the keys of entries that are about to move.
pub(super) struct Moves<'a, K, F> {
    pub(super) keys: &'a K,
    /// Returns a place that has the key of an entry.
    pub(super) place: F,
    /// The layout that the entries are in.
    pub(super) from: Layout,
}

impl<K: Keys, F: Fn(u32) -> Place> Moves<'_, K, F> {
    /// Returns all entries with their keys. With `may_guess`, most of the keys are guesses.
    pub(super) fn all<'b>(&self, buckets: impl Iterator<Item = &'b Bucket>, may_guess: bool) -> Vec<Moving> {
        let mut all = Vec::with_capacity(self.from.buckets() * BUCKET_ENTRIES);
        let mut unknown = Vec::new();
        for (number, bucket) in buckets.enumerate() {
            let guesses = self.from.guesses(number);
            for (tag, entry, is_stray) in bucket.tags() {
                let guess = if is_stray || !may_guess { None } else { guesses(tag) };
                if guess.is_none() {
                    unknown.push(all.len());
                }
                all.push(Moving { key: guess.unwrap_or_default(), entry, is_guess: guess.is_some() });
            }
        }
        self.compute(&mut all, &unknown);
        all
    }

    /// Computes the keys of entries whose guesses do not tell their bucket in the new layout.
    pub(super) fn make_sure(&self, all: &mut [Moving], to: Layout) {
        let (has_tags, is_clear) = (to.has_tags_of(self.from), to.clear_guesses());
        let is_unclear = |&at: &usize| all[at].is_guess && !(has_tags && is_clear(all[at].key));
        let unclear: Vec<usize> = (0..all.len()).filter(is_unclear).collect();
        self.compute(all, &unclear);
    }

    /// Computes the keys of some entries.
    fn compute(&self, all: &mut [Moving], some: &[usize]) {
        some.iter().take(AHEAD).for_each(|&at| self.prefetch(all[at].entry));
        for (number, &at) in some.iter().enumerate() {
            if let Some(&later) = some.get(number + AHEAD) {
                self.prefetch(all[later].entry);
            }
            (all[at].key, all[at].is_guess) = (self.key(all[at].entry), false);
        }
    }

    #[inline]
    fn key(&self, entry: u32) -> u64 {
        self.keys.key((self.place)(entry))
    }

    #[inline]
    fn prefetch(&self, entry: u32) {
        self.keys.prefetch((self.place)(entry));
    }
}

/// Returns the number of buckets for `entries` entries at a load in a range. `vary` selects the load.
pub(super) fn buckets_for(entries: usize, vary: usize, [least, most]: [usize; 2]) -> usize {
    let load = least + vary % (most - least + 1);
    let pages = |load: usize| (entries * 100 / load) as f64 / (PAGE_BUCKETS * BUCKET_ENTRIES) as f64;
    pages(load).round().max(pages(LOAD_ROUNDED).ceil()).max(1.0) as usize * PAGE_BUCKETS
}
