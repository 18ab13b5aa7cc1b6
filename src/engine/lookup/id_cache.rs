//! (collection, `seq`) -> the facts about a document that answers need and that never change: its id, its content hash,
//! its first-seen time. With these facts, a lookup can name a match without reading the disk. In: the facts of
//! documents that are on disk. Out: the same facts, if they are still in the cache. The cache knows nothing of files,
//! and an entry may be gone at any time. An entry is never wrong: an open collection assigns each `seq` to only one
//! document.
//!
//! All collections share one limit of bytes. Entries lie one after another in segments. If the limit is reached, the
//! oldest segment is dropped. The entries that lookups have used are copied from it to a new segment, and may fill up
//! to half of the new segment. If more than a quarter of the bytes belong to documents that are gone, the oldest
//! segment is dropped, too, and all entries of other documents are copied.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax_core::ContentHash;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use crate::types::{DocId, ID_BYTES_MAX, Seq, TimestampMs};

/// The size of a shard in bytes. Each shard has its own lock, which is held while the table of the shard grows. Shards
/// are small, because a small table grows fast.
const SHARD_BYTES: u64 = 1 << 20;
/// The minimum and the maximum number of shards.
const SHARDS: [u64; 2] = [4, 1 << 14];
const OFFSET_BITS: u32 = 14;
const SEGMENT_BYTES: usize = 1 << OFFSET_BITS;
/// The number of segment numbers. After the last one, numbering begins at 0 again.
const NUMBERS: u32 = 1 << (u32::BITS - OFFSET_BITS);
/// The bytes of an entry before its id.
const HEAD_BYTES: usize = 39;
/// The average number of bytes that an entry takes in the table of its shard.
const TABLE_BYTES: usize = 8;
/// The maximum number of bytes that are copied from old segments to a new one. The largest entry must fit into the
/// remainder.
const KEPT_BYTES_MAX: usize = SEGMENT_BYTES / 2;
const _: () = assert!(KEPT_BYTES_MAX + HEAD_BYTES + ID_BYTES_MAX <= SEGMENT_BYTES);

/// Facts about a document. Answers need them, and they never change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    /// The client's name for the document.
    pub id: DocId,
    /// The hash of the canonical text; meaningless if the client gave the signature.
    pub content: ContentHash,
    /// When this content was first stored under the id.
    pub first_seen: TimestampMs,
}

/// The identities of documents of all collections.
pub(crate) struct IdCache {
    shards: Box<[Mutex<Shard>]>,
    /// The maximum size of one shard in bytes. 0 means that nothing is kept.
    shard_bytes_max: usize,
    hasher: DefaultHashBuilder,
    /// The number of the next collection that is opened.
    next: AtomicU32,
}

/// The part of the cache that belongs to one open collection.
pub(crate) struct CollectionIds {
    cache: Arc<IdCache>,
    collection: u32,
}

impl IdCache {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        let [least, most] = SHARDS;
        let shards = (bytes_max / SHARD_BYTES).next_power_of_two().clamp(least, most);
        let shard_bytes_max = usize::try_from(bytes_max / shards).unwrap_or(usize::MAX);
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Arc::new(Self { shards, shard_bytes_max, hasher: DefaultHashBuilder::default(), next: AtomicU32::new(0) })
    }

    /// Makes the part of the cache for a collection that has just been opened.
    pub(crate) fn of_collection(self: &Arc<Self>) -> CollectionIds {
        CollectionIds { cache: Arc::clone(self), collection: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the shard of a document.
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // This uses other bits of the hash than the table of the shard, which uses the highest and the lowest bits.
        &self.shards[(hash >> 32) as usize % self.shards.len()]
    }
}

impl CollectionIds {
    pub(crate) fn get(&self, seq: Seq) -> Option<Identity> {
        let key = Key { collection: self.collection, seq };
        let hash = self.cache.hasher.hash_one(key);
        self.cache.shard(hash).lock().get(key, hash)
    }

    /// Keeps the identity of a document that is on disk.
    pub(crate) fn keep(&self, seq: Seq, identity: &Identity) {
        let IdCache { shard_bytes_max, hasher, .. } = &*self.cache;
        if *shard_bytes_max == 0 {
            return;
        }
        let key = Key { collection: self.collection, seq };
        let hash = hasher.hash_one(key);
        let mut shard = self.cache.shard(hash).lock();
        if shard.find(key, hash).is_none() {
            shard.make_room(HEAD_BYTES + identity.id.as_str().len(), *shard_bytes_max, hasher);
            let at = shard.log.append(key, identity);
            shard.enter(at, hasher);
        }
    }

    /// Forgets a document that is gone.
    pub(crate) fn forget(&self, seq: Seq) {
        let key = Key { collection: self.collection, seq };
        let hash = self.cache.hasher.hash_one(key);
        self.cache.shard(hash).lock().forget(key, hash);
    }

    /// Returns the bytes that the documents of the collection take.
    pub(crate) fn bytes(&self) -> u64 {
        let of_collection = |shard: &Mutex<Shard>| shard.lock().bytes.get(&self.collection).copied().unwrap_or(0);
        self.cache.shards.iter().map(of_collection).sum::<usize>() as u64
    }
}

impl Drop for CollectionIds {
    fn drop(&mut self) {
        self.cache.shards.iter().for_each(|shard| shard.lock().forget_all(self.collection));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    collection: u32,
    seq: Seq,
}

/// The place of an entry: the number of its segment, and its offset there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct At(u32);

#[derive(Default)]
struct Shard {
    log: Log,
    /// Finds entries by their keys.
    table: HashTable<At>,
    /// The bytes that the documents of each open collection take.
    bytes: HashMap<u32, usize>,
    /// The bytes of documents that are gone, or whose collections are gone, until their segments are dropped.
    gone_bytes: usize,
}

impl Shard {
    fn find(&self, key: Key, hash: u64) -> Option<At> {
        self.table.find(hash, |&at| self.log.key(at) == key).copied()
    }

    fn get(&mut self, key: Key, hash: u64) -> Option<Identity> {
        let at = self.find(key, hash)?;
        self.log.mark(at, Mark::Asked);
        Some(self.log.identity(at))
    }

    /// Adds an entry of the log to the table.
    fn enter(&mut self, at: At, hasher: &DefaultHashBuilder) {
        let Self { log, table, bytes, .. } = self;
        let key = log.key(at);
        table.insert_unique(hasher.hash_one(key), at, |&at| hasher.hash_one(log.key(at)));
        *bytes.entry(key.collection).or_default() += log.cost(at);
    }

    /// Removes an entry of the log from the table.
    fn leave(&mut self, at: At, hash: u64) {
        if let Ok(found) = self.table.find_entry(hash, |&other| other == at) {
            found.remove();
        }
        let collection = self.log.key(at).collection;
        if let Some(bytes) = self.bytes.get_mut(&collection) {
            *bytes -= self.log.cost(at);
        }
    }

    fn forget(&mut self, key: Key, hash: u64) {
        if let Some(at) = self.find(key, hash) {
            self.leave(at, hash);
            self.log.mark(at, Mark::Gone);
            self.gone_bytes += self.log.cost(at);
        }
    }

    /// Forgets all documents of a collection. Their entries leave the table when their segments are dropped.
    fn forget_all(&mut self, collection: u32) {
        self.gone_bytes += self.bytes.remove(&collection).unwrap_or(0);
    }

    /// Begins a segment if the newest one has no room for an entry of `len` bytes.
    fn make_room(&mut self, len: usize, bytes_max: usize, hasher: &DefaultHashBuilder) {
        while !self.log.has_room(len) {
            self.log.begin_segment();
            while self.log.segments.len() > 1 && self.log.bytes() + self.table.allocation_size() > bytes_max {
                self.drop_oldest(KEPT_BYTES_MAX, |mark| mark == Mark::Asked, hasher);
            }
            if self.log.segments.len() > 1 && self.gone_bytes > (self.log.bytes() + self.table.allocation_size()) / 4 {
                self.drop_oldest(SEGMENT_BYTES, |_| true, hasher);
            }
        }
    }

    /// Drops the oldest segment. Copies the entries that `keeps` selects to the newest segment, until that segment has
    /// `bytes_max` bytes.
    fn drop_oldest(&mut self, bytes_max: usize, keeps: impl Fn(Mark) -> bool, hasher: &DefaultHashBuilder) {
        let mut at = self.log.oldest();
        while let Some(entry) = at {
            at = self.log.after(entry);
            let (mark, key) = (self.log.mark_of(entry), self.log.key(entry));
            if mark != Mark::Gone {
                self.leave(entry, hasher.hash_one(key));
            }
            if mark == Mark::Gone || !self.bytes.contains_key(&key.collection) {
                self.gone_bytes -= self.log.cost(entry);
            } else if keeps(mark) && self.log.newest_bytes() + self.log.len(entry) <= bytes_max {
                let kept = self.log.copy(entry);
                self.log.mark(kept, Mark::New);
                self.enter(kept, hasher);
            }
        }
        self.log.drop_oldest();
    }
}

/// The state of an entry since it was added or copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing has happened to the entry.
    New,
    /// A lookup has read the entry.
    Asked,
    /// Its document is gone.
    Gone,
}

/// The entries in the order in which they were added. An entry consists of its mark (1 byte), the length of the id (2),
/// the collection (4), `seq` (8), the first-seen time (8), the content hash (16) and the id.
#[derive(Default)]
struct Log {
    segments: VecDeque<Vec<u8>>,
    /// The number of the oldest segment.
    first: u32,
}

impl Log {
    /// Returns the bytes of an entry and all bytes that follow it in its segment.
    fn entry(&self, at: At) -> &[u8] {
        let (segment, offset) = self.place(at);
        &self.segments[segment][offset..]
    }

    /// Returns the index of the segment that an entry is in, and the offset of the entry in the segment.
    fn place(&self, At(at): At) -> (usize, usize) {
        let segment = (at >> OFFSET_BITS).wrapping_sub(self.first) % NUMBERS;
        (segment as usize, at as usize % SEGMENT_BYTES)
    }

    fn mark_of(&self, at: At) -> Mark {
        [Mark::New, Mark::Asked, Mark::Gone][usize::from(self.entry(at)[0])]
    }

    fn mark(&mut self, at: At, mark: Mark) {
        let (segment, offset) = self.place(at);
        self.segments[segment][offset] = mark as u8;
    }

    fn len(&self, at: At) -> usize {
        HEAD_BYTES + usize::from(u16::from_le_bytes(field(self.entry(at), 1)))
    }

    /// Returns the memory that an entry takes, in bytes.
    fn cost(&self, at: At) -> usize {
        self.len(at) + TABLE_BYTES
    }

    fn key(&self, at: At) -> Key {
        let entry = self.entry(at);
        Key { collection: u32::from_le_bytes(field(entry, 3)), seq: Seq(u64::from_le_bytes(field(entry, 7))) }
    }

    fn identity(&self, at: At) -> Identity {
        let entry = self.entry(at);
        let id = std::str::from_utf8(&entry[HEAD_BYTES..self.len(at)]).expect("it was an id");
        Identity {
            id: DocId::new(id).expect("it was an id"),
            content: ContentHash(u128::from_le_bytes(field(entry, 23))),
            first_seen: TimestampMs(i64::from_le_bytes(field(entry, 15))),
        }
    }

    fn has_room(&self, len: usize) -> bool {
        self.segments.back().is_some_and(|newest| newest.len() + len <= SEGMENT_BYTES)
    }

    fn begin_segment(&mut self) {
        // The first segment grows with its entries, because a small collection has few entries in each shard.
        let capacity = if self.segments.is_empty() { 0 } else { SEGMENT_BYTES };
        self.segments.push_back(Vec::with_capacity(capacity));
    }

    /// Adds an entry to the newest segment, which has room for it.
    fn append(&mut self, key: Key, identity: &Identity) -> At {
        let Identity { id, content, first_seen } = identity;
        let at = self.end();
        let segment = self.segments.back_mut().expect("a segment has been begun");
        segment.push(Mark::New as u8);
        segment.extend((id.as_str().len() as u16).to_le_bytes());
        segment.extend(key.collection.to_le_bytes());
        segment.extend(key.seq.0.to_le_bytes());
        segment.extend(first_seen.0.to_le_bytes());
        segment.extend(content.0.to_le_bytes());
        segment.extend_from_slice(id.as_str().as_bytes());
        at
    }

    /// Copies an entry of the oldest segment to the end of the newest one.
    fn copy(&mut self, at: At) -> At {
        let (copied, len) = (self.end(), self.len(at));
        let mut newest = self.segments.pop_back().expect("a segment has been begun");
        newest.extend_from_slice(&self.entry(at)[..len]);
        self.segments.push_back(newest);
        copied
    }

    /// Returns the place after the newest entry.
    fn end(&self) -> At {
        let number = self.first.wrapping_add(self.segments.len() as u32 - 1) % NUMBERS;
        At(number << OFFSET_BITS | self.newest_bytes() as u32)
    }

    /// Returns the bytes in the newest segment.
    fn newest_bytes(&self) -> usize {
        self.segments.back().map_or(0, Vec::len)
    }

    /// Returns the first entry of the oldest segment.
    fn oldest(&self) -> Option<At> {
        self.segments.front().filter(|oldest| !oldest.is_empty()).map(|_| At(self.first << OFFSET_BITS))
    }

    /// Returns the next entry of the same segment.
    fn after(&self, at: At) -> Option<At> {
        let len = self.len(at);
        (self.entry(at).len() > len).then(|| At(at.0 + len as u32))
    }

    fn drop_oldest(&mut self) {
        self.segments.pop_front();
        self.first = self.first.wrapping_add(1) % NUMBERS;
    }

    fn bytes(&self) -> usize {
        self.segments.len() * SEGMENT_BYTES
    }
}

/// Returns the bytes of a field that begins at `from`.
fn field<const N: usize>(entry: &[u8], from: usize) -> [u8; N] {
    *entry[from..].first_chunk().expect("entries are whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(cache: &Arc<IdCache>) -> CollectionIds {
        cache.of_collection()
    }

    /// Makes an id of 1 to 200 bytes, and the other facts, from `seq`.
    fn identity(seq: u64) -> Identity {
        let id = DocId::new(format!("{seq:0width$}", width = 1 + (seq * 7919 % 200) as usize)).expect("an id");
        Identity { id, content: ContentHash(u128::from(seq) << 70 | 5), first_seen: TimestampMs(-(seq as i64)) }
    }

    fn entry_bytes(seq: u64) -> u64 {
        (HEAD_BYTES + identity(seq).id.as_str().len() + TABLE_BYTES) as u64
    }

    fn keep(ids: &CollectionIds, seq: u64) {
        ids.keep(Seq(seq), &identity(seq));
    }

    #[test]
    fn each_collection_gets_what_it_kept() {
        let cache = IdCache::new(8 << 20);
        let [a, b] = [collection(&cache), collection(&cache)];
        (0..1000).for_each(|seq| keep(&a, seq));
        keep(&b, 7);
        keep(&b, 7);
        assert!((0..1000).all(|seq| a.get(Seq(seq)) == Some(identity(seq))));
        assert_eq!(b.get(Seq(7)), Some(identity(7)));
        assert_eq!((a.get(Seq(1000)), b.get(Seq(8))), (None, None));
        assert_eq!((a.bytes(), b.bytes()), ((0..1000).map(entry_bytes).sum(), entry_bytes(7)));
    }

    #[test]
    fn the_oldest_give_way_except_those_that_are_asked_for() {
        const BYTES: u64 = 4 << 20;
        let cache = IdCache::new(BYTES);
        let ids = collection(&cache);
        let is_asked = |seq: u64| seq.is_multiple_of(100) && seq < 10_000;
        for seq in 0..200_000 {
            keep(&ids, seq);
            if seq % 500 == 0 {
                let asked = (0..=seq.min(10_000)).filter(|seq| is_asked(*seq));
                asked.for_each(|seq| assert_eq!(ids.get(Seq(seq)), Some(identity(seq))));
            }
        }
        let held = (0..200_000).filter(|seq| ids.get(Seq(*seq)).is_some());
        let (asked, others): (Vec<_>, Vec<_>) = held.partition(|seq| is_asked(*seq));
        assert_eq!(asked.len(), 100);
        let [asked, taken] = [asked, others.clone()].map(|seqs| seqs.into_iter().map(entry_bytes).sum::<u64>());
        assert!(others[0] > 150_000 && taken > BYTES / 2, "{} from {}, {taken} bytes", others.len(), others[0]);
        assert_eq!(ids.bytes(), asked + taken);
        let shards = cache.shards.iter().map(|shard| {
            let shard = shard.lock();
            shard.log.bytes() + shard.table.allocation_size()
        });
        assert!(shards.sum::<usize>() as u64 <= BYTES);
    }

    #[test]
    fn documents_and_collections_that_are_gone_make_room() {
        let cache = IdCache::new(64 << 20);
        let (ids, dropped) = (collection(&cache), collection(&cache));
        let taken = || cache.shards.iter().map(|shard| shard.lock().log.bytes() as u64).sum::<u64>();
        (0..50_000).for_each(|seq| keep(&dropped, seq));
        drop(dropped);
        // Every tenth document stays. Each other document is forgotten after 1,000 more have been added.
        let stays = |seq: u64| seq.is_multiple_of(10);
        for seq in 0..300_000_u64 {
            keep(&ids, seq);
            if let Some(gone) = seq.checked_sub(1000).filter(|seq| !stays(*seq)) {
                ids.forget(Seq(gone));
                assert_eq!(ids.get(Seq(gone)), None);
            }
        }
        let expected: u64 = (0..300_000).filter(|seq| stays(*seq) || *seq >= 299_000).map(entry_bytes).sum();
        assert_eq!(ids.bytes(), expected);
        let free = cache.shards.len() as u64 * 2 * SEGMENT_BYTES as u64;
        assert!(taken() <= 2 * expected + free, "{} for {expected}", taken());
        assert!((0..300_000).filter(|seq| stays(*seq)).all(|seq| ids.get(Seq(seq)) == Some(identity(seq))));
    }

    #[test]
    fn the_numbers_of_segments_begin_again() {
        let cache = IdCache::new(2 << 20);
        let ids = collection(&cache);
        cache.shards.iter().for_each(|shard| shard.lock().log.first = NUMBERS - 3);
        for seq in 0..100_000 {
            keep(&ids, seq);
            assert_eq!(ids.get(Seq(seq)), Some(identity(seq)));
        }
        assert!(cache.shards.iter().all(|shard| shard.lock().log.first < NUMBERS - 3));
        let held = (0..100_000).filter_map(|seq| Some((seq, ids.get(Seq(seq))?)));
        held.for_each(|(seq, found)| assert_eq!(found, identity(seq)));
    }

    #[test]
    fn a_cache_without_bytes_keeps_nothing() {
        let cache = IdCache::new(0);
        let ids = collection(&cache);
        keep(&ids, 1);
        assert_eq!((ids.get(Seq(1)), ids.bytes()), (None, 0));
    }
}
