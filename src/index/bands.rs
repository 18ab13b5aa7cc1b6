//! Band key -> places, without storing the keys.
//! A posting is a 32-bit place and an 8-bit tag (`table.rs`); which key it stands for is seen from the signature in the
//! [`Arena`]. Each band has a table of its own. Documents with equal signatures would be in the same buckets of every
//! band: they share the postings of one of them (`equals.rs`).

use std::ops::Deref;
use std::sync::Arc;

use hapax_core::{Banding, SignatureShape};
use parking_lot::RwLockReadGuard;
use rayon::prelude::*;
use smallvec::SmallVec;

use super::arena::words_of;
use super::equals::{Equals, Flag, Group, Twin};
use super::place::Place;
use super::pool::{Bucket as PostingBucket, Pool};
use super::rows::{BandKeys, Rows};
use super::seed::Seed;
use super::shard::Shard;
use super::table::Table;
use super::{Arena, BucketSizes};

/// Bands whose keys and shards are on the stack; more take a heap buffer.
const BANDS: usize = 32;
/// Postings of other keys that are looked at in one band, beside `per_key_max` of the query's. Tags of eight bits leave
/// fewer than one in a hundred, and the seed keeps clients from making more.
const OTHERS_MAX: usize = 64;

/// The band index of one collection under one banding.
pub struct BandIndex {
    pub(super) banding: Banding,
    pub(super) shape: SignatureShape,
    pub(super) rows: Box<[Rows]>,
    pub(super) tables: Box<[Table]>,
    pool: Pool,
    pub(super) equals: Equals,
    sizes: BucketSizes,
}

/// What probing all bands of a query found.
#[derive(Default)]
pub struct Probe {
    /// Each place that shares a band with the query, and how many bands it shares: those that have no equals.
    pub hits: Vec<Hit>,
    /// Groups of equal signatures that share a band with the query.
    pub groups: Vec<GroupHit>,
    /// The documents with the query's own signature, which are neither hits nor groups. No bound hides them.
    pub twin: Option<Twin>,
    /// Postings that were not read: a document may be counted once for each band.
    pub unread: u64,
    /// Documents in the fullest bucket among the query's keys.
    pub fullest: usize,
    keys: Vec<u64>,
    words: Vec<u64>,
    pub(super) found: Vec<(u32, u32)>,
    places: Vec<Place>,
}

/// A place that shares bands with a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Which.
    pub place: Place,
    /// How many bands.
    pub bands: u32,
}

/// A group of equal signatures that shares bands with a query.
#[derive(Clone)]
pub struct GroupHit {
    /// Its leader when it was found.
    pub leader: Place,
    /// How many bands.
    pub bands: u32,
    /// Which.
    pub group: Arc<Group>,
}

impl BandIndex {
    /// An index without postings.
    pub fn new(banding: Banding, shape: SignatureShape) -> Self {
        Self::seeded(banding, shape, Seed::of_process())
    }

    /// An index whose tables are the same in every process: for tests and measurements.
    pub fn with_seed(banding: Banding, shape: SignatureShape, seed: u64) -> Self {
        Self::seeded(banding, shape, Seed::fixed(seed))
    }

    /// An index without postings, under this seed.
    pub(super) fn seeded(banding: Banding, shape: SignatureShape, seed: Seed) -> Self {
        let bands = banding.bands() as usize;
        Self {
            banding,
            shape,
            rows: (0..banding.bands()).map(|band| Rows::new(banding.row_bytes(shape, band), seed)).collect(),
            tables: (0..bands).map(|band| Table::new(band, bands)).collect(),
            pool: Pool::default(),
            equals: Equals::new(seed),
            sizes: BucketSizes::default(),
        }
    }

    /// The banding it was made with.
    pub fn banding(&self) -> Banding {
        self.banding
    }

    /// The shape of its signatures.
    pub(super) fn shape(&self) -> SignatureShape {
        self.shape
    }

    /// How many documents share a key.
    pub fn sizes(&self) -> &BucketSizes {
        &self.sizes
    }

    /// Bytes of all postings, lists and groups.
    pub fn bytes(&self) -> u64 {
        self.pool.bytes() + self.equals.bytes()
    }

    /// Adds a published place that is not here yet. One that is not `findable`, as a link, gets no postings: only a
    /// lookup of its signature finds it. One change at a time, here and in what follows.
    pub fn insert(&self, arena: &Arena, place: Place, findable: bool) {
        self.equals.enter(place, findable);
        match self.equals.leader(arena, place) {
            None => {
                self.equals.alone(arena, &self.pool, place);
                if findable {
                    self.post(arena, place);
                }
            }
            Some(leader) => {
                let after = self.equals.join(arena, leader, place);
                self.resized(after - usize::from(findable), after);
                self.lead_if_first(arena, leader, place);
            }
        }
    }

    /// Adds many places to an empty index, in parallel; `done` is told how many postings were placed. The places must be
    /// published.
    pub fn insert_all(
        &self,
        arena: &Arena,
        places: &[Place],
        findable: impl Fn(Place) -> bool + Sync,
        done: impl Fn(usize) + Sync,
    ) {
        places.iter().for_each(|&place| self.equals.enter(place, findable(place)));
        let leaders = self.join_equals(arena, places);
        let posted: Vec<Place> = leaders.iter().copied().filter(|&place| self.is_findable(place)).collect();
        posted.iter().for_each(|&place| self.equals.set(place, Flag::Posted, true));
        let band = |band: usize| {
            let rows = &self.rows[band];
            let same = |a, b| rows.equal_of(arena, a, b);
            let added = |before| self.sizes.changed(before, before + 1);
            self.tables[band].fill(&self.pool, &posted, same, &BandKeys { rows, arena }, added, &done);
        };
        rayon::join(
            || self.equals.place_all(arena, &self.pool, &leaders),
            || (0..self.tables.len()).into_par_iter().for_each(band),
        );
    }

    /// Takes a place out again, before it is freed. One that is not here is passed over.
    pub fn remove(&self, arena: &Arena, place: Place) {
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
                let after = self.equals.part(arena, leads, &group, place);
                self.resized(after + usize::from(self.is_findable(place)), after);
            }
        }
        self.equals.clear(place);
    }

    /// Changes whether a place that is here can be found by its bands.
    pub fn set_findable(&self, arena: &Arena, place: Place, findable: bool) {
        let Some(leader) = self.here(place).then(|| self.equals.leader(arena, place)).flatten() else { return };
        if self.is_findable(place) == findable {
            return;
        }
        self.equals.set(place, Flag::Findable, findable);
        match self.equals.led_by(leader) {
            None if findable => self.post(arena, place),
            None => self.unpost(arena, place),
            Some(group) => {
                let after = self.equals.set_findable(arena, &group, place, findable);
                if findable {
                    self.resized(after - 1, after);
                    self.lead_if_first(arena, leader, place);
                } else {
                    self.resized(after + 1, after);
                    if leader == place {
                        let heir = group.heir(place).expect("a group has several members");
                        self.hand_over(arena, place, heir);
                    }
                }
            }
        }
    }

    /// Whether a place is here.
    pub fn here(&self, place: Place) -> bool {
        self.equals.has(place, Flag::Here)
    }

    /// Whether a place that is here can be found by its bands.
    pub fn is_findable(&self, place: Place) -> bool {
        self.equals.has(place, Flag::Findable)
    }

    /// Finds the places that share a key with a packed signature, and those that have it. At most `per_key_max` postings
    /// of a key are read, spread evenly over the list and, from band to band, over different members of it.
    pub fn probe(&self, arena: &Arena, signature: &[u8], per_key_max: usize, probe: &mut Probe) {
        words_of(signature, &mut probe.words);
        probe.keys.clear();
        probe.keys.extend(self.rows.iter().map(|rows| rows.key(|word| probe.words[word])));
        let twin_key = self.equals.prefetch(&probe.words);
        self.probe_bands(arena, per_key_max, twin_key, probe);
    }

    /// The shards of some keys, one a band, locked.
    fn shards(&self, keys: &[u64]) -> SmallVec<[RwLockReadGuard<'_, Shard>; BANDS]> {
        self.tables.iter().zip(keys).for_each(|(table, &key)| table.prefetch(key));
        self.tables.iter().zip(keys).map(|(table, &key)| table.read(key)).collect()
    }

    fn probe_bands(&self, arena: &Arena, per_key_max: usize, twin_key: u64, probe: &mut Probe) {
        let Probe { hits, groups, unread, fullest, keys, words, found, places, twin } = probe;
        (*unread, *fullest) = (0, 0);
        places.clear();
        found.clear();
        groups.clear();
        // Held until groups are known: a leader keeps its postings, and its group, meanwhile.
        let shards = self.shards(keys);
        let homes = prefetch_homes(&shards, keys);
        for (band, (shard, &key)) in shards.iter().zip(&*keys).enumerate() {
            let (from, most) = (found.len(), per_key_max.saturating_add(OTHERS_MAX));
            shard.tagged(key, homes[band], |entry| {
                if found.len() - from < most {
                    found.push((band as u32, entry));
                } else {
                    *unread += 1;
                }
            });
        }
        self.equals.prefetch_home(twin_key);
        for &(band, entry) in &*found {
            arena.prefetch(shards[band as usize].first(entry), self.rows[band as usize].words.start);
        }
        // Places of one key are together; so many beside each other, or one list.
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
                        places.push(Place(entry));
                    } else {
                        *unread += 1;
                    }
                }
                Some(list) => {
                    *fullest = list.len().max(*fullest);
                    *unread += list.spread(per_key_max, (band as usize, keys.len()), places);
                }
            }
        }
        places.sort_unstable();
        hits.clear();
        hits.extend(places.chunk_by(|a, b| a == b).map(|same| Hit { place: same[0], bands: same.len() as u32 }));
        if self.equals.any() {
            hits.retain(|&Hit { place: leader, bands }| {
                let Some(group) = self.equals.led_by(leader) else { return true };
                *fullest = group.members().findable().len().max(*fullest);
                groups.push(GroupHit { leader, bands, group });
                false
            });
        }
        // Under the same locks: no other place can come to lead, so what was met in the bands is known by its leader.
        *twin = self.equals.twin(arena, words, twin_key);
        if let Some(Twin { leader, .. }) = twin {
            if let Ok(at) = hits.binary_search_by_key(leader, |hit| hit.place) {
                hits.remove(at);
            }
            groups.retain(|found| found.leader != *leader);
        }
    }

    /// Gives a place postings.
    fn post(&self, arena: &Arena, place: Place) {
        let keys = self.keys(arena, place);
        self.tables.iter().zip(&keys).for_each(|(table, &key)| table.prefetch(key));
        let with_room = |(band, &key): (usize, &u64)| {
            let keys = BandKeys { rows: &self.rows[band], arena };
            self.tables[band].with_room(&self.pool, key, &keys)
        };
        let mut shards: SmallVec<[_; BANDS]> = keys.iter().enumerate().map(with_room).collect();
        prefetch_homes(&shards, &keys);
        for ((shard, rows), &key) in shards.iter_mut().zip(&self.rows).zip(&keys) {
            let same = |held| rows.equal_of(arena, place, held);
            let before = shard.insert(&self.pool, key, place, same, |place| arena.seq(place));
            self.sizes.changed(before, before + 1);
        }
        self.equals.set(place, Flag::Posted, true);
    }

    /// Takes the postings of a place away, if it has any.
    fn unpost(&self, arena: &Arena, place: Place) {
        if !self.equals.has(place, Flag::Posted) {
            return;
        }
        for (band, &key) in self.keys(arena, place).iter().enumerate() {
            let same = |held| self.rows[band].equal_of(arena, place, held);
            let keys = BandKeys { rows: &self.rows[band], arena };
            let before = self.tables[band].remove(&self.pool, key, place, same, &keys);
            let before = before.expect("a place that is posted has a posting in every band");
            self.sizes.changed(before, before - 1);
        }
        self.equals.set(place, Flag::Posted, false);
    }

    /// The first of a group that can be found leads it, for it has the postings.
    fn lead_if_first(&self, arena: &Arena, leader: Place, place: Place) {
        if !self.is_findable(place) || self.equals.has(leader, Flag::Posted) {
            return;
        }
        self.post(arena, place);
        if leader != place {
            self.equals.hand_over(arena, &self.pool, leader, place);
        }
    }

    /// Another member leads a group. If it can be found, it gets the postings, all at once: a lookup that meets one of
    /// them holds its shard, and sees the group by the one or by the other. No other lookup is in the way.
    fn hand_over(&self, arena: &Arena, place: Place, heir: Place) {
        if !self.is_findable(heir) {
            self.unpost(arena, place);
            if heir != place {
                self.equals.hand_over(arena, &self.pool, place, heir);
            }
            return;
        }
        let keys = self.keys(arena, place);
        let mut shards: SmallVec<[_; BANDS]> =
            self.tables.iter().zip(&keys).map(|(table, &key)| table.write(key)).collect();
        for ((shard, rows), &key) in shards.iter_mut().zip(&self.rows).zip(&keys) {
            let same = |held| rows.equal_of(arena, place, held);
            shard.replace(&self.pool, key, (place, heir), same, |place| arena.seq(place));
        }
        self.equals.set(heir, Flag::Posted, true);
        self.equals.set(place, Flag::Posted, false);
        self.equals.hand_over(arena, &self.pool, place, heir);
    }

    fn keys(&self, arena: &Arena, place: Place) -> SmallVec<[u64; BANDS]> {
        self.rows.iter().map(|rows| rows.key_of(arena, place)).collect()
    }

    /// Notes that a group has so many findable members in place of so many. One alone is no bucket.
    fn resized(&self, from: usize, to: usize) {
        let size = |members: usize| if members < 2 { 0 } else { members };
        self.sizes.changed(size(from), size(to));
    }

    /// Finds equal signatures among many places; returns the leaders.
    fn join_equals(&self, arena: &Arena, places: &[Place]) -> Vec<Place> {
        // A hash of 32 bits beside each place: memory for a moment, 8 bytes a document.
        let mut hashed: Vec<u64> = places.par_iter().map(|&place| self.equals.hashed(arena, place)).collect();
        hashed.par_sort_unstable();
        let mut leaders: Vec<Place> = Vec::with_capacity(places.len());
        self.equals.add_all(arena, &hashed, &mut leaders);
        self.equals.sizes().into_iter().for_each(|(_, findable)| self.resized(0, findable));
        leaders.sort_unstable();
        leaders
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
