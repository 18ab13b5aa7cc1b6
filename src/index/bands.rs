//! Band key -> slots, without storing the keys.
//! A posting is a 32-bit slot; which key it stands for is derived again from the signature in the [`Arena`], so a
//! document costs about 8 bytes a band instead of 26 for a map of 64-bit keys. Documents that share a key share one
//! entry, which then points to a list.
//! Each band has its own tables, each table its own lock: one writer, many readers, and bands build in parallel.

use hapax_core::{BandKey, Banding, SignatureShape};
use hashbrown::HashTable;
use parking_lot::RwLock;
use rayon::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::{Arena, BucketSizes};
use crate::types::Slot;

/// Tables per band. More tables mean shorter pauses when one grows.
const SHARDS: usize = 16;
/// Marks an entry that is the number of a list instead of a slot.
const LIST: u32 = 1 << 31;
/// Words on the stack for the rows of a band; longer bands take a heap buffer.
const ROW_WORDS: usize = 9;

/// The band index of one collection under one banding.
pub struct BandIndex {
    banding: Banding,
    shape: SignatureShape,
    shards: Box<[RwLock<Shard>]>,
    sizes: BucketSizes,
}

#[derive(Default)]
struct Shard {
    entries: HashTable<u32>,
    lists: Vec<List>,
    free_lists: Vec<u32>,
    /// Slots that lists keep on the heap, all together, so that a scrape need not walk them.
    heap_slots: usize,
}

/// Documents that share a key. Most are few, and stand in the list itself: 24 bytes, as an empty vector takes.
type List = SmallVec<[Slot; 4]>;

/// What probing all bands of a query found.
#[derive(Default)]
pub struct Probe {
    /// One item for each band a slot shares with the query, so a slot may stand here several times.
    pub hits: Vec<Slot>,
    /// Whether every posting of every key was read.
    pub complete: bool,
    /// Documents in the fullest bucket among the query's keys.
    pub fullest: usize,
}

impl BandIndex {
    /// An index without postings.
    pub fn new(banding: Banding, shape: SignatureShape) -> Self {
        let shards = (0..banding.bands() as usize * SHARDS).map(|_| RwLock::default()).collect();
        Self { banding, shape, shards, sizes: BucketSizes::default() }
    }

    /// The banding it was made with.
    pub fn banding(&self) -> Banding {
        self.banding
    }

    /// How many documents share a key.
    pub fn sizes(&self) -> &BucketSizes {
        &self.sizes
    }

    /// The keys of a packed signature, one a band, into `keys`.
    pub fn keys(&self, signature: &[u8], keys: &mut Vec<BandKey>) {
        keys.clear();
        keys.extend((0..self.banding.bands()).map(|band| self.banding.key(signature, self.shape, band)));
    }

    /// Adds the postings of a published slot.
    pub fn insert(&self, arena: &Arena, slot: Slot) {
        for band in 0..self.banding.bands() {
            self.insert_band(arena, slot, band);
        }
    }

    /// Adds many slots, band by band in parallel. The slots must be published and not yet here.
    pub fn insert_all(&self, arena: &Arena, slots: &[Slot], done: impl Fn(usize) + Sync) {
        (0..self.banding.bands()).into_par_iter().for_each(|band| {
            for slots in slots.chunks(4096) {
                for &slot in slots {
                    self.insert_band(arena, slot, band);
                }
                done(slots.len());
            }
        });
    }

    /// Takes the postings of a slot out again, before the slot is freed. Bands where it has none are passed over.
    pub fn remove(&self, arena: &Arena, slot: Slot) {
        for band in 0..self.banding.bands() {
            self.remove_band(arena, slot, band);
        }
    }

    /// Slots that share a key with the query. At most `per_key_max` postings of a key are read, spread evenly over
    /// its list and, from band to band, over different members of it.
    pub fn probe(&self, arena: &Arena, keys: &[BandKey], per_key_max: usize, probe: &mut Probe) {
        probe.hits.clear();
        probe.complete = true;
        probe.fullest = 0;
        for (band, &key) in keys.iter().enumerate() {
            let shard = self.shard(band as u32, key).read();
            match shard.find(self, arena, band as u32, key) {
                None => {}
                Some(entry) if entry & LIST == 0 => {
                    probe.fullest = probe.fullest.max(1);
                    probe.hits.push(Slot(entry));
                }
                Some(entry) => {
                    let list = &shard.lists[(entry & !LIST) as usize];
                    probe.fullest = probe.fullest.max(list.len());
                    if list.len() <= per_key_max {
                        probe.hits.extend_from_slice(list);
                    } else {
                        probe.complete = false;
                        probe.hits.extend(spread(list.len(), per_key_max, band, keys.len()).map(|at| list[at]));
                    }
                }
            }
        }
    }

    /// Bytes of all postings: tables by their allocation, lists by their capacity.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.read().bytes()).sum()
    }

    fn shard(&self, band: u32, key: BandKey) -> &RwLock<Shard> {
        // Bits that the tables use neither for the place of an entry nor for its tag.
        &self.shards[band as usize * SHARDS + (key.0 >> 40) as usize % SHARDS]
    }

    fn insert_band(&self, arena: &Arena, slot: Slot, band: u32) {
        let key = self.key_in_arena(arena, slot, band);
        let shard = &mut *self.shard(band, key).write();
        let Shard { entries, lists, free_lists, heap_slots } = shard;
        let found = entries.find_mut(key.0, |&entry| self.key_in_arena(arena, first(entry, lists), band) == key);
        let size = match found {
            None => {
                entries.insert_unique(key.0, slot.0, |&entry| self.key_in_arena(arena, first(entry, lists), band).0);
                0
            }
            Some(entry) if *entry & LIST == 0 => {
                let list = smallvec![Slot(*entry), slot];
                let number = match free_lists.pop() {
                    Some(number) => {
                        lists[number as usize] = list;
                        number
                    }
                    None => {
                        lists.push(list);
                        lists.len() as u32 - 1
                    }
                };
                *entry = LIST | number;
                1
            }
            Some(entry) => {
                let list = &mut lists[(*entry & !LIST) as usize];
                *heap_slots -= on_heap(list);
                list.push(slot);
                *heap_slots += on_heap(list);
                list.len() - 1
            }
        };
        self.sizes.changed(size, size + 1);
    }

    fn remove_band(&self, arena: &Arena, slot: Slot, band: u32) {
        let key = self.key_in_arena(arena, slot, band);
        let shard = &mut *self.shard(band, key).write();
        let Shard { entries, lists, free_lists, heap_slots } = shard;
        let found = entries.find_entry(key.0, |&entry| self.key_in_arena(arena, first(entry, lists), band) == key);
        let Ok(mut found) = found else { return };
        let entry = *found.get();
        if entry & LIST == 0 {
            if entry == slot.0 {
                found.remove();
                self.sizes.changed(1, 0);
            }
            return;
        }
        let number = entry & !LIST;
        let list = &mut lists[number as usize];
        let Some(at) = list.iter().position(|&held| held == slot) else { return };
        *heap_slots -= on_heap(list);
        list.remove(at);
        self.sizes.changed(list.len() + 1, list.len());
        if let [last] = list[..] {
            *found.get_mut() = last.0;
            *list = List::new();
            free_lists.push(number);
        } else if list.spilled() && list.capacity() > 4 * list.len() {
            list.shrink_to_fit();
        }
        *heap_slots += on_heap(list);
    }

    fn key_in_arena(&self, arena: &Arena, slot: Slot, band: u32) -> BandKey {
        let bytes = self.banding.row_bytes(self.shape, band);
        let (first_word, words) = (bytes.start / 8, bytes.end.div_ceil(8) - bytes.start / 8);
        let within = bytes.start - first_word * 8..bytes.end - first_word * 8;
        let mut stack = [0; ROW_WORDS];
        let mut heap = Vec::new();
        let buffer = match stack.get_mut(..words) {
            Some(buffer) => buffer,
            None => {
                heap.resize(words, 0);
                &mut heap[..]
            }
        };
        arena.copy_words(slot, first_word, buffer);
        Banding::key_of_rows(&bytemuck::cast_slice(buffer)[within], band)
    }
}

impl Shard {
    fn find(&self, index: &BandIndex, arena: &Arena, band: u32, key: BandKey) -> Option<u32> {
        let stands_for = |&entry: &u32| index.key_in_arena(arena, first(entry, &self.lists), band) == key;
        self.entries.find(key.0, stands_for).copied()
    }

    fn bytes(&self) -> u64 {
        (self.entries.allocation_size()
            + self.lists.capacity() * size_of::<List>()
            + self.free_lists.capacity() * size_of::<u32>()
            + self.heap_slots * size_of::<Slot>()) as u64
    }
}

/// A slot that has the key the entry stands for.
fn first(entry: u32, lists: &[List]) -> Slot {
    if entry & LIST == 0 { Slot(entry) } else { lists[(entry & !LIST) as usize][0] }
}

fn on_heap(list: &List) -> usize {
    if list.spilled() { list.capacity() } else { 0 }
}

/// `count` places of a list of `len`, evenly spread, shifted from band to band.
fn spread(len: usize, count: usize, band: usize, bands: usize) -> impl Iterator<Item = usize> {
    let shift = band * len / (count * bands);
    (0..count).map(move |at| at * len / count + shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Seq;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::collections::{BTreeMap, BTreeSet};

    const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };

    fn banding() -> Banding {
        Banding::new(12, 5, SHAPE).unwrap()
    }

    /// Few distinct values a row, so that keys collide often.
    fn signature(rng: &mut ChaCha8Rng) -> Vec<u8> {
        let family = rng.random_range(0..4_u8);
        (0..SHAPE.bytes()).map(|_| if rng.random_bool(0.9) { family } else { rng.random() }).collect()
    }

    fn probe(index: &BandIndex, arena: &Arena, signature: &[u8], per_key_max: usize) -> Probe {
        let (mut keys, mut probe) = (Vec::new(), Probe::default());
        index.keys(signature, &mut keys);
        index.probe(arena, &keys, per_key_max, &mut probe);
        probe
    }

    #[test]
    fn probes_agree_with_a_plain_map_through_inserts_and_removals() {
        let seed = 42;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let arena = Arena::new(SHAPE);
        let index = BandIndex::new(banding(), SHAPE);
        let mut model: BTreeMap<Slot, Vec<u8>> = BTreeMap::new();
        for seq in 1..3000 {
            if rng.random_bool(0.4) && !model.is_empty() {
                let slot = *model.keys().nth(rng.random_range(0..model.len())).unwrap();
                model.remove(&slot);
                index.remove(&arena, slot);
                arena.free(slot);
            } else {
                let slot = (0..).map(Slot).find(|slot| !model.contains_key(slot)).unwrap();
                let signature = signature(&mut rng);
                arena.publish(slot, Seq(seq), &signature, 0, false);
                index.insert(&arena, slot);
                model.insert(slot, signature);
            }
            let query = signature(&mut rng);
            let probe = probe(&index, &arena, &query, usize::MAX);
            let found: BTreeSet<Slot> = probe.hits.iter().copied().collect();
            let shares = |held: &[u8]| (0..12).any(|band| held[band * 5..][..5] == query[band * 5..][..5]);
            let expected: BTreeSet<Slot> =
                model.iter().filter(|(_, held)| shares(held)).map(|(slot, _)| *slot).collect();
            assert_eq!(found, expected);
            assert!(probe.complete);
        }
        for slot in model.into_keys().collect::<Vec<_>>() {
            index.remove(&arena, slot);
            arena.free(slot);
        }
        assert_eq!((index.sizes().buckets(), index.sizes().largest()), (0, 0));
    }

    #[test]
    fn building_in_parallel_gives_the_same_buckets() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let arena = Arena::new(SHAPE);
        let (one_by_one, at_once) = (BandIndex::new(banding(), SHAPE), BandIndex::new(banding(), SHAPE));
        let slots: Vec<Slot> = (0..5000).map(Slot).collect();
        for &slot in &slots {
            arena.publish(slot, Seq(u64::from(slot.0) + 1), &signature(&mut rng), 0, false);
            one_by_one.insert(&arena, slot);
        }
        at_once.insert_all(&arena, &slots, |_| {});
        for _ in 0..100 {
            let query = signature(&mut rng);
            let hits = |index| {
                let mut hits = probe(index, &arena, &query, usize::MAX).hits;
                hits.sort();
                hits
            };
            assert_eq!(hits(&one_by_one), hits(&at_once));
        }
    }

    #[test]
    fn a_capped_bucket_says_so_and_shows_other_members_in_other_bands() {
        let arena = Arena::new(SHAPE);
        let index = BandIndex::new(banding(), SHAPE);
        for slot in 0..1000 {
            arena.publish(Slot(slot), Seq(u64::from(slot) + 1), &[3; 64], 0, false);
            index.insert(&arena, Slot(slot));
        }
        let probe = probe(&index, &arena, &[3; 64], 64);
        assert!(!probe.complete);
        assert_eq!(probe.hits.len(), 64 * 12);
        let distinct: BTreeSet<Slot> = probe.hits.iter().copied().collect();
        assert!(distinct.len() > 64 * 11, "only {} distinct members read", distinct.len());
        assert!(distinct.iter().next().unwrap().0 < 20 && distinct.iter().last().unwrap().0 > 980);
    }
}
