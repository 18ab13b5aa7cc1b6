//! Key -> places, without storing the keys: the caller can find out whether a place has a key.
//! The table is cut into shards (`shard.rs`), each with its own lock. A shard that has become large splits in two,
//! because growing it further would take long.
//! A change that makes a shard nearly full or sparse only notes the shard. Another thread resizes the noted shards, so
//! that changes do not wait for the resizing. A change resizes a shard itself only if the shard is full.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use hapax_core::prefetch;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::key_members::INLINE_MAX;
use super::place::Place;
use super::place_list::PlaceList;
use super::pool::Pool;
use super::shard::{Keys, Shard};

/// The maximum number of bits of a key that select a shard.
const DEPTH_MAX: u8 = 11;
const SHARDS_MAX: usize = 1 << DEPTH_MAX;
/// The range of the number of entries at which a shard splits instead of growing, as long as `DEPTH_MAX` allows this.
/// Each table uses another number of this range. All tables of an index have about the same number of entries, and
/// their shards should not all split at the same time.
const SPLIT_ENTRIES: [usize; 2] = [3 * 1024, 6 * 1024];

/// When many places are added, this many at a time are sorted by shard and then added. One shard after the other is
/// therefore in the cache.
const PLACED_AT_ONCE: usize = 1 << 19;

/// How many places ahead memory is prefetched.
const AHEAD: usize = 32;

pub(super) struct Table {
    /// The number of entries at which a shard splits.
    split_entries: usize,
    /// For each slot: how many bits of a key select the shard. A shard has one or more slots, see [`slot`].
    depths: Box<[AtomicU8; SHARDS_MAX]>,
    /// The shards by level. Level 0 is the first shard. A split at depth `d` makes a shard of level `d + 1`.
    levels: [OnceLock<Box<[Locked]>>; DEPTH_MAX as usize + 1],
    /// A key of each shard that is due to be resized. Some of these shards may have been resized since.
    due: Mutex<Vec<u64>>,
}

/// A shard and its lock, on a cache line of their own.
#[derive(Default)]
#[repr(align(64))]
struct Locked(RwLock<Shard>);

const _: () = assert!(size_of::<Locked>() == 64);

impl Table {
    /// Makes one of `of` tables that grow together. `number` is its number among them, starting at 0.
    pub(super) fn new(number: usize, of: usize) -> Self {
        let [least, most] = SPLIT_ENTRIES;
        let table = Self {
            split_entries: least + (most - least) * number / of,
            depths: Box::new([const { AtomicU8::new(0) }; SHARDS_MAX]),
            levels: std::array::from_fn(|_| OnceLock::new()),
            due: Mutex::default(),
        };
        table.level(0);
        table
    }

    /// Adds a place that is not in the table yet. `same` returns whether a place has the key.
    pub(super) fn insert(&self, pool: &Pool, key: u64, place: Place, same: impl Fn(Place) -> bool, keys: &impl Keys) {
        self.with_room(pool, key, keys).insert(pool, key, place, same, |place| keys.order(place));
    }

    /// Adds many places to an empty table. `same` returns whether two places have the same key. `done` is called with
    /// the number of places added.
    pub(super) fn fill(
        &self,
        pool: &Pool,
        places: &[Place],
        same: impl Fn(Place, Place) -> bool,
        keys: &impl Keys,
        done: impl Fn(usize),
    ) {
        self.reserve(pool, places.len());
        let (mut sorted, mut starts) = (Vec::new(), Vec::new());
        for places in places.chunks(PLACED_AT_ONCE) {
            let key = |(at, &place)| {
                if let Some(&later) = places.get(at + AHEAD) {
                    keys.prefetch(later);
                }
                (keys.key(place), place)
            };
            sort_by_shard(places.iter().enumerate().map(key), &mut sorted, &mut starts);
            self.insert_sorted(pool, &sorted, &same, keys);
            done(places.len());
        }
    }

    fn insert_sorted(
        &self,
        pool: &Pool,
        places: &[(u64, Place)],
        same: impl Fn(Place, Place) -> bool,
        keys: &impl Keys,
    ) {
        for places in places.chunk_by(|a, b| slot(a.0) == slot(b.0)) {
            let mut shard = self.with_room(pool, places[0].0, keys);
            for &(key, _) in places.iter().take(AHEAD) {
                shard.prefetch_home(key);
            }
            for (at, &(key, place)) in places.iter().enumerate() {
                if let Some(&(later, _)) = places.get(at + AHEAD) {
                    shard.prefetch_home(later);
                }
                if shard.is_full() {
                    drop(shard);
                    shard = self.with_room(pool, key, keys);
                }
                shard.insert(pool, key, place, |held| same(held, place), |place| keys.order(place));
            }
        }
    }

    /// Locks the shard of a key for writing, and makes room in it for one more entry.
    #[inline]
    pub(super) fn with_room(&self, pool: &Pool, key: u64, keys: &impl Keys) -> RwLockWriteGuard<'_, Shard> {
        loop {
            let mut shard = self.write(key);
            if !shard.is_full() {
                self.note_if_due(&mut shard, key);
                return shard;
            }
            self.grow(pool, &mut shard, key, keys);
        }
    }

    /// Resizes the shard that was noted last, if it is still due. Returns whether any shard was noted. May run at the
    /// same time as a change.
    pub(super) fn resize_next(&self, pool: &Pool, keys: &impl Keys) -> bool {
        let Some(key) = self.due.lock().pop() else { return false };
        let mut shard = self.write(key);
        shard.set_told(false);
        if shard.is_nearly_full() {
            self.grow(pool, &mut shard, key, keys);
        } else if shard.is_sparse() {
            shard.resize(pool, keys, key as usize);
        }
        true
    }

    /// Makes a shard larger, or moves half of it to a new one.
    #[cold]
    fn grow(&self, pool: &Pool, shard: &mut Shard, key: u64, keys: &impl Keys) {
        if shard.entries() >= self.split_entries && shard.depth() < DEPTH_MAX {
            self.split(pool, shard, key, keys);
        } else {
            shard.resize(pool, keys, key as usize);
        }
    }

    /// Notes a shard for [`Self::resize_next`] if it is due.
    #[inline]
    fn note_if_due(&self, shard: &mut Shard, key: u64) {
        if shard.is_newly_due() {
            self.note(shard, key);
        }
    }

    #[cold]
    fn note(&self, shard: &mut Shard, key: u64) {
        let mut due = self.due.lock();
        // The list is bounded, in case no thread resizes shards. A shard that is not noted is resized when it is full,
        // or noted later.
        if due.len() < SHARDS_MAX {
            due.push(key);
            shard.set_told(true);
        }
    }

    /// Removes a place. Returns whether it was in the table.
    pub(super) fn remove(
        &self,
        pool: &Pool,
        key: u64,
        place: Place,
        same: impl Fn(Place) -> bool,
        keys: &impl Keys,
    ) -> bool {
        let mut shard = self.write(key);
        if !shard.remove(pool, key, place, same, |place| keys.order(place)) {
            return false;
        }
        // A list that has become short turns into separate entries, so the shard may even be full now.
        if shard.is_full() {
            shard.resize(pool, keys, key as usize);
        }
        self.note_if_due(&mut shard, key);
        true
    }

    /// Prefetches the shard of a key, for [`Self::read`].
    #[inline]
    pub(super) fn prefetch(&self, key: u64) {
        prefetch(self.shard_of(key).0);
    }

    /// Locks the shard of a key for reading. Code that locks shards of several tables must lock them in the order of
    /// the tables.
    #[inline]
    pub(super) fn read(&self, key: u64) -> RwLockReadGuard<'_, Shard> {
        loop {
            let (shard, depth) = self.shard_of(key);
            let shard = shard.read();
            if shard.depth() == depth {
                return shard;
            }
        }
    }

    /// Makes room for `places` in an empty table.
    fn reserve(&self, pool: &Pool, places: usize) {
        let depth = (0..DEPTH_MAX).find(|depth| places >> depth <= self.split_entries * 3 / 4).unwrap_or(DEPTH_MAX);
        for number in 0..1_usize << depth {
            let mut shard = self.shard(number << (DEPTH_MAX - depth)).write();
            shard.reserve(pool, depth, places >> depth, number);
        }
        self.depths.iter().for_each(|held| held.store(depth, Ordering::Release));
    }

    /// Visits every list, with the shard's lock held for reading.
    pub(super) fn for_each_list(&self, mut visit: impl FnMut(&PlaceList)) {
        for shard in self.shards() {
            shard.read().lists().for_each(&mut visit);
        }
    }

    /// Visits the places of every key that has no list. To compute the keys, reads the rows of all these places.
    pub(super) fn for_each_few(&self, keys: &impl Keys, mut visit: impl FnMut(&[Place])) {
        let mut places: Vec<(u64, Place)> = Vec::new();
        for shard in self.shards() {
            places.clear();
            shard.read().few(keys, |key, place| places.push((key, place)));
            places.sort_unstable();
            for same in places.chunk_by(|a, b| a.0 == b.0) {
                visit(&same.iter().map(|&(_, place)| place).collect::<SmallVec<[Place; INLINE_MAX]>>());
            }
        }
    }

    fn shards(&self) -> impl Iterator<Item = &RwLock<Shard>> {
        self.levels.iter().filter_map(OnceLock::get).flat_map(|level| level.iter()).map(|shard| &shard.0)
    }

    /// Checks all shards, and returns how many of them have entries.
    #[cfg(all(test, not(hapax_loom)))]
    pub(super) fn check(&self, keys: &impl Keys) -> usize {
        self.shards()
            .map(|shard| shard.read())
            .filter(|shard| shard.entries() > 0)
            .map(|shard| shard.check(keys))
            .count()
    }

    /// Locks the shard of a key for writing. Several tables must be locked in the same order as in [`Self::read`].
    #[inline]
    pub(super) fn write(&self, key: u64) -> RwLockWriteGuard<'_, Shard> {
        loop {
            let (shard, depth) = self.shard_of(key);
            let shard = shard.write();
            if shard.depth() == depth {
                return shard;
            }
        }
    }

    #[inline]
    fn shard_of(&self, key: u64) -> (&RwLock<Shard>, u8) {
        let slot = slot(key);
        let depth = self.depths[slot].load(Ordering::Acquire);
        (self.shard(first_slot(slot, depth)), depth)
    }

    /// Returns the shard with this first slot.
    #[inline]
    fn shard(&self, first_slot: usize) -> &RwLock<Shard> {
        if first_slot == 0 {
            return &self.level(0)[0].0;
        }
        // The shards of level `l` begin at the odd multiples of 2^(DEPTH_MAX - l).
        let zeros = first_slot.trailing_zeros();
        &self.level(usize::from(DEPTH_MAX) - zeros as usize)[first_slot >> (zeros + 1)].0
    }

    #[inline]
    fn level(&self, level: usize) -> &[Locked] {
        self.levels[level].get_or_init(|| (0..1_usize << level.saturating_sub(1)).map(|_| Locked::default()).collect())
    }

    /// Moves the entries whose next key bit is 1 to a new shard.
    fn split(&self, pool: &Pool, shard: &mut Shard, key: u64, keys: &impl Keys) {
        let depth = shard.depth();
        let first = first_slot(slot(key), depth);
        let (middle, end) = (first + (SHARDS_MAX >> (depth + 1)), first + (SHARDS_MAX >> depth));
        // No key selects the new shard yet. Only a thread that visits all shards may hold its lock for a moment.
        let mut other = self.shard(middle).write();
        shard.split(pool, &mut other, [first, middle], keys);
        self.depths[first..end].iter().for_each(|held| held.store(depth + 1, Ordering::Release));
    }
}

/// Returns the number that consists of the first `DEPTH_MAX` bits of a key. A shard that is selected by `DEPTH_MAX`
/// bits has one slot, a shard that is selected by one bit less has two, and so on.
#[inline]
fn slot(key: u64) -> usize {
    (key >> (u64::BITS - u32::from(DEPTH_MAX))) as usize
}

/// Returns the first slot of the shard that has this slot and is selected by `depth` bits.
#[inline]
fn first_slot(slot: usize, depth: u8) -> usize {
    slot & !((SHARDS_MAX - 1) >> depth)
}

/// Sorts keys and places by shard.
fn sort_by_shard(
    keys: impl ExactSizeIterator<Item = (u64, Place)>,
    sorted: &mut Vec<(u64, Place)>,
    starts: &mut Vec<usize>,
) {
    let keys: Vec<_> = keys.collect();
    starts.clear();
    starts.resize(SHARDS_MAX, 0);
    keys.iter().for_each(|&(key, _)| starts[slot(key)] += 1);
    let mut start = 0;
    for count in starts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    sorted.clear();
    sorted.resize(keys.len(), (0, Place(0)));
    for (key, place) in keys {
        let at = &mut starts[slot(key)];
        sorted[*at] = (key, place);
        *at += 1;
    }
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_each_depth_are_different_ones() {
        let table = Table::new(0, 1);
        for depth in 0..=DEPTH_MAX {
            let slots = SHARDS_MAX >> depth;
            let mut shards: Vec<_> = (0..1 << depth)
                .map(|number| {
                    let first = number * slots;
                    assert_eq!([first_slot(first, depth), first_slot(first + slots - 1, depth)], [first; 2]);
                    std::ptr::from_ref(table.shard(first)).addr()
                })
                .collect();
            shards.sort_unstable();
            shards.dedup();
            assert_eq!(shards.len(), 1 << depth);
        }
    }
}
