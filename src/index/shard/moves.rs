//! A shard grows, shrinks or splits: its entries move to other buckets.
//!
//! A shard grows by about 40 to 75 %, each shard by a different share, so that few shards grow at the same time. Tables
//! do not keep keys, and to compute a key, a row must be read from a random place in memory. But the bucket and the tag
//! of most entries determine their new bucket (`layout.rs`). Keys are computed only for the other entries. Their rows
//! are prefetched some entries ahead.

use super::keys::Keys;
use super::layout::Layout;
use crate::index::place::Place;
use crate::index::pool::{BUCKET_ENTRIES, PAGE_BUCKETS, Page};

/// The range of loads, in percent, of a shard that has grown or shrunk. Each shard uses a different load in this range,
/// so that they do not all grow at the same time.
pub(super) const LOAD_GROWN: [usize; 2] = [52, 66];
/// The range of loads for a shard that gets all its entries at once. Such a shard must not take more memory
/// than the budget counts for its entries. Otherwise a collection that has reached the budget could not replace its
/// documents after a restart.
pub(super) const LOAD_FILLED: [usize; 2] = [58, 72];
/// The number of pages of a shard is rounded to the nearest whole number, but the load must not exceed this percentage.
const LOAD_ROUNDED: usize = 80;

/// How many entries ahead memory is prefetched.
const AHEAD: usize = 32;

/// If the bucket and the tag of an entry determine its step, passes the step, the tag and the entry to `put`. Returns
/// all other entries, and the entries that `put` has refused.
pub(super) fn by_steps(pages: &[Page], from: Layout, mut put: impl FnMut(u64, u8, u32) -> bool) -> Vec<u32> {
    let mut others = Vec::new();
    for (number, bucket) in pages.iter().flat_map(|page| page.iter()).enumerate() {
        let step_of = from.steps_in(number);
        for (tag, entry, is_stray) in bucket.tags() {
            let is_put = !is_stray && step_of(tag).is_some_and(|step| put(step, tag, entry));
            if !is_put {
                others.push(entry);
            }
        }
    }
    others
}

/// Returns entries with their keys. `place` returns a place that has the key of an entry.
pub(super) fn with_keys(entries: &[u32], keys: &impl Keys, place: impl Fn(u32) -> Place) -> Vec<(u64, u32)> {
    entries.iter().take(AHEAD).for_each(|&entry| keys.prefetch(place(entry)));
    let with_key = |(number, &entry): (usize, &u32)| {
        if let Some(&later) = entries.get(number + AHEAD) {
            keys.prefetch(place(later));
        }
        (keys.key(place(entry)), entry)
    };
    entries.iter().enumerate().map(with_key).collect()
}

/// Returns the number of buckets for `entries` entries at a load in a range. `vary` selects the load.
pub(super) fn buckets_for(entries: usize, vary: usize, [least, most]: [usize; 2]) -> usize {
    let load = least + vary % (most - least + 1);
    let pages = |load: usize| (entries * 100 / load) as f64 / (PAGE_BUCKETS * BUCKET_ENTRIES) as f64;
    pages(load).round().max(pages(LOAD_ROUNDED).ceil()).max(1.0) as usize * PAGE_BUCKETS
}
