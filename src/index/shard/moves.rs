//! A shard grows, shrinks or splits: its entries move to other buckets.
//!
//! A shard grows by 40 to 80 %, each shard by a different share, so that few grow at the same time. Keys are not kept, and
//! to compute one takes a random access to memory. The bucket and the tag of an entry are the first bits of its key, and
//! mostly enough to tell where it belongs (`layout.rs`). Keys are computed for the other entries. This prefetches some
//! entries ahead, so that memory accesses overlap.

use super::layout::Layout;
use super::{Keys, LIST, Shard};
use crate::index::place::Place;
use crate::index::pool::{BUCKET_ENTRIES, Bucket, PAGE_BUCKETS, Pool};

/// The range of loads, in percent, of a shard that has grown or shrunk. Each shard uses a different load in this range, so
/// that they do not all grow at the same time.
const LOAD_GROWN: [usize; 2] = [52, 66];
/// The range of loads for a shard that gets all its entries at once. Such a shard must not take more than the memory
/// budget counts: a collection that has reached the budget must be able to replace its documents after a restart.
const LOAD_FILLED: [usize; 2] = [58, 72];
/// The number of pages of a shard is rounded to the nearest whole number, but the load must not exceed this.
const LOAD_ROUNDED: usize = 80;

/// How many entries ahead memory is prefetched.
const AHEAD: usize = 32;

/// An entry that moves to another bucket.
struct Moving {
    /// Its key, or a guess that stands for several keys.
    key: u64,
    entry: u32,
    is_guess: bool,
}

impl Shard {
    /// Makes room for `entries` in an empty shard that `depth` bits of a key select.
    pub(in crate::index) fn reserve(&mut self, pool: &Pool, depth: u8, entries: usize, vary: usize) {
        self.open(pool, Layout::new(depth, buckets_for(entries, vary, LOAD_FILLED)));
    }

    /// Gives the empty shard the pages of a layout.
    fn open(&mut self, pool: &Pool, layout: Layout) {
        self.pages = (0..layout.buckets() / PAGE_BUCKETS).map(|_| pool.take()).collect();
        (self.layout, self.entries, self.told) = (layout, 0, false);
    }

    /// Moves entries to another shard, which is empty: those whose next bit of the key is 1. The numbers of the two
    /// shards decide how large they become.
    pub(in crate::index) fn split(
        &mut self,
        pool: &Pool,
        other: &mut Self,
        [number, other_number]: [usize; 2],
        keys: &impl Keys,
    ) {
        let from = self.layout;
        let planned = from.halved(buckets_for(self.entries() / 2, number, LOAD_GROWN));
        let (mut stay, mut go): (Vec<_>, Vec<_>) =
            self.moving(keys, planned).into_iter().partition(|moving| !from.is_in_second_half(moving.key));
        let here = from.halved(buckets_for(stay.len(), number, LOAD_GROWN));
        let there = from.halved(buckets_for(go.len(), other_number, LOAD_FILLED));
        self.make_sure(keys, &mut stay, here);
        self.make_sure(keys, &mut go, there);
        other.open(pool, there);
        for Moving { key, entry, .. } in go {
            let entry = if entry & LIST == 0 { entry } else { other.adopt(self.give_up(entry)) };
            other.put(key, entry);
        }
        self.refill(pool, here, stay);
    }

    /// Visits every place that is in no list, with its key. Looks at every place to compute its key.
    pub(in crate::index) fn few(&self, keys: &impl Keys, mut visit: impl FnMut(u64, Place)) {
        self.each_with_key(keys, |key, entry| {
            if entry & LIST == 0 {
                visit(key, Place(entry));
            }
        });
    }

    /// Makes the shard as large as its entries need. `vary` decides the exact size within limits.
    pub(in crate::index) fn resize(&mut self, pool: &Pool, keys: &impl Keys, vary: usize) {
        let to = self.layout.resized(buckets_for(self.entries(), vary, LOAD_GROWN));
        let mut moving = self.moving(keys, to);
        self.make_sure(keys, &mut moving, to);
        self.refill(pool, to, moving);
    }

    /// Returns all entries with their keys. If the new layout has the same tags, most of the keys are guesses.
    fn moving(&self, keys: &impl Keys, to: Layout) -> Vec<Moving> {
        let mut all = Vec::with_capacity(self.entries());
        if !to.has_tags_of(self.layout) {
            self.each_with_key(keys, |key, entry| all.push(Moving { key, entry, is_guess: false }));
            return all;
        }
        let mut unknown = Vec::new();
        for (number, bucket) in self.pages.iter().flat_map(|page| page.iter()).enumerate() {
            for (tag, entry, is_stray) in bucket.tags() {
                let guess = if is_stray { None } else { self.layout.guess(number, tag) };
                if guess.is_none() {
                    unknown.push(all.len());
                }
                all.push(Moving { key: guess.unwrap_or_default(), entry, is_guess: guess.is_some() });
            }
        }
        self.compute(keys, &mut all, &unknown);
        all
    }

    /// Computes the keys of entries whose guesses do not tell where they belong in a layout.
    fn make_sure(&self, keys: &impl Keys, all: &mut [Moving], to: Layout) {
        let is_clear = |guess| to.has_tags_of(self.layout) && to.is_clear(guess);
        let is_unclear = |&at: &usize| all[at].is_guess && !is_clear(all[at].key);
        let unclear: Vec<usize> = (0..all.len()).filter(is_unclear).collect();
        self.compute(keys, all, &unclear);
    }

    /// Computes the keys of some entries.
    fn compute(&self, keys: &impl Keys, all: &mut [Moving], some: &[usize]) {
        let place = |moving: &Moving| self.first(moving.entry);
        some.iter().take(AHEAD).for_each(|&at| keys.prefetch(place(&all[at])));
        for (number, &at) in some.iter().enumerate() {
            if let Some(&later) = some.get(number + AHEAD) {
                keys.prefetch(place(&all[later]));
            }
            (all[at].key, all[at].is_guess) = (keys.key(place(&all[at])), false);
        }
    }

    fn each_with_key(&self, keys: &impl Keys, mut visit: impl FnMut(u64, u32)) {
        let mut ahead = self.pages.iter().flat_map(|page| page.iter()).flat_map(Bucket::entries);
        let entries = ahead.clone();
        ahead.by_ref().take(AHEAD).for_each(|&entry| keys.prefetch(self.first(entry)));
        for &entry in entries {
            if let Some(&later) = ahead.next() {
                keys.prefetch(self.first(later));
            }
            visit(keys.key(self.first(entry)), entry);
        }
    }

    /// Replaces all entries by these.
    fn refill(&mut self, pool: &Pool, layout: Layout, all: Vec<Moving>) {
        pool.give(std::mem::take(&mut self.pages));
        self.open(pool, layout);
        all.into_iter().for_each(|Moving { key, entry, .. }| self.put(key, entry));
    }
}

/// Returns the number of buckets for `entries` entries at a load in a range. `vary` selects the load.
fn buckets_for(entries: usize, vary: usize, [least, most]: [usize; 2]) -> usize {
    let load = least + vary % (most - least + 1);
    let pages = |load: usize| (entries * 100 / load) as f64 / (PAGE_BUCKETS * BUCKET_ENTRIES) as f64;
    pages(load).round().max(pages(LOAD_ROUNDED).ceil()).max(1.0) as usize * PAGE_BUCKETS
}
