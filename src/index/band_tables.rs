//! Band key -> places, without storing the keys. A posting is a 32-bit place and an 8-bit tag (`table.rs`). Its key is
//! computed from the signature in the [`Arena`]. Each band has a table of its own. Documents with equal signatures
//! would be in the same buckets of every band, so they share the postings of one of them (`equals.rs`). This file adds
//! and removes documents; `bucket_reads.rs` looks them up.

use std::ops::Deref;

use hapax_core::{Banding, SignatureShape};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use rayon::prelude::*;
use smallvec::SmallVec;

use super::arena::Arena;
use super::bands::{BANDS, Bands};
use super::equals::Equals;
use super::flags::Flag;
use super::place::Place;
use super::pool::{Bucket, Pool};
use super::seed::Seed;
use super::shard::Shard;
use super::table::Table;

/// The postings of documents under one banding.
pub(super) struct BandTables {
    bands: Bands,
    tables: Box<[Table]>,
    pool: Pool,
    equals: Equals,
}

impl BandTables {
    pub(super) fn new(banding: Banding, shape: SignatureShape, seed: Seed) -> Self {
        let bands = banding.bands() as usize;
        Self {
            bands: Bands::new(banding, shape, seed),
            tables: (0..bands).map(|band| Table::new(band, bands)).collect(),
            pool: Pool::default(),
            equals: Equals::new(seed),
        }
    }

    /// Returns the bands of this banding.
    #[inline]
    pub(super) fn bands(&self) -> &Bands {
        &self.bands
    }

    /// Returns the table of each band.
    pub(super) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the index of documents by their whole signatures.
    #[inline]
    pub(super) fn equals(&self) -> &Equals {
        &self.equals
    }

    /// Locks the shards of some keys, one key per band, for reading.
    #[inline]
    pub(super) fn shards(&self, keys: &[u64]) -> SmallVec<[RwLockReadGuard<'_, Shard>; BANDS]> {
        self.prefetch_shards(keys);
        self.tables.iter().zip(keys).map(|(table, &key)| table.read(key)).collect()
    }

    /// Locks the shard of a key of one band for reading.
    pub(super) fn shard(&self, band: usize, key: u64) -> RwLockReadGuard<'_, Shard> {
        self.tables[band].read(key)
    }

    /// Returns the bytes of all postings, lists and groups.
    pub(super) fn bytes(&self) -> u64 {
        self.pool.bytes() + self.equals.bytes()
    }

    /// Removes the posting of a place in one band, as if it was lost.
    #[cfg(all(test, not(hapax_loom)))]
    pub(super) fn lose(&self, arena: &Arena, band: usize, place: Place) {
        let rows = &self.bands.rows()[band];
        let (key, same) = (rows.key_of(arena, place), |held| rows.equal_of(arena, place, held));
        assert!(self.tables[band].remove(&self.pool, key, place, same, &rows.keys(arena)));
    }

    /// Returns the number of postings in all bands.
    #[cfg(all(test, not(hapax_loom)))]
    pub(super) fn postings(&self, arena: &Arena) -> usize {
        let mut postings = 0;
        for (table, rows) in self.tables.iter().zip(self.bands.rows()) {
            table.for_each_list(|list| postings += list.len());
            table.for_each_few(&rows.keys(arena), |places| postings += places.len());
        }
        postings
    }

    // The functions that change the tables follow. Only one change may run at a time.

    /// Adds a published place that is not in these tables yet. A place that is not `findable`, such as a link, gets no
    /// postings, and only a lookup of its whole signature finds it.
    pub(super) fn insert(&self, arena: &Arena, place: Place, findable: bool) {
        self.equals.flags().enter(place, findable);
        let key = self.equals.prefetch_of(arena, place);
        // Requests the memory of the bands while the memory that the line above requested is fetched.
        let keys = if findable { self.keys_of(arena, place) } else { SmallVec::new() };
        match self.equals.leader_or_add(arena, &self.pool, key, place) {
            None if findable => self.post(arena, place, &keys),
            None => {}
            Some(leader) => {
                self.equals.join(arena, leader, place);
                self.lead_if_first(arena, leader, place);
            }
        }
    }

    /// Adds many places to an empty index, in parallel. `done` is called with the number of postings placed. The places
    /// must be published.
    pub(super) fn insert_all(
        &self,
        arena: &Arena,
        places: &[Place],
        findable: impl Fn(Place) -> bool + Sync,
        done: impl Fn(usize) + Sync,
    ) {
        places.iter().for_each(|&place| self.equals.flags().enter(place, findable(place)));
        let leaders = self.join_equals(arena, places);
        let posted: Vec<Place> = leaders.iter().copied().filter(|&place| self.is_findable(place)).collect();
        posted.iter().for_each(|&place| self.equals.flags().set(place, Flag::Posted, true));
        let band = |band: usize| {
            let rows = &self.bands.rows()[band];
            let same = |a, b| rows.equal_of(arena, a, b);
            self.tables[band].fill(&self.pool, &posted, same, &rows.keys(arena), &done);
        };
        rayon::join(
            || self.equals.place_all(arena, &self.pool, &leaders),
            || (0..self.tables.len()).into_par_iter().for_each(band),
        );
    }

    /// Removes a place. Call it before the place is freed. Does nothing if the place is not in these tables.
    pub(super) fn remove(&self, arena: &Arena, place: Place) {
        let Some(leader) = self.here(place).then(|| self.equals.leader(arena, place)).flatten() else { return };
        match self.equals.led_by(leader) {
            None => {
                self.equals.not_alone(arena, &self.pool, place);
                self.unpost(arena, place);
            }
            Some(group) => {
                let mut leads = leader;
                if leader == place {
                    leads = group.heir(place).expect("a group has several members");
                    self.hand_over(arena, place, leads);
                }
                self.equals.part(arena, leads, &group, place);
            }
        }
        self.equals.flags().clear(place);
    }

    /// Changes whether a place in these tables can be found by its bands.
    pub(super) fn set_findable(&self, arena: &Arena, place: Place, findable: bool) {
        let Some(leader) = self.here(place).then(|| self.equals.leader(arena, place)).flatten() else { return };
        if self.is_findable(place) == findable {
            return;
        }
        self.equals.flags().set(place, Flag::Findable, findable);
        match self.equals.led_by(leader) {
            None if findable => self.post(arena, place, &self.keys_of(arena, place)),
            None => self.unpost(arena, place),
            Some(group) => {
                self.equals.set_findable(arena, &group, place, findable);
                if findable {
                    self.lead_if_first(arena, leader, place);
                } else if leader == place {
                    let heir = group.heir(place).expect("a group has several members");
                    self.hand_over(arena, place, heir);
                }
            }
        }
    }

    /// Resizes one shard that is nearly full or sparse. Returns whether there was such a shard. May run at the same
    /// time as a change: a place keeps its row until it has been removed from the shard.
    pub(super) fn resize_next(&self, arena: &Arena) -> bool {
        let mut bands = self.tables.iter().zip(self.bands.rows());
        bands.any(|(table, rows)| table.resize_next(&self.pool, &rows.keys(arena)))
            || self.equals.resize_next(arena, &self.pool)
    }

    /// Returns whether a place is in these tables.
    pub(super) fn here(&self, place: Place) -> bool {
        self.equals.flags().has(place, Flag::Here)
    }

    /// Returns whether a place in these tables can be found by its bands.
    pub(super) fn is_findable(&self, place: Place) -> bool {
        self.equals.flags().has(place, Flag::Findable)
    }

    /// Prefetches the shards of some keys, one key per band.
    #[inline]
    fn prefetch_shards(&self, keys: &[u64]) {
        self.tables.iter().zip(keys).for_each(|(table, &key)| table.prefetch(key));
    }

    /// Returns the keys of a place, one per band, for [`Self::post`], and prefetches their shards.
    fn keys_of(&self, arena: &Arena, place: Place) -> SmallVec<[u64; BANDS]> {
        let keys = self.bands.keys_of(arena, place);
        self.prefetch_shards(&keys);
        keys
    }

    /// Adds the postings of a place. The work on a band has several stages, and each stage prefetches the memory that
    /// the next one needs. While the memory of one band is fetched, other bands are worked on. All locks are held to
    /// the end, so that a lookup that locks all shards finds the place in all of its bands or in none.
    fn post(&self, arena: &Arena, place: Place, keys: &[u64]) {
        // Each later stage works on a band this many turns after the first stage has worked on the same band.
        const HOME_AFTER: usize = 4;
        const OVERFLOW_AFTER: usize = 12;
        const INSERT_AFTER: usize = 16;
        let (rows, tables, bands) = (self.bands.rows(), &*self.tables, keys.len());
        let mut shards: SmallVec<[RwLockWriteGuard<'_, Shard>; BANDS]> = SmallVec::with_capacity(bands);
        for turn in 0..bands + INSERT_AFTER {
            if let Some(&key) = keys.get(turn) {
                let shard = tables[turn].with_room(&self.pool, key, &rows[turn].keys(arena));
                shard.prefetch_page(key);
                shards.push(shard);
            }
            let band = turn.wrapping_sub(HOME_AFTER);
            if let Some(shard) = shards.get(band) {
                shard.prefetch_home(keys[band]);
            }
            let band = turn.wrapping_sub(OVERFLOW_AFTER);
            if let Some(shard) = shards.get(band) {
                shard.prefetch_overflow(keys[band]);
            }
            let band = turn.wrapping_sub(INSERT_AFTER);
            if let Some(shard) = shards.get_mut(band) {
                let same = |held| rows[band].equal_of(arena, place, held);
                shard.insert(&self.pool, keys[band], place, same, |place| arena.seq(place));
            }
        }
        self.equals.flags().set(place, Flag::Posted, true);
    }

    /// Removes the postings of a place, if it has any.
    fn unpost(&self, arena: &Arena, place: Place) {
        if !self.equals.flags().has(place, Flag::Posted) {
            return;
        }
        let (rows, keys) = (self.bands.rows(), self.bands.keys_of(arena, place));
        for (band, &key) in keys.iter().enumerate() {
            let same = |held| rows[band].equal_of(arena, place, held);
            let removed = self.tables[band].remove(&self.pool, key, place, same, &rows[band].keys(arena));
            assert!(removed, "a place that is posted has a posting in every band");
        }
        self.equals.flags().set(place, Flag::Posted, false);
    }

    /// Makes a place the leader of its group, with postings, if it is the first member that can be found by its bands.
    fn lead_if_first(&self, arena: &Arena, leader: Place, place: Place) {
        if !self.is_findable(place) || self.equals.flags().has(leader, Flag::Posted) {
            return;
        }
        self.post(arena, place, &self.keys_of(arena, place));
        if leader != place {
            self.equals.hand_over(arena, &self.pool, leader, place);
        }
    }

    /// Makes `heir` the leader of the group that `place` leads. If the heir can be found by its bands, it gets all
    /// postings at once, with the shards of all keys locked. A lookup that meets one of the postings holds the lock of
    /// its shard, so it sees the group either under the old leader or under the new one. No other lookup is blocked.
    fn hand_over(&self, arena: &Arena, place: Place, heir: Place) {
        if !self.is_findable(heir) {
            self.unpost(arena, place);
            if heir != place {
                self.equals.hand_over(arena, &self.pool, place, heir);
            }
            return;
        }
        let (rows, keys) = (self.bands.rows(), self.bands.keys_of(arena, place));
        let mut shards: SmallVec<[_; BANDS]> =
            self.tables.iter().zip(&keys).map(|(table, &key)| table.write(key)).collect();
        for ((shard, rows), &key) in shards.iter_mut().zip(rows).zip(&keys) {
            let same = |held| rows.equal_of(arena, place, held);
            shard.replace(&self.pool, key, (place, heir), same, |place| arena.seq(place));
        }
        self.equals.flags().set(heir, Flag::Posted, true);
        self.equals.flags().set(place, Flag::Posted, false);
        self.equals.hand_over(arena, &self.pool, place, heir);
    }

    /// Finds equal signatures among many places, and returns the leaders.
    fn join_equals(&self, arena: &Arena, places: &[Place]) -> Vec<Place> {
        // For a moment, this takes 8 bytes per document: its place and a 32-bit hash.
        let mut hashed: Vec<u64> = places.par_iter().map(|&place| self.equals.hashed(arena, place)).collect();
        hashed.par_sort_unstable();
        let mut leaders: Vec<Place> = Vec::with_capacity(places.len());
        self.equals.add_all(arena, &hashed, &mut leaders);
        leaders.sort_unstable();
        leaders
    }
}

/// Prefetches the buckets of some keys, one key per band. Each step requests everything it needs at once, because many
/// simultaneous memory accesses take little longer than one.
#[inline]
pub(super) fn prefetch_homes<'a>(
    shards: &'a [impl Deref<Target = Shard>],
    keys: &[u64],
) -> SmallVec<[Option<&'a Bucket>; BANDS]> {
    shards.iter().zip(keys).for_each(|(shard, &key)| shard.prefetch_page(key));
    let homes: SmallVec<_> = shards.iter().zip(keys).map(|(shard, &key)| shard.prefetch_home(key)).collect();
    shards.iter().zip(keys).for_each(|(shard, &key)| shard.prefetch_overflow(key));
    homes
}
