//! A part of a table: the entries of some keys, in buckets of memory pages.
//!
//! An entry is a place with the tag of its key. It is in the bucket (`pool.rs`) that the key determines
//! (`shard/layout.rs`) or, if that bucket is full, in the next one with room. A few places of one key are separate
//! entries; more of them are kept in a list, and one entry names the list. A shard that is nearly full must grow
//! (`shard/moves.rs`), and reports this before it is full (`table.rs`). Knows nothing of other shards.

mod keys;
mod layout;
mod moves;

use hapax_core::prefetch;
use smallvec::SmallVec;

use self::layout::Layout;
use self::moves::{LOAD_FILLED, LOAD_GROWN, buckets_for, by_steps, with_keys};
use super::key_members::{INLINE_MAX, KeyMembers};
use super::place::Place;
use super::place_list::PlaceList;
use super::pool::{BUCKET_ENTRIES, Bucket, PAGE_BUCKETS, Page, Pool};
use crate::types::Seq;

pub(super) use self::keys::Keys;

/// Marks an entry that is the number of a list instead of a place.
const LIST: u32 = 1 << 31;
/// The number of places at which a shrinking list becomes separate entries again.
const INLINE_AGAIN: usize = 4;

/// The load, in percent, at which a shard should grow soon. The load is the share of a shard's room for entries that is
/// in use.
const LOAD_DUE: usize = 89;
/// The load, in percent, at which a shard must grow.
const LOAD_MAX: usize = 91;
/// The load, in percent, below which a shard is due to shrink.
const LOAD_MIN: usize = 30;

/// A shard's entries, with room for some more. The shard and its lock together take one cache line.
#[derive(Default)]
pub(super) struct Shard {
    pages: Vec<Page>,
    lists: Option<Box<Lists>>,
    entries: u32,
    layout: Layout,
    /// Whether the table has been notified that the shard is due to be resized.
    told: bool,
}

/// The lists of places, for keys that have too many places for separate entries.
#[derive(Default)]
struct Lists {
    places: Vec<PlaceList>,
    /// The numbers of lists that are not in use.
    free: Vec<u32>,
}

/// An entry and its position: the bucket, and the index in the bucket.
#[derive(Clone, Copy)]
struct Position {
    bucket: u32,
    at: u32,
    entry: u32,
}

/// The positions of a key's entries: either one list, or a few places.
type Positions = SmallVec<[Position; INLINE_MAX]>;

impl Shard {
    /// Returns how many bits of a key select this shard.
    pub(super) fn depth(&self) -> u8 {
        self.layout.depth()
    }

    /// Returns the number of entries.
    pub(super) fn entries(&self) -> usize {
        self.entries as usize
    }

    /// Makes room for `entries` in an empty shard that `depth` bits of a key select.
    pub(super) fn reserve(&mut self, pool: &Pool, depth: u8, entries: usize, vary: usize) {
        self.open(pool, Layout::new(depth, buckets_for(entries, vary, LOAD_FILLED)));
    }

    /// Gives the shard new pages for a layout, without entries. Returns its former pages. Until these are given back,
    /// the pool counts the former and the new pages.
    fn open(&mut self, pool: &Pool, layout: Layout) -> Vec<Page> {
        let pages = (0..layout.buckets() / PAGE_BUCKETS).map(|_| pool.take()).collect();
        (self.layout, self.entries, self.told) = (layout, 0, false);
        std::mem::replace(&mut self.pages, pages)
    }

    /// Moves the entries whose next key bit is 1 to another shard, which is empty. The numbers of the two shards decide
    /// their exact new sizes within limits, so that the sizes differ.
    pub(super) fn split(
        &mut self,
        pool: &Pool,
        other: &mut Self,
        [number, other_number]: [usize; 2],
        keys: &impl Keys,
    ) {
        let from = self.layout;
        // Entries that overflowed from one half into the other are counted in the wrong half. There are some dozens of
        // such entries, and the new shards have room for them.
        let second: usize = self.all_buckets().skip(from.buckets() / 2).map(|bucket| bucket.entries().len()).sum();
        let here = from.halved(buckets_for(self.entries() - second, number, LOAD_GROWN));
        let there = from.halved(buckets_for(second, other_number, LOAD_FILLED));
        let pages = self.open(pool, here);
        other.open(pool, there);
        let (middle, stays_tagged, goes_tagged) = (from.steps() / 2, here.has_tags_of(from), there.has_tags_of(from));
        let others = by_steps(&pages, from, |step, tag, entry| match step.checked_sub(middle) {
            None => stays_tagged && self.put_by_step(step, tag, entry),
            Some(step) => goes_tagged && entry & LIST == 0 && other.put_by_step(step, tag, entry),
        });
        for (key, entry) in with_keys(&others, keys, |entry| self.first(entry)) {
            let goes = from.is_in_second_half(key);
            let entry = if goes && entry & LIST != 0 { other.adopt(self.give_up(entry)) } else { entry };
            if goes { other.put(key, entry) } else { self.put(key, entry) }
        }
        pool.give(pages);
    }

    /// Makes the shard as large as its entries need. `vary` decides the exact size within limits.
    pub(super) fn resize(&mut self, pool: &Pool, keys: &impl Keys, vary: usize) {
        let from = self.layout;
        let to = from.resized(buckets_for(self.entries(), vary, LOAD_GROWN));
        let pages = self.open(pool, to);
        let is_tagged = to.has_tags_of(from);
        let others = by_steps(&pages, from, |step, tag, entry| is_tagged && self.put_by_step(step, tag, entry));
        for (key, entry) in with_keys(&others, keys, |entry| self.first(entry)) {
            self.put(key, entry);
        }
        pool.give(pages);
    }

    /// Visits every place that is in no list, with its key. To compute the keys, reads the rows of all these places.
    pub(super) fn few(&self, keys: &impl Keys, mut visit: impl FnMut(u64, Place)) {
        let entries = self.all_buckets().flat_map(Bucket::entries).copied();
        let places: Vec<u32> = entries.filter(|entry| entry & LIST == 0).collect();
        with_keys(&places, keys, Place).into_iter().for_each(|(key, place)| visit(key, Place(place)));
    }

    fn all_buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.pages.iter().flat_map(|page| page.iter())
    }

    pub(super) fn lists(&self) -> impl Iterator<Item = &PlaceList> {
        self.lists.iter().flat_map(|lists| &lists.places).filter(|list| list.len() > 0)
    }

    /// Returns the places of a key.
    pub(super) fn members(&self, key: u64, same: impl Fn(Place) -> bool) -> KeyMembers<'_> {
        let mut positions = Positions::new();
        self.positions(key, same, &mut positions);
        match positions[..] {
            [Position { entry, .. }] if entry & LIST != 0 => KeyMembers::List(self.list(entry)),
            _ => KeyMembers::Inline(positions.iter().map(|position| Place(position.entry)).collect()),
        }
    }

    /// Visits the entries that may have this key, judged by their tags alone. Pass them to [`Self::first`] and
    /// [`Self::resolve`]. `home` is the bucket that [`Self::prefetch_home`] returned.
    #[inline]
    pub(super) fn tagged(&self, key: u64, home: Option<&Bucket>, mut visit: impl FnMut(u32)) {
        let Some(home) = home else { return };
        if home.passed() {
            self.each_tagged(key, |position| visit(position.entry));
        } else {
            home.tagged(self.layout.tag(key)).for_each(|(_, entry)| visit(entry));
        }
    }

    /// Returns a place that has the key of an entry.
    #[inline]
    pub(super) fn first(&self, entry: u32) -> Place {
        if entry & LIST == 0 { Place(entry) } else { self.list(entry).first().expect("a list has places") }
    }

    /// Returns the list that an entry names, if it names one.
    #[inline]
    pub(super) fn resolve(&self, entry: u32) -> Option<&PlaceList> {
        (entry & LIST != 0).then(|| self.list(entry))
    }

    fn list(&self, entry: u32) -> &PlaceList {
        let lists = self.lists.as_ref().expect("an entry names a list only if there is one");
        &lists.places[(entry & !LIST) as usize]
    }

    fn list_mut(&mut self, entry: u32) -> &mut PlaceList {
        let lists = self.lists.as_mut().expect("an entry names a list only if there is one");
        &mut lists.places[(entry & !LIST) as usize]
    }

    fn buckets(&self) -> usize {
        self.layout.buckets()
    }

    /// Returns whether the shard must grow before another entry is added.
    pub(super) fn is_full(&self) -> bool {
        self.has_load(LOAD_MAX)
    }

    /// Returns whether the shard should grow soon.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.has_load(LOAD_DUE)
    }

    /// Returns whether the shard should shrink.
    pub(super) fn is_sparse(&self) -> bool {
        self.pages.len() > 1 && !self.has_load(LOAD_MIN)
    }

    fn has_load(&self, percent: usize) -> bool {
        self.entries as usize * 100 >= self.buckets() * BUCKET_ENTRIES * percent
    }

    /// Returns whether the shard is due to be resized and its table has not been notified.
    pub(super) fn is_newly_due(&self) -> bool {
        !self.told && (self.is_nearly_full() || self.is_sparse())
    }

    /// Notes whether the table has been notified that the shard is due to be resized.
    pub(super) fn set_told(&mut self, told: bool) {
        self.told = told;
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        self.layout.home(key)
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

    /// Prefetches the pointer to the page that [`Self::prefetch_home`] needs.
    #[inline]
    pub(super) fn prefetch_page(&self, key: u64) {
        if let Some(page) = self.pages.get(self.home(key) / PAGE_BUCKETS) {
            prefetch(page);
        }
    }

    /// Prefetches the bucket of a key and returns it; `None` if the shard has none yet.
    #[inline]
    pub(super) fn prefetch_home(&self, key: u64) -> Option<&Bucket> {
        if self.pages.is_empty() {
            return None;
        }
        let home = self.bucket(self.home(key));
        prefetch(home);
        Some(home)
    }

    /// Prefetches the two buckets after the home of a key, if entries may be there. The code does not branch on whether
    /// the home overflows, because the branch could not be predicted. If the home does not overflow, it is prefetched
    /// again, which costs nothing.
    #[inline]
    pub(super) fn prefetch_overflow(&self, key: u64) {
        if self.pages.is_empty() {
            return;
        }
        let home = self.home(key);
        let stride = usize::from(self.bucket(home).overflows());
        // The last buckets overflow into the first ones. This case is rare, and is not prefetched.
        let last = self.buckets() - 1;
        prefetch(self.bucket((home + stride).min(last)));
        prefetch(self.bucket((home + 2 * stride).min(last)));
    }

    #[inline]
    fn each_tagged(&self, key: u64, mut visit: impl FnMut(Position)) {
        if self.pages.is_empty() {
            return;
        }
        let (home, tag) = (self.home(key), self.layout.tag(key));
        let mut number = home;
        loop {
            let bucket = self.bucket(number);
            for (at, entry) in bucket.tagged(tag) {
                visit(Position { bucket: number as u32, at: at as u32, entry });
            }
            number = self.after(number);
            if !bucket.passed() || number == home {
                return;
            }
        }
    }

    #[inline]
    fn positions(&self, key: u64, same: impl Fn(Place) -> bool, positions: &mut Positions) {
        self.each_tagged(key, |position| {
            if same(self.first(position.entry)) {
                positions.push(position);
            }
        });
    }

    /// Adds a place, for which there must be room. `same` returns whether a place has the key.
    #[inline]
    pub(super) fn insert(
        &mut self,
        pool: &Pool,
        key: u64,
        place: Place,
        same: impl Fn(Place) -> bool,
        order: impl Fn(Place) -> Seq,
    ) {
        let (home, tag) = (self.home(key), self.layout.tag(key));
        if self.bucket(home).has_none(tag) {
            return self.put_at(home, tag, place.0);
        }
        // Most places with the same tag have another key. To compare the keys, the row of each place must be read from
        // memory. If there are few such places, the result would make no difference, so the rows are not read.
        let (mut tagged, mut any_list) = (0, false);
        self.each_tagged(key, |position| {
            tagged += 1;
            any_list |= position.entry & LIST != 0;
        });
        if tagged < INLINE_MAX && !any_list {
            return self.put_at(home, tag, place.0);
        }
        let mut positions = Positions::new();
        self.positions(key, same, &mut positions);
        match positions[..] {
            [Position { entry, .. }] if entry & LIST != 0 => {
                let list = self.list_mut(entry);
                let from = bytes_of(list);
                list.insert(place, order);
                pool.lists_changed(from, bytes_of(list));
            }
            _ if positions.len() < INLINE_MAX => self.put(key, place.0),
            _ => {
                let mut list = PlaceList::default();
                positions.iter().for_each(|position| list.insert(Place(position.entry), &order));
                list.insert(place, &order);
                // Entries are removed from the last to the first, because a removal moves a later entry to the position
                // that becomes free.
                positions.iter().rev().for_each(|&position| self.take(key, position));
                pool.lists_changed(0, bytes_of(&list));
                let entry = self.adopt(list);
                self.put(key, entry);
            }
        }
    }

    /// Removes a place. Returns whether it was in the shard.
    pub(super) fn remove(
        &mut self,
        pool: &Pool,
        key: u64,
        place: Place,
        same: impl Fn(Place) -> bool,
        order: impl Fn(Place) -> Seq,
    ) -> bool {
        let mut positions = Positions::new();
        self.positions(key, same, &mut positions);
        match positions[..] {
            [position] if position.entry & LIST != 0 => {
                let list = self.list_mut(position.entry);
                let from = bytes_of(list);
                if !list.remove(place, order) {
                    return false;
                }
                if list.len() <= INLINE_AGAIN {
                    let list = self.give_up(position.entry);
                    self.take(key, position);
                    list.iter().for_each(|held| self.put(key, held.0));
                    pool.lists_changed(from, 0);
                } else {
                    pool.lists_changed(from, bytes_of(list));
                }
                true
            }
            _ => {
                let Some(position) = positions.iter().find(|position| position.entry == place.0) else { return false };
                self.take(key, *position);
                true
            }
        }
    }

    /// Replaces a place with another of the same key.
    pub(super) fn replace(
        &mut self,
        pool: &Pool,
        key: u64,
        (old, new): (Place, Place),
        same: impl Fn(Place) -> bool,
        order: impl Fn(Place) -> Seq,
    ) {
        let mut positions = Positions::new();
        self.positions(key, same, &mut positions);
        match positions[..] {
            [Position { entry, .. }] if entry & LIST != 0 => {
                let list = self.list_mut(entry);
                let from = bytes_of(list);
                if list.remove(old, &order) {
                    list.insert(new, order);
                }
                pool.lists_changed(from, bytes_of(list));
            }
            _ => {
                for position in positions.iter().filter(|position| position.entry == old.0) {
                    self.bucket_mut(position.bucket as usize).set_entry(position.at as usize, new.0);
                }
            }
        }
    }

    /// Puts an entry into its bucket or the next one with room. There must be room.
    #[inline]
    fn put(&mut self, key: u64, entry: u32) {
        self.put_at(self.home(key), self.layout.tag(key), entry);
    }

    /// Like [`Self::put`], for a step and a tag instead of a key. Returns false if the step does not determine the
    /// bucket.
    #[inline]
    fn put_by_step(&mut self, step: u64, tag: u8, entry: u32) -> bool {
        let Some(home) = self.layout.home_of_step(step) else { return false };
        self.put_at(home, tag, entry);
        true
    }

    #[inline]
    fn put_at(&mut self, home: usize, tag: u8, entry: u32) {
        let mut number = home;
        while !self.bucket_mut(number).push(tag, entry, number != home) {
            self.bucket_mut(number).pass();
            number = self.after(number);
            assert!(number != home, "the caller has made room in the shard");
        }
        self.entries += 1;
    }

    fn take(&mut self, key: u64, position: Position) {
        let mut number = self.home(key);
        while number != position.bucket as usize {
            self.bucket_mut(number).unpass();
            number = self.after(number);
        }
        self.bucket_mut(number).swap_remove(position.at as usize);
        self.entries -= 1;
    }

    fn adopt(&mut self, list: PlaceList) -> u32 {
        let Lists { places, free } = &mut **self.lists.get_or_insert_default();
        let number = free.pop().unwrap_or_else(|| {
            places.push(PlaceList::default());
            places.len() as u32 - 1
        });
        places[number as usize] = list;
        LIST | number
    }

    fn give_up(&mut self, entry: u32) -> PlaceList {
        let list = std::mem::take(self.list_mut(entry));
        self.lists.get_or_insert_default().free.push(entry & !LIST);
        list
    }

    /// Checks that each entry is where its key belongs, and has the tag of its key.
    #[cfg(all(test, not(hapax_loom)))]
    pub(super) fn check(&self, keys: &impl Keys) {
        let mut entries = 0;
        for (number, bucket) in self.all_buckets().enumerate() {
            for (tag, entry, is_stray) in bucket.tags() {
                let key = keys.key(self.first(entry));
                assert_eq!((tag, is_stray), (self.layout.tag(key), self.home(key) != number));
                entries += 1;
            }
        }
        assert_eq!(entries, self.entries());
    }
}

fn bytes_of(list: &PlaceList) -> u64 {
    (list.bytes() + size_of::<PlaceList>()) as u64
}
