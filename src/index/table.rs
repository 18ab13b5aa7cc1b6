//! Key -> slots, without the keys: who asks knows how to tell from a slot whether it has the key.
//!
//! A posting is a slot in a bucket of its key's tag (`pool.rs`), in the bucket that the key says or, where that is full,
//! in the next that has room. A few slots of one key stand beside each other; more are kept in a list, and one entry
//! names the list. The table is cut into shards with a lock each. A shard grows by about a quarter, which keeps memory
//! full and pauses short, and splits in two when that would take long. Growing looks at every slot of the shard for its
//! key, a few ahead of time so that memory answers in parallel.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use hapax_core::prefetch;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::pool::{BUCKET_ENTRIES, Bucket, PAGE_BUCKETS, Page, Pool};
use super::slots::SlotList;
use crate::types::{Seq, Slot};

/// Marks an entry that is the number of a list instead of a slot.
const LIST: u32 = 1 << 31;
/// Slots of one key beside each other at most; and how few bring a list back.
const INLINE_MAX: usize = 8;
const INLINE_AGAIN: usize = 4;

/// Bits of the key that tell shards apart, once there are all of them.
const DEPTH_MAX: u8 = 11;
const SHARDS_MAX: usize = 1 << DEPTH_MAX;
/// Entries from which a shard splits instead of growing, as long as it may: between these two, so that the tables of an
/// index, which hold as many entries each, do not all split at once.
const SPLIT_ENTRIES: [usize; 2] = [3 * 1024, 6 * 1024];

/// Places of a shard in use, in hundredths: it grows above the first, to one between the other two. Shards differ in the
/// load they grow to, or all of them would grow at once.
const LOAD_MAX: usize = 93;
const LOAD_GROWN: [usize; 2] = [52, 66];
/// Below this it shrinks.
const LOAD_MIN: usize = 30;

/// Slots placed at a time when many are: their keys are sorted by shard first, so that one shard after the other is in
/// the cache.
const PLACED_AT_ONCE: usize = 1 << 19;

/// How many entries ahead memory is asked for.
const AHEAD: usize = 32;

/// How a table finds the key of a slot again.
pub(super) trait Keys {
    /// The key, of which all 64 bits vary.
    fn key(&self, slot: Slot) -> u64;
    /// By which slots of one key are in order: old ones first. No two have the same.
    fn order(&self, slot: Slot) -> Seq;
    /// Has memory fetch what [`Self::key`] reads.
    fn prefetch(&self, slot: Slot);
}

/// One table.
pub(super) struct Table {
    /// Entries from which a shard splits.
    split_entries: usize,
    /// By the last bits of a key: how many of them name its shard.
    depths: Box<[AtomicU8; SHARDS_MAX]>,
    /// Shard 0, then 1, then 2 and 3, then 4 to 7: each split of shard `i` at depth `d` makes shard `i + 2^d`.
    levels: [OnceLock<Box<[Locked]>>; DEPTH_MAX as usize + 1],
}

/// A part of a table, with room for some more entries. With its lock it takes one cache line.
#[derive(Default)]
pub(super) struct Shard {
    pages: Vec<Page>,
    lists: Option<Box<Lists>>,
    entries: u32,
    depth: u8,
}

/// Slots of keys that have too many of them to stand in buckets.
#[derive(Default)]
struct Lists {
    slots: Vec<SlotList>,
    /// Numbers of those that are not in use.
    free: Vec<u32>,
}

/// A shard and its lock, apart from all others.
#[derive(Default)]
#[repr(align(64))]
struct Locked(RwLock<Shard>);

const _: () = assert!(size_of::<Locked>() == 64);

/// Where an entry stands.
#[derive(Clone, Copy)]
struct Place {
    bucket: u32,
    at: u32,
    entry: u32,
}

/// Where the entries of a key stand: one list, or slots.
type Places = SmallVec<[Place; INLINE_MAX]>;

/// The slots of one key.
pub(super) enum Members<'a> {
    /// A few.
    Inline(SmallVec<[Slot; INLINE_MAX]>),
    /// Many.
    List(&'a SlotList),
}

impl Members<'_> {
    /// How many.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Inline(slots) => slots.len(),
            Self::List(slots) => slots.len(),
        }
    }

    /// One after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (inline, list) = match self {
            Self::Inline(slots) => (&slots[..], None),
            Self::List(slots) => (&[][..], Some(slots.iter())),
        };
        inline.iter().copied().chain(list.into_iter().flatten())
    }

    /// Adds up to `max` of them, spread evenly; returns how many were left out.
    pub(super) fn spread(&self, max: usize, slots: &mut Vec<Slot>) -> u64 {
        match self {
            Self::Inline(inline) => {
                slots.extend(inline.iter().take(max));
                inline.len().saturating_sub(max) as u64
            }
            Self::List(list) => list.spread(max, (0, 1), slots),
        }
    }
}

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

    /// Adds a slot that is not here yet, and returns how many of its key there were. `same` tells whether a slot has
    /// the key.
    pub(super) fn insert(
        &self,
        pool: &Pool,
        key: u64,
        slot: Slot,
        same: impl Fn(Slot) -> bool,
        keys: &impl Keys,
    ) -> usize {
        self.with_room(pool, key, keys).insert(pool, key, slot, same, |slot| keys.order(slot))
    }

    /// Adds many slots to an empty table; `same` tells whether two have one key, `added` is told how many of its key there
    /// were before each, and `done` how many have been placed.
    pub(super) fn fill(
        &self,
        pool: &Pool,
        slots: &[Slot],
        same: impl Fn(Slot, Slot) -> bool,
        keys: &impl Keys,
        mut added: impl FnMut(usize),
        done: impl Fn(usize),
    ) {
        self.reserve(pool, slots.len());
        let (mut sorted, mut starts) = (Vec::new(), Vec::new());
        for slots in slots.chunks(PLACED_AT_ONCE) {
            sort_by_shard(slots.iter().map(|&slot| (keys.key(slot), slot)), &mut sorted, &mut starts);
            self.insert_sorted(pool, &sorted, &same, keys, &mut added);
            done(slots.len());
        }
    }

    fn insert_sorted(
        &self,
        pool: &Pool,
        slots: &[(u64, Slot)],
        same: impl Fn(Slot, Slot) -> bool,
        keys: &impl Keys,
        mut added: impl FnMut(usize),
    ) {
        for slots in slots.chunk_by(|a, b| Self::shard_number(a.0) == Self::shard_number(b.0)) {
            let mut shard = self.with_room(pool, slots[0].0, keys);
            for &(key, _) in slots.iter().take(AHEAD) {
                shard.prefetch_home(key);
            }
            for (at, &(key, slot)) in slots.iter().enumerate() {
                if let Some(&(later, _)) = slots.get(at + AHEAD) {
                    shard.prefetch_home(later);
                }
                if shard.is_full() {
                    drop(shard);
                    shard = self.with_room(pool, key, keys);
                }
                added(shard.insert(pool, key, slot, |held| same(held, slot), |slot| keys.order(slot)));
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
            if shard.entries as usize >= self.split_entries && shard.depth < DEPTH_MAX {
                self.split(pool, &mut shard, key, keys);
            } else {
                shard.resize(pool, keys, key as usize);
            }
        }
    }

    /// Takes a slot out, and returns how many of its key there were; `None` if it was not here.
    pub(super) fn remove(
        &self,
        pool: &Pool,
        key: u64,
        slot: Slot,
        same: impl Fn(Slot) -> bool,
        keys: &impl Keys,
    ) -> Option<usize> {
        let mut shard = self.write(key);
        let before = shard.remove(pool, key, slot, same, |slot| keys.order(slot))?;
        // A list that has become short has put its slots beside each other.
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
            if shard.depth == depth {
                return shard;
            }
        }
    }

    /// Makes room for so many slots in an empty table.
    fn reserve(&self, pool: &Pool, slots: usize) {
        let depth = (0..DEPTH_MAX).find(|depth| slots >> depth <= self.split_entries * 3 / 4).unwrap_or(DEPTH_MAX);
        for number in 0..1_usize << depth {
            let mut shard = self.shard(number).write();
            shard.depth = depth;
            shard.pages = (0..pages_for(slots >> depth, number)).map(|_| pool.take()).collect();
        }
        self.depths.iter().for_each(|held| held.store(depth, Ordering::Release));
    }

    /// Every list, with the shard's lock held for reading.
    pub(super) fn for_each_list(&self, mut visit: impl FnMut(&SlotList)) {
        for shard in self.shards() {
            let shard = shard.read();
            let lists = shard.lists.iter().flat_map(|lists| &lists.slots);
            lists.filter(|list| list.len() > 0).for_each(&mut visit);
        }
    }

    /// The slots of every key that stand beside each other, in the same way. Looks at every slot for its key.
    pub(super) fn for_each_few(&self, keys: &impl Keys, mut visit: impl FnMut(&[Slot])) {
        let mut slots: Vec<(u64, Slot)> = Vec::new();
        for shard in self.shards() {
            slots.clear();
            shard.read().each_with_key(keys, |key, entry| {
                if entry & LIST == 0 {
                    slots.push((key, Slot(entry)));
                }
            });
            slots.sort_unstable();
            for same in slots.chunk_by(|a, b| a.0 == b.0) {
                visit(&same.iter().map(|&(_, slot)| slot).collect::<SmallVec<[Slot; INLINE_MAX]>>());
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
            if shard.depth == depth {
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

    /// Moves the slots whose next bit is set to a shard of their own.
    fn split(&self, pool: &Pool, shard: &mut Shard, key: u64, keys: &impl Keys) {
        let depth = shard.depth;
        let number = Self::shard_number(key) & ((1 << depth) - 1);
        let other_number = number | 1 << depth;
        // Nobody else knows of it yet, so this waits for no one.
        let mut other = self.shard(other_number).write();
        other.depth = depth + 1;
        let mut halves: [Vec<(u64, u32)>; 2] = Default::default();
        shard.each_with_key(keys, |key, entry| halves[(key >> (8 + depth)) as usize & 1].push((key, entry)));
        let [stay, go] = halves;
        other.pages = (0..pages_for(go.len(), other_number)).map(|_| pool.take()).collect();
        for (key, entry) in go {
            let entry = if entry & LIST == 0 { entry } else { other.adopt(shard.give_up(entry)) };
            other.put(key, entry);
        }
        shard.refill(pool, stay, number);
        shard.depth = depth + 1;
        for at in (number..SHARDS_MAX).step_by(1 << depth) {
            self.depths[at].store(depth + 1, Ordering::Release);
        }
    }
}

impl Shard {
    /// The slots of a key.
    pub(super) fn members(&self, key: u64, same: impl Fn(Slot) -> bool) -> Members<'_> {
        let mut places = Places::new();
        self.places(key, same, &mut places);
        match places[..] {
            [Place { entry, .. }] if entry & LIST != 0 => Members::List(self.list(entry)),
            _ => Members::Inline(places.iter().map(|place| Slot(place.entry)).collect()),
        }
    }

    /// Entries that may be of this key, by their tags alone: for [`Self::first`] and [`Self::resolve`]. `home` is what
    /// [`Self::prefetch_home`] returned.
    #[inline]
    pub(super) fn tagged(&self, key: u64, home: Option<&Bucket>, mut visit: impl FnMut(u32)) {
        let Some(home) = home else { return };
        if home.passed() {
            self.each_tagged(key, |place| visit(place.entry));
        } else {
            home.tagged(key as u8).for_each(|(_, entry)| visit(entry));
        }
    }

    /// A slot that has the key an entry stands for.
    #[inline]
    pub(super) fn first(&self, entry: u32) -> Slot {
        if entry & LIST == 0 { Slot(entry) } else { self.list(entry).first().expect("a list has slots") }
    }

    /// The list an entry stands for, if it is one.
    #[inline]
    pub(super) fn resolve(&self, entry: u32) -> Option<&SlotList> {
        (entry & LIST != 0).then(|| self.list(entry))
    }

    fn list(&self, entry: u32) -> &SlotList {
        let lists = self.lists.as_ref().expect("an entry names a list only where there is one");
        &lists.slots[(entry & !LIST) as usize]
    }

    fn list_mut(&mut self, entry: u32) -> &mut SlotList {
        let lists = self.lists.as_mut().expect("an entry names a list only where there is one");
        &mut lists.slots[(entry & !LIST) as usize]
    }

    fn buckets(&self) -> usize {
        self.pages.len() * PAGE_BUCKETS
    }

    fn is_full(&self) -> bool {
        self.entries as usize * 100 >= self.buckets() * BUCKET_ENTRIES * LOAD_MAX
    }

    fn is_sparse(&self) -> bool {
        self.pages.len() > 1 && self.entries as usize * 100 < self.buckets() * BUCKET_ENTRIES * LOAD_MIN
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (((key >> 32) * self.buckets() as u64) >> 32) as usize
    }

    #[inline]
    fn bucket(&self, number: usize) -> &Bucket {
        &self.pages[number / PAGE_BUCKETS][number % PAGE_BUCKETS]
    }

    #[inline]
    fn bucket_mut(&mut self, number: usize) -> &mut Bucket {
        &mut self.pages[number / PAGE_BUCKETS][number % PAGE_BUCKETS]
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets() { 0 } else { bucket + 1 }
    }

    /// Has the number of the page fetched that [`Self::prefetch_home`] needs.
    #[inline]
    pub(super) fn prefetch_page(&self, key: u64) {
        if let Some(page) = self.pages.get(self.home(key) / PAGE_BUCKETS) {
            prefetch(page);
        }
    }

    /// The bucket of a key, on its way from memory; `None` where there is none yet.
    #[inline]
    pub(super) fn prefetch_home(&self, key: u64) -> Option<&Bucket> {
        if self.pages.is_empty() {
            return None;
        }
        let home = self.bucket(self.home(key));
        prefetch(home);
        Some(home)
    }

    #[inline]
    fn each_tagged(&self, key: u64, mut visit: impl FnMut(Place)) {
        if self.pages.is_empty() {
            return;
        }
        let home = self.home(key);
        let mut number = home;
        loop {
            let bucket = self.bucket(number);
            for (at, entry) in bucket.tagged(key as u8) {
                visit(Place { bucket: number as u32, at: at as u32, entry });
            }
            number = self.after(number);
            if !bucket.passed() || number == home {
                return;
            }
        }
    }

    #[inline]
    fn places(&self, key: u64, same: impl Fn(Slot) -> bool, places: &mut Places) {
        self.each_tagged(key, |place| {
            if same(self.first(place.entry)) {
                places.push(place);
            }
        });
    }

    /// Adds a slot, for which there is room; see [`Table::insert`].
    #[inline]
    pub(super) fn insert(
        &mut self,
        pool: &Pool,
        key: u64,
        slot: Slot,
        same: impl Fn(Slot) -> bool,
        order: impl Fn(Slot) -> Seq,
    ) -> usize {
        let mut places = Places::new();
        self.places(key, same, &mut places);
        if places.is_empty() {
            self.put(key, slot.0);
            return 0;
        }
        self.insert_beside(pool, key, slot, &places, order)
    }

    fn insert_beside(
        &mut self,
        pool: &Pool,
        key: u64,
        slot: Slot,
        places: &Places,
        order: impl Fn(Slot) -> Seq,
    ) -> usize {
        match places[..] {
            [Place { entry, .. }] if entry & LIST != 0 => {
                let list = self.list_mut(entry);
                let from = bytes_of(list);
                list.insert(slot, order);
                pool.lists_changed(from, bytes_of(list));
                list.len() - 1
            }
            _ if places.len() < INLINE_MAX => {
                self.put(key, slot.0);
                places.len()
            }
            _ => {
                let mut list = SlotList::default();
                places.iter().for_each(|place| list.insert(Slot(place.entry), &order));
                list.insert(slot, &order);
                // Backwards: taking an entry out moves those behind it.
                places.iter().rev().for_each(|&place| self.take(key, place));
                pool.lists_changed(0, bytes_of(&list));
                let entry = self.adopt(list);
                self.put(key, entry);
                places.len()
            }
        }
    }

    fn remove(
        &mut self,
        pool: &Pool,
        key: u64,
        slot: Slot,
        same: impl Fn(Slot) -> bool,
        order: impl Fn(Slot) -> Seq,
    ) -> Option<usize> {
        let mut places = Places::new();
        self.places(key, same, &mut places);
        match places[..] {
            [place] if place.entry & LIST != 0 => {
                let list = self.list_mut(place.entry);
                let (before, from) = (list.len(), bytes_of(list));
                if !list.remove(slot, order) {
                    return None;
                }
                if list.len() <= INLINE_AGAIN {
                    let list = self.give_up(place.entry);
                    self.take(key, place);
                    list.iter().for_each(|held| self.put(key, held.0));
                    pool.lists_changed(from, 0);
                } else {
                    pool.lists_changed(from, bytes_of(list));
                }
                Some(before)
            }
            _ => {
                let place = places.iter().find(|place| place.entry == slot.0)?;
                self.take(key, *place);
                Some(places.len())
            }
        }
    }

    /// Puts another slot of the same key in the place of one.
    pub(super) fn replace(
        &mut self,
        pool: &Pool,
        key: u64,
        (old, new): (Slot, Slot),
        same: impl Fn(Slot) -> bool,
        order: impl Fn(Slot) -> Seq,
    ) {
        let mut places = Places::new();
        self.places(key, same, &mut places);
        match places[..] {
            [Place { entry, .. }] if entry & LIST != 0 => {
                let list = self.list_mut(entry);
                let from = bytes_of(list);
                if list.remove(old, &order) {
                    list.insert(new, order);
                }
                pool.lists_changed(from, bytes_of(list));
            }
            _ => {
                for place in places.iter().filter(|place| place.entry == old.0) {
                    self.bucket_mut(place.bucket as usize).set_entry(place.at as usize, new.0);
                }
            }
        }
    }

    /// Puts an entry where it belongs; there is room.
    #[inline]
    fn put(&mut self, key: u64, entry: u32) {
        debug_assert!((self.entries as usize) < self.buckets() * BUCKET_ENTRIES, "a shard has room when it is put to");
        let mut number = self.home(key);
        while !self.bucket_mut(number).push(key as u8, entry) {
            self.bucket_mut(number).pass();
            number = self.after(number);
        }
        self.entries += 1;
    }

    fn take(&mut self, key: u64, place: Place) {
        let mut number = self.home(key);
        while number != place.bucket as usize {
            self.bucket_mut(number).unpass();
            number = self.after(number);
        }
        self.bucket_mut(number).swap_remove(place.at as usize);
        self.entries -= 1;
    }

    fn adopt(&mut self, list: SlotList) -> u32 {
        let Lists { slots, free } = &mut **self.lists.get_or_insert_default();
        let number = free.pop().unwrap_or_else(|| {
            slots.push(SlotList::default());
            slots.len() as u32 - 1
        });
        slots[number as usize] = list;
        LIST | number
    }

    fn give_up(&mut self, entry: u32) -> SlotList {
        let list = std::mem::take(self.list_mut(entry));
        self.lists.get_or_insert_default().free.push(entry & !LIST);
        list
    }

    fn resize(&mut self, pool: &Pool, keys: &impl Keys, vary: usize) {
        let mut entries = Vec::with_capacity(self.entries as usize);
        self.each_with_key(keys, |key, entry| entries.push((key, entry)));
        self.refill(pool, entries, vary);
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

    /// Holds just these entries from here on, in as many pages as they need.
    fn refill(&mut self, pool: &Pool, entries: Vec<(u64, u32)>, vary: usize) {
        pool.give(std::mem::take(&mut self.pages));
        self.pages = (0..pages_for(entries.len(), vary)).map(|_| pool.take()).collect();
        self.entries = 0;
        entries.into_iter().for_each(|(key, entry)| self.put(key, entry));
    }
}

/// Keys and slots in the order of their shards.
fn sort_by_shard(
    keys: impl ExactSizeIterator<Item = (u64, Slot)>,
    sorted: &mut Vec<(u64, Slot)>,
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
    sorted.resize(keys.len(), (0, Slot(0)));
    for (key, slot) in keys {
        let at = &mut starts[Table::shard_number(key)];
        sorted[*at] = (key, slot);
        *at += 1;
    }
}

/// Pages for so many entries and some to come. `vary` decides how many.
fn pages_for(entries: usize, vary: usize) -> usize {
    let [least, most] = LOAD_GROWN;
    let load = least + vary % (most - least + 1);
    (entries * 100 / load).div_ceil(PAGE_BUCKETS * BUCKET_ENTRIES).max(1)
}

fn bytes_of(list: &SlotList) -> u64 {
    (list.bytes() + size_of::<SlotList>()) as u64
}
