//! Band key -> slots, without storing the keys.
//! A posting is a 32-bit slot and an 8-bit tag (`table.rs`); which key it stands for is seen from the signature in the
//! [`Arena`]. Each band has a table of its own. Documents with equal signatures would be in the same buckets of every
//! band: they share the postings of one of them, and a list behind it.

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use hapax_core::{BandKey, Banding, SignatureShape, fmix64};
use parking_lot::RwLockReadGuard;
use rayon::prelude::*;
use smallvec::SmallVec;

use super::arena::words_of;
use super::equals::Equals;
use super::pool::{Bucket as PostingBucket, Pool};
use super::table::{Keys, Members, SHARDS_MAX, Shard, Table};
use super::{Arena, BucketSizes};
use crate::types::Slot;

/// Bands whose keys and shards stand on the stack; more take a heap buffer.
const BANDS: usize = 32;
const KEY_SEED: u64 = 0x6861_7061_7821;
/// How far to look among the postings of a key for an equal signature, where every key of it has many.
const EQUAL_LOOK_MAX: usize = 64;
/// Slots placed at a time when many are: their keys are sorted by shard first, so that one shard after the other is in
/// the cache.
const PLACED_AT_ONCE: usize = 1 << 19;

/// The band index of one collection under one banding.
pub struct BandIndex {
    banding: Banding,
    shape: SignatureShape,
    rows: Box<[Rows]>,
    tables: Box<[Table]>,
    pool: Pool,
    equals: Equals,
    /// Odd while a list of equals changes hands.
    handing_over: AtomicU64,
    sizes: BucketSizes,
}

/// Where the rows of a band stand among the words of a signature.
struct Rows {
    words: Range<usize>,
    /// The bytes of the first and of the last word that are rows of the band.
    first_mask: u64,
    last_mask: u64,
    /// Whether the words do not fit into one, each byte in its place.
    overlap: bool,
}

/// What probing all bands of a query found.
#[derive(Default)]
pub struct Probe {
    /// Each slot that shares a band with the query, and how many bands it shares.
    pub hits: Vec<Hit>,
    /// Postings that were not read: a document may be counted once for each band.
    pub unread: u64,
    /// Documents in the fullest bucket among the query's keys.
    pub fullest: usize,
    keys: Vec<u64>,
    words: Vec<u64>,
    found: Vec<(u32, u32)>,
    slots: Vec<Slot>,
}

/// A slot that shares bands with a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Which.
    pub slot: Slot,
    /// How many bands.
    pub bands: u32,
}

/// Documents that share a band key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Which band.
    pub band: u32,
    /// Its key.
    pub key: BandKey,
    /// How many documents.
    pub documents: usize,
    /// Some of them, old and new.
    pub sample: Vec<Slot>,
}

impl BandIndex {
    /// An index without postings.
    pub fn new(banding: Banding, shape: SignatureShape) -> Self {
        let bands = banding.bands() as usize;
        Self {
            banding,
            shape,
            rows: (0..banding.bands()).map(|band| Rows::new(banding.row_bytes(shape, band))).collect(),
            tables: (0..bands).map(|band| Table::new(band, bands)).collect(),
            pool: Pool::default(),
            equals: Equals::default(),
            handing_over: AtomicU64::new(0),
            sizes: BucketSizes::default(),
        }
    }

    /// The banding it was made with.
    pub fn banding(&self) -> Banding {
        self.banding
    }

    /// How many documents share a key.
    pub fn sizes(&self) -> &BucketSizes {
        &self.sizes
    }

    /// Bytes of all postings and lists.
    pub fn bytes(&self) -> u64 {
        self.pool.bytes() + self.equals.bytes()
    }

    /// Adds a published slot that is not here yet.
    pub fn insert(&self, arena: &Arena, slot: Slot) {
        let keys = self.keys(arena, slot);
        self.tables.iter().zip(&keys).for_each(|(table, &key)| table.prefetch(key));
        let with_room = |(band, &key): (usize, &u64)| {
            let keys = BandKeys { rows: &self.rows[band], arena };
            self.tables[band].with_room(&self.pool, key, &keys)
        };
        let mut shards: SmallVec<[_; BANDS]> = keys.iter().enumerate().map(with_room).collect();
        prefetch_homes(&shards, &keys);
        // Where there are many, an equal one may be passed over: that costs memory, and nothing else.
        let members = self.fewest(arena, slot, &shards, &keys);
        let looked_at = &members.as_slice()[..members.as_slice().len().min(EQUAL_LOOK_MAX)];
        let holder = equal_to(arena, slot, looked_at).next();
        drop(members);
        if let Some(holder) = holder {
            drop(shards);
            return self.join(holder, slot);
        }
        for ((shard, rows), &key) in shards.iter_mut().zip(&self.rows).zip(&keys) {
            let before = shard.insert(&self.pool, key, slot, |held| rows.equal_of(arena, slot, held));
            self.sizes.changed(before, before + 1);
        }
    }

    /// Adds many slots to an empty index, in parallel; `done` is told how many postings were placed. The slots must be
    /// published.
    pub fn insert_all(&self, arena: &Arena, slots: &[Slot], done: impl Fn(usize) + Sync) {
        let holders = self.join_equals(arena, slots);
        (0..self.tables.len()).into_par_iter().for_each(|band| {
            self.tables[band].reserve(&self.pool, holders.len());
            let (mut placed, mut starts) = (Vec::new(), Vec::new());
            for slots in holders.chunks(PLACED_AT_ONCE) {
                let rows = &self.rows[band];
                let keys = BandKeys { rows, arena };
                sort_by_shard(slots.iter().map(|&slot| (keys.key(slot), slot)), &mut placed, &mut starts);
                let same = |a, b| rows.equal_of(arena, a, b);
                let added = |before| self.sizes.changed(before, before + 1);
                self.tables[band].insert_sorted(&self.pool, &placed, same, &keys, added);
                done(slots.len());
            }
        });
    }

    /// Takes a slot out again, before it is freed. One that is not here is passed over. One at a time, and not beside
    /// an insertion.
    pub fn remove(&self, arena: &Arena, slot: Slot) {
        let keys = self.keys(arena, slot);
        if self.equals.of(slot).is_some() {
            return self.hand_over(arena, slot, &keys);
        }
        let mut found = false;
        for (band, &key) in keys.iter().enumerate() {
            let same = |held| self.rows[band].equal_of(arena, slot, held);
            let keys = BandKeys { rows: &self.rows[band], arena };
            if let Some(before) = self.tables[band].remove(&self.pool, key, slot, same, &keys) {
                self.sizes.changed(before, before - 1);
                found = true;
            }
        }
        if !found && self.equals.len() > 0 {
            let shards = self.shards(&keys);
            // There may be several that have postings of their own.
            let members = self.fewest(arena, slot, &shards, &keys);
            let holders: Vec<Slot> = equal_to(arena, slot, members.as_slice()).collect();
            drop(members);
            drop(shards);
            holders.into_iter().any(|holder| self.part(holder, slot));
        }
    }

    /// Finds the slots that share a key with a packed signature. At most `per_key_max` postings of a key are read, and
    /// so many of those with equal signatures, spread evenly over the list and, from band to band, over different
    /// members of it.
    pub fn probe(&self, arena: &Arena, signature: &[u8], per_key_max: usize, probe: &mut Probe) {
        words_of(signature, &mut probe.words);
        probe.keys.clear();
        probe.keys.extend(self.rows.iter().map(|rows| rows.key(|word| probe.words[word])));
        loop {
            let before = self.handing_over.load(Ordering::Acquire);
            self.probe_once(arena, per_key_max, probe);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.handing_over.load(Ordering::Relaxed) == before {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// The shards of some keys, one a band, locked.
    fn shards(&self, keys: &[u64]) -> SmallVec<[RwLockReadGuard<'_, Shard>; BANDS]> {
        self.tables.iter().zip(keys).for_each(|(table, &key)| table.prefetch(key));
        self.tables.iter().zip(keys).map(|(table, &key)| table.read(key)).collect()
    }

    fn probe_once(&self, arena: &Arena, per_key_max: usize, probe: &mut Probe) {
        let Probe { hits, unread, fullest, keys, words, found, slots } = probe;
        (*unread, *fullest) = (0, 0);
        slots.clear();
        found.clear();
        {
            let shards = self.shards(keys);
            let homes = prefetch_homes(&shards, keys);
            for (band, (shard, &key)) in shards.iter().zip(&*keys).enumerate() {
                shard.tagged(key, homes[band], |entry| found.push((band as u32, entry)));
            }
            for &(band, entry) in &*found {
                arena.prefetch(shards[band as usize].first(entry), self.rows[band as usize].words.start);
            }
            // Slots of one key stand together; so many beside each other, or one list.
            let (mut last_band, mut beside) = (u32::MAX, 0);
            for &(band, entry) in &*found {
                let (shard, rows) = (&shards[band as usize], &self.rows[band as usize]);
                if !rows.equal(arena, shard.first(entry), words) {
                    continue;
                }
                match shard.resolve(entry) {
                    None => {
                        beside = if band == last_band { beside + 1 } else { 1 };
                        last_band = band;
                        *fullest = beside.max(*fullest);
                        if beside <= per_key_max {
                            slots.push(Slot(entry));
                        } else {
                            *unread += 1;
                        }
                    }
                    Some(list) => {
                        *fullest = list.len().max(*fullest);
                        *unread += read_some(list, per_key_max, band as usize, keys.len(), slots);
                    }
                }
            }
        }
        slots.sort_unstable();
        hits.clear();
        hits.extend(slots.chunk_by(|a, b| a == b).map(|same| Hit { slot: same[0], bands: same.len() as u32 }));
        if self.equals.len() > 0 {
            for at in 0..hits.len() {
                let Hit { slot: holder, bands } = hits[at];
                let Some(others) = self.equals.of(holder) else { continue };
                slots.clear();
                *unread += read_some(&others, per_key_max, 0, 1, slots);
                *fullest = (others.len() + 1).max(*fullest);
                hits.extend(slots.iter().map(|&slot| Hit { slot, bands }));
            }
        }
    }

    /// The fullest buckets, at most `limit`, each with up to `samples` of its documents; the fullest first. Buckets of
    /// up to eight documents are looked at only with `all`, which takes a look at every posting.
    pub fn fullest(&self, arena: &Arena, limit: usize, samples: usize, all: bool) -> Vec<Bucket> {
        let mut fullest = Fullest { index: self, arena, limit, floor: 2, keys: HashMap::new() };
        for (band, table) in self.tables.iter().enumerate() {
            table.for_each_list(|list| fullest.consider(list.len(), band, list[0]));
            if all {
                let keys = BandKeys { rows: &self.rows[band], arena };
                table.for_each_few(&keys, |slots| fullest.consider(slots.len(), band, slots[0]));
            }
        }
        for (slot, others) in self.equals.sizes() {
            (0..self.tables.len()).for_each(|band| fullest.consider(others + 1, band, slot));
        }
        let keys = fullest.keys.into_iter();
        let mut buckets: Vec<Bucket> =
            keys.map(|((band, key), (_, slot))| self.bucket(arena, band, key, slot, samples)).collect();
        buckets.sort_by_key(|bucket| (std::cmp::Reverse(bucket.documents), bucket.band));
        buckets.truncate(limit);
        buckets
    }

    fn bucket(&self, arena: &Arena, band: usize, key: u64, one: Slot, samples: usize) -> Bucket {
        let rows = &self.rows[band];
        let shard = self.tables[band].read(key);
        let members = shard.members(key, |held| rows.equal_of(arena, one, held));
        let slots = members.as_slice();
        let mut sample = Vec::new();
        read_some(slots, samples, 0, 1, &mut sample);
        let mut documents = slots.len();
        for others in slots.iter().filter_map(|&slot| self.equals.of(slot)) {
            documents += others.len();
            read_some(&others, samples.saturating_sub(sample.len()), 0, 1, &mut sample);
        }
        let words: Vec<u64> = arena.signature(one).iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        let signature = &bytemuck::cast_slice(&words)[..self.shape.bytes()];
        let key = self.banding.key(signature, self.shape, band as u32);
        Bucket { band: band as u32, key, documents, sample }
    }

    fn keys(&self, arena: &Arena, slot: Slot) -> SmallVec<[u64; BANDS]> {
        self.rows.iter().map(|rows| rows.key_of(arena, slot)).collect()
    }

    /// Slots that share a band with this one, in the band where they are few: all with an equal signature are among
    /// them, but for those that share the postings of another.
    fn fewest<'a>(
        &self,
        arena: &Arena,
        slot: Slot,
        shards: &'a [impl Deref<Target = Shard>],
        keys: &[u64],
    ) -> Members<'a> {
        let mut fewest: Option<&[Slot]> = None;
        for ((shard, rows), &key) in shards.iter().zip(&self.rows).zip(keys) {
            match shard.members(key, |held| rows.equal_of(arena, slot, held)) {
                Members::List(list) => fewest = fewest.filter(|fewest| fewest.len() <= list.len()).or(Some(list)),
                inline => return inline,
            }
        }
        Members::List(fewest.expect("a banding has a band"))
    }

    /// Whether a published slot is here.
    pub fn contains(&self, arena: &Arena, slot: Slot) -> bool {
        let keys = self.keys(arena, slot);
        let shards = self.shards(&keys);
        let members = self.fewest(arena, slot, &shards, &keys);
        let behind = |&holder: &Slot| self.equals.of(holder).is_some_and(|others| others.contains(&slot));
        members.as_slice().contains(&slot) || members.as_slice().iter().any(behind)
    }

    /// Adds a slot to those that share the postings of another.
    fn join(&self, holder: Slot, slot: Slot) {
        let before = self.equals.push(holder, slot);
        self.sizes.changed(group(before), group(before + 1));
    }

    /// Takes a slot out of those that share the postings of another; false if it is not one of them.
    fn part(&self, holder: Slot, slot: Slot) -> bool {
        let Some(before) = self.equals.remove(holder, slot) else { return false };
        self.sizes.changed(group(before), group(before - 1));
        true
    }

    /// Takes out a slot that has the postings for others: the first of these gets them.
    fn hand_over(&self, arena: &Arena, slot: Slot, keys: &[u64]) {
        // Readers that find the slot's postings meanwhile, and then no list behind it, look again.
        self.handing_over.fetch_add(1, Ordering::AcqRel);
        let (heir, before) = self.equals.hand_over(slot).expect("the caller has seen it");
        self.sizes.changed(group(before), group(before - 1));
        for ((table, rows), &key) in self.tables.iter().zip(&self.rows).zip(keys) {
            table.replace(key, slot, heir, |held| rows.equal_of(arena, slot, held));
        }
        self.handing_over.fetch_add(1, Ordering::AcqRel);
    }

    /// Finds equal signatures among many slots; returns one of each.
    fn join_equals(&self, arena: &Arena, slots: &[Slot]) -> Vec<Slot> {
        // A hash of 32 bits beside each slot: memory for a moment, 8 bytes a document.
        let mut hashed: Vec<u64> =
            slots.par_iter().map(|&slot| hash_of(arena, slot) << 32 | u64::from(slot.0)).collect();
        hashed.par_sort_unstable();
        let mut holders: Vec<Slot> = Vec::with_capacity(slots.len());
        for run in hashed.chunk_by(|a, b| a >> 32 == b >> 32) {
            let first = holders.len();
            for slot in run.iter().map(|&hashed| Slot(hashed as u32)) {
                let holder = equal_to(arena, slot, &holders[first..]).next();
                match holder {
                    Some(holder) => self.join(holder, slot),
                    None => holders.push(slot),
                }
            }
        }
        holders.sort_unstable();
        holders
    }
}

impl Rows {
    fn new(bytes: Range<usize>) -> Self {
        let words = bytes.start / 8..bytes.end.div_ceil(8);
        let mask = |word: usize| {
            let within = |at: usize| if bytes.contains(&(word * 8 + at)) { 0xFF } else { 0 };
            u64::from_ne_bytes(std::array::from_fn(within))
        };
        Self {
            first_mask: mask(words.start),
            last_mask: mask(words.end - 1),
            overlap: words.len() > 1 && bytes.len() > 8,
            words,
        }
    }

    /// Whether a slot has the rows of a signature.
    #[inline]
    fn equal(&self, arena: &Arena, slot: Slot, signature: &[u64]) -> bool {
        let held = &arena.signature(slot)[self.words.clone()];
        let asked = &signature[self.words.clone()];
        self.same(|word| held[word].load(Ordering::Relaxed) ^ asked[word])
    }

    /// Whether two slots have the same rows.
    #[inline]
    fn equal_of(&self, arena: &Arena, a: Slot, b: Slot) -> bool {
        let (a, b) = (&arena.signature(a)[self.words.clone()], &arena.signature(b)[self.words.clone()]);
        self.same(|word| a[word].load(Ordering::Relaxed) ^ b[word].load(Ordering::Relaxed))
    }

    /// Whether nothing differs in the rows.
    #[inline]
    fn same(&self, difference: impl Fn(usize) -> u64) -> bool {
        let last = self.words.len() - 1;
        difference(0) & self.first_mask == 0
            && difference(last) & self.last_mask == 0
            && (1..last).all(|word| difference(word) == 0)
    }

    /// The key of the rows among the words of a signature: what tables go by. The band's key on the wire is another,
    /// which takes longer.
    #[inline]
    fn key(&self, signature: impl Fn(usize) -> u64) -> u64 {
        let (first, last) = (self.words.start, self.words.end - 1);
        let mut rows = signature(first) & self.first_mask;
        if self.overlap {
            rows = fmix64(rows);
            for word in first + 1..last {
                rows = fmix64(rows ^ signature(word));
            }
        }
        if first < last {
            rows ^= signature(last) & self.last_mask;
        }
        fmix64(rows ^ KEY_SEED)
    }

    /// The key of a slot.
    #[inline]
    fn key_of(&self, arena: &Arena, slot: Slot) -> u64 {
        let cells = arena.signature(slot);
        self.key(|word| cells[word].load(Ordering::Relaxed))
    }
}

/// The buckets of some keys, one a band, on their way from memory. Each step asks for all it needs at once: many looks
/// into memory then take little longer than one.
fn prefetch_homes<'a>(
    shards: &'a [impl Deref<Target = Shard>],
    keys: &[u64],
) -> SmallVec<[Option<&'a PostingBucket>; BANDS]> {
    shards.iter().zip(keys).for_each(|(shard, &key)| shard.prefetch_page(key));
    shards.iter().zip(keys).map(|(shard, &key)| shard.prefetch_home(key)).collect()
}

/// Keys of many documents.
struct Fullest<'a> {
    index: &'a BandIndex,
    arena: &'a Arena,
    limit: usize,
    /// Fewer documents are not worth noting.
    floor: usize,
    /// Band and key -> documents, and one of them.
    keys: HashMap<(usize, u64), (usize, Slot)>,
}

impl Fullest<'_> {
    /// A key may come several times, once for its list and once for each group of equal signatures: the most counts.
    fn consider(&mut self, documents: usize, band: usize, slot: Slot) {
        if documents < self.floor {
            return;
        }
        let key = self.index.rows[band].key_of(self.arena, slot);
        let noted = self.keys.entry((band, key)).or_insert((documents, slot));
        if noted.0 < documents {
            *noted = (documents, slot);
        }
        // More than asked for: what a key has in several groups is added up only later.
        let kept = 2 * self.limit;
        if self.keys.len() > 2 * kept {
            let mut counts: Vec<usize> = self.keys.values().map(|&(documents, _)| documents).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let last = counts[kept - 1];
            // Many may be as full as the last that is kept: any of them will do, and no more of them are needed.
            let mut ties = kept - counts.iter().filter(|&&documents| documents > last).count();
            self.keys.retain(|_, &mut (documents, _)| {
                let tie = documents == last && ties > 0;
                ties -= usize::from(tie);
                documents > last || tie
            });
            self.floor = last + 1;
        }
    }
}

/// The keys of one band.
struct BandKeys<'a> {
    rows: &'a Rows,
    arena: &'a Arena,
}

impl Keys for BandKeys<'_> {
    #[inline]
    fn key(&self, slot: Slot) -> u64 {
        self.rows.key_of(self.arena, slot)
    }

    #[inline]
    fn prefetch(&self, slot: Slot) {
        self.arena.prefetch(slot, self.rows.words.start);
    }
}

/// Those of some slots that have the signature of another.
fn equal_to(arena: &Arena, slot: Slot, among: &[Slot]) -> impl Iterator<Item = Slot> {
    let signature = arena.signature(slot);
    among.iter().copied().filter(move |&held| {
        let cells = arena.signature(held).iter().zip(signature);
        held != slot && cells.into_iter().all(|(a, b)| a.load(Ordering::Relaxed) == b.load(Ordering::Relaxed))
    })
}

/// 32 bits of a signature.
fn hash_of(arena: &Arena, slot: Slot) -> u64 {
    let words = arena.signature(slot).iter().map(|cell| cell.load(Ordering::Relaxed));
    words.fold(0, |hash, word| fmix64(hash ^ word)) >> 32
}

/// Adds up to `max` members of a list, spread over it and from band to band; returns how many were left out.
fn read_some(list: &[Slot], max: usize, band: usize, bands: usize, slots: &mut Vec<Slot>) -> u64 {
    if list.len() <= max {
        slots.extend_from_slice(list);
    } else if max > 0 {
        let shift = band * list.len() / (max * bands);
        slots.extend((0..max).map(|at| list[at * list.len() / max + shift]));
    }
    list.len().saturating_sub(max) as u64
}

/// Keys and slots in the order of their shards.
fn sort_by_shard(
    keys: impl ExactSizeIterator<Item = (u64, Slot)> + Clone,
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

/// Documents that share postings, as a bucket: one alone is none.
fn group(others: usize) -> usize {
    if others == 0 { 0 } else { others + 1 }
}
