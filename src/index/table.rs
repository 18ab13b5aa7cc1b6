//! Key -> places, without the keys: who asks knows how to tell from a place whether it has the key.
//! The table is cut into shards (`shard.rs`) with a lock each. One that has grown large splits in two, as growing it
//! further would take long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use hapax_core::prefetch;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::place::Place;
use super::place_list::PlaceList;
use super::pool::Pool;
use super::shard::{INLINE_MAX, Keys, Shard};

/// Bits of the key that tell shards apart, once there are all of them.
const DEPTH_MAX: u8 = 11;
const SHARDS_MAX: usize = 1 << DEPTH_MAX;
/// Entries from which a shard splits instead of growing, as long as it may: between these two, so that the tables of an
/// index, which hold as many entries each, do not all split at once.
const SPLIT_ENTRIES: [usize; 2] = [3 * 1024, 6 * 1024];

/// Places entered at a time when many are: their keys are sorted by shard first, so that one shard after the other is in
/// the cache.
const PLACED_AT_ONCE: usize = 1 << 19;

/// How many places ahead memory is asked for.
const AHEAD: usize = 32;

pub(super) struct Table {
    /// Entries from which a shard splits.
    split_entries: usize,
    /// By the last bits of a key: how many of them name its shard.
    depths: Box<[AtomicU8; SHARDS_MAX]>,
    /// Shard 0, then 1, then 2 and 3, then 4 to 7: each split of shard `i` at depth `d` makes shard `i + 2^d`.
    levels: [OnceLock<Box<[Locked]>>; DEPTH_MAX as usize + 1],
}

/// A shard and its lock, apart from all others.
#[derive(Default)]
#[repr(align(64))]
struct Locked(RwLock<Shard>);

const _: () = assert!(size_of::<Locked>() == 64);

impl Table {
    /// The table `number` of so many that grow together.
    pub(super) fn new(number: usize, of: usize) -> Self {
        let [least, most] = SPLIT_ENTRIES;
        let table = Self {
            split_entries: least + (most - least) * number / of,
            depths: Box::new([const { AtomicU8::new(0) }; SHARDS_MAX]),
            levels: std::array::from_fn(|_| OnceLock::new()),
        };
        table.level(0);
        table
    }

    /// Adds a place that is not here yet, and returns how many of its key there were. `same` tells whether a place has
    /// the key.
    pub(super) fn insert(
        &self,
        pool: &Pool,
        key: u64,
        place: Place,
        same: impl Fn(Place) -> bool,
        keys: &impl Keys,
    ) -> usize {
        self.with_room(pool, key, keys).insert(pool, key, place, same, |place| keys.order(place))
    }

    /// Adds many places to an empty table; `same` tells whether two have one key, `added` is told how many of its key there
    /// were before each, and `done` how many have been placed.
    pub(super) fn fill(
        &self,
        pool: &Pool,
        places: &[Place],
        same: impl Fn(Place, Place) -> bool,
        keys: &impl Keys,
        mut added: impl FnMut(usize),
        done: impl Fn(usize),
    ) {
        self.reserve(pool, places.len());
        let (mut sorted, mut starts) = (Vec::new(), Vec::new());
        for places in places.chunks(PLACED_AT_ONCE) {
            sort_by_shard(places.iter().map(|&place| (keys.key(place), place)), &mut sorted, &mut starts);
            self.insert_sorted(pool, &sorted, &same, keys, &mut added);
            done(places.len());
        }
    }

    fn insert_sorted(
        &self,
        pool: &Pool,
        places: &[(u64, Place)],
        same: impl Fn(Place, Place) -> bool,
        keys: &impl Keys,
        mut added: impl FnMut(usize),
    ) {
        for places in places.chunk_by(|a, b| Self::shard_number(a.0) == Self::shard_number(b.0)) {
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
                added(shard.insert(pool, key, place, |held| same(held, place), |place| keys.order(place)));
            }
        }
    }

    /// The shard of a key, locked for writing, with room for one more entry.
    pub(super) fn with_room(&self, pool: &Pool, key: u64, keys: &impl Keys) -> RwLockWriteGuard<'_, Shard> {
        loop {
            let mut shard = self.write(key);
            if !shard.is_full() {
                return shard;
            }
            if shard.entries() >= self.split_entries && shard.depth() < DEPTH_MAX {
                self.split(pool, &mut shard, key, keys);
            } else {
                shard.resize(pool, keys, key as usize);
            }
        }
    }

    /// Takes a place out, and returns how many of its key there were; `None` if it was not here.
    pub(super) fn remove(
        &self,
        pool: &Pool,
        key: u64,
        place: Place,
        same: impl Fn(Place) -> bool,
        keys: &impl Keys,
    ) -> Option<usize> {
        let mut shard = self.write(key);
        let before = shard.remove(pool, key, place, same, |place| keys.order(place))?;
        // A list that has become short has put its places beside each other.
        if shard.is_sparse() || shard.is_full() {
            shard.resize(pool, keys, key as usize);
        }
        Some(before)
    }

    /// Has the shard of a key fetched, for [`Self::read`].
    #[inline]
    pub(super) fn prefetch(&self, key: u64) {
        prefetch(self.shard_of(key).0);
    }

    /// Locks the shard of a key for reading. Whoever locks several tables does it in their order.
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

    /// Makes room for so many places in an empty table.
    fn reserve(&self, pool: &Pool, places: usize) {
        let depth = (0..DEPTH_MAX).find(|depth| places >> depth <= self.split_entries * 3 / 4).unwrap_or(DEPTH_MAX);
        for number in 0..1_usize << depth {
            let mut shard = self.shard(number).write();
            shard.reserve(pool, depth, places >> depth, number);
        }
        self.depths.iter().for_each(|held| held.store(depth, Ordering::Release));
    }

    /// Every list, with the shard's lock held for reading.
    pub(super) fn for_each_list(&self, mut visit: impl FnMut(&PlaceList)) {
        for shard in self.shards() {
            shard.read().lists().for_each(&mut visit);
        }
    }

    /// The places of every key that stand beside each other, in the same way. Looks at every place for its key.
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

    /// The number of the shard that keys fall into.
    fn shard_number(key: u64) -> usize {
        (key >> 8) as usize & (SHARDS_MAX - 1)
    }

    /// Locks the shard of a key for writing, in the order of tables as [`Self::read`].
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
        let number = Self::shard_number(key);
        let depth = self.depths[number].load(Ordering::Acquire);
        (self.shard(number & ((1 << depth) - 1)), depth)
    }

    #[inline]
    fn shard(&self, number: usize) -> &RwLock<Shard> {
        match number.checked_ilog2() {
            None => &self.level(0)[0].0,
            Some(bits) => &self.level(bits as usize + 1)[number - (1 << bits)].0,
        }
    }

    #[inline]
    fn level(&self, level: usize) -> &[Locked] {
        self.levels[level].get_or_init(|| (0..1_usize << level.saturating_sub(1)).map(|_| Locked::default()).collect())
    }

    /// Moves the places whose next bit is set to a shard of their own.
    fn split(&self, pool: &Pool, shard: &mut Shard, key: u64, keys: &impl Keys) {
        let depth = shard.depth();
        let number = Self::shard_number(key) & ((1 << depth) - 1);
        let other_number = number | 1 << depth;
        // Nobody else knows of it yet, so this waits for no one.
        let mut other = self.shard(other_number).write();
        shard.split(pool, &mut other, [number, other_number], keys);
        for at in (number..SHARDS_MAX).step_by(1 << depth) {
            self.depths[at].store(depth + 1, Ordering::Release);
        }
    }
}

/// Keys and places in the order of their shards.
fn sort_by_shard(
    keys: impl ExactSizeIterator<Item = (u64, Place)>,
    sorted: &mut Vec<(u64, Place)>,
    starts: &mut Vec<usize>,
) {
    let keys: Vec<_> = keys.collect();
    starts.clear();
    starts.resize(SHARDS_MAX, 0);
    keys.iter().for_each(|&(key, _)| starts[Table::shard_number(key)] += 1);
    let mut start = 0;
    for count in starts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    sorted.clear();
    sorted.resize(keys.len(), (0, Place(0)));
    for (key, place) in keys {
        let at = &mut starts[Table::shard_number(key)];
        sorted[*at] = (key, place);
        *at += 1;
    }
}
