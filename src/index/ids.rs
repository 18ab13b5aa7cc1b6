//! Document id -> place, by a 64-bit fingerprint of the id. Ids are long and are kept in the store. Two ids may share a
//! fingerprint, so a place found here is a guess that the caller confirms with the record. The fingerprints are in the
//! [`Arena`]. The table in this file contains only places.

use smallvec::SmallVec;

use super::arena::Arena;
use super::place::Place;
use super::pool::Pool;
use super::seed::Seed;
use super::shard::Keys;
use super::table::Table;
use crate::types::Seq;

/// A multimap of fingerprints to places.
pub(super) struct IdIndex {
    table: Table,
    pool: Pool,
    mask: u64,
    seed: Seed,
}

struct IdKeys<'a> {
    mask: u64,
    seed: Seed,
    arena: &'a Arena,
}

impl IdKeys<'_> {
    fn key_of(&self, fingerprint: u64) -> u64 {
        // Fingerprints are hashes already, but clients can choose them.
        self.seed.key(fingerprint & self.mask)
    }
}

impl Keys for IdKeys<'_> {
    fn key(&self, place: Place) -> u64 {
        self.key_of(self.arena.id_fingerprint(place))
    }

    fn order(&self, place: Place) -> Seq {
        self.arena.seq(place)
    }

    fn prefetch(&self, place: Place) {
        self.arena.prefetch_head(place);
    }
}

impl IdIndex {
    /// Makes an index that distinguishes ids by 1 to 64 bits of their fingerprints.
    pub(super) fn new(bits: u32, seed: Seed) -> Self {
        Self { table: Table::new(0, 1), pool: Pool::default(), mask: u64::MAX >> (64 - bits), seed }
    }

    /// Prefetches the bucket of an id, for [`Self::insert`].
    pub(super) fn prefetch(&self, arena: &Arena, fingerprint: u64) {
        let key = self.keys(arena).key_of(fingerprint);
        self.table.read(key).prefetch_home(key);
    }

    /// Adds a published place.
    pub(super) fn insert(&self, arena: &Arena, place: Place) {
        let keys = self.keys(arena);
        let key = keys.key(place);
        self.table.insert(&self.pool, key, place, |held| keys.key(held) == key, &keys);
    }

    /// Removes a place. Call it before the place is freed.
    pub(super) fn remove(&self, arena: &Arena, place: Place) {
        let keys = self.keys(arena);
        let key = keys.key(place);
        self.table.remove(&self.pool, key, place, |held| keys.key(held) == key, &keys);
    }

    /// Returns every place whose document may have the id with this fingerprint. The result is a copy, so no lock is
    /// held.
    pub(super) fn candidates(&self, arena: &Arena, fingerprint: u64) -> SmallVec<[Place; 8]> {
        let keys = self.keys(arena);
        let key = keys.key_of(fingerprint);
        let shard = self.table.read(key);
        shard.members(key, |held| keys.key(held) == key).iter().collect()
    }

    /// Resizes one shard of the table, if a shard is due. Returns whether one was due.
    pub(super) fn resize_next(&self, arena: &Arena) -> bool {
        self.table.resize_next(&self.pool, &self.keys(arena))
    }

    /// Returns the bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    fn keys<'a>(&self, arena: &'a Arena) -> IdKeys<'a> {
        IdKeys { mask: self.mask, seed: self.seed, arena }
    }
}
