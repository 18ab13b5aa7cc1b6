//! Signature -> the places that share a band with it, and the places with the same signature.
//! Each step prefetches everything that the next one needs.

use std::sync::Arc;

use parking_lot::RwLockReadGuard;
use smallvec::SmallVec;

use super::arena::{Arena, words_of};
use super::band_tables::{BandTables, prefetch_homes};
use super::bands::Bands;
use super::equals::Twin;
use super::group::Group;
use super::place::Place;
use super::shard::Shard;
use super::sync::AtomicU64;

/// The maximum number of postings with another key than the query's that are looked at in one band, in addition to
/// `bucket_read_max` postings with the query's key. Fewer than one in a hundred of the postings with another key have
/// the query's eight-bit tag. Because of the seed, clients cannot make more such postings.
const OTHERS_MAX: usize = 64;

/// The maximum number of places whose repetitions are counted before the places are sorted. With more places, counting
/// helps little: a remembered place is usually replaced before it is found again.
const COUNTED_MAX: usize = 1024;

/// How often a lookup with a scope tries to read the buckets one after another, before it locks all of them.
const UNLOCKED_ATTEMPTS: usize = 3;

/// Probes all bands. Keeps its buffers from one query to the next.
#[derive(Default)]
pub(super) struct Probe {
    probed: Probed,
    keys: Vec<u64>,
    words: Vec<u64>,
    /// Entries with the tags of the query's keys, each with its band.
    entries: Vec<(u32, u32)>,
    places: Vec<Place>,
}

/// The result of probing all bands of a query.
#[derive(Default)]
pub(super) struct Probed {
    /// The places that share a band with the query, and how many bands they share. Each is the only document with its
    /// signature.
    pub hits: Vec<Hit>,
    /// Groups of equal signatures that share a band with the query.
    pub groups: Vec<GroupHit>,
    /// The documents with the query's own signature. They are neither in `hits` nor in `groups`, and no limit hides
    /// them.
    pub twin: Option<Twin>,
    /// The number of postings that were not read. A document may be counted once per band.
    pub unread: u64,
    /// The number of documents in the fullest bucket among the query's keys. Each group that a limit has hidden counts
    /// as one document.
    pub fullest: usize,
    /// The number of documents that have the query's key, for each band.
    pub sizes: Vec<usize>,
}

/// A place that shares bands with a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub place: Place,
    pub bands: u32,
}

/// A group of equal signatures that shares bands with a query.
#[derive(Clone)]
pub(super) struct GroupHit {
    /// Its leader at the time it was found.
    pub leader: Place,
    pub bands: u32,
    pub group: Arc<Group>,
}

impl Probe {
    /// Finds the places that share a key with a packed signature, and the places with the same signature. Reads at most
    /// `bucket_read_max` postings of a key, spread evenly over its list. Different bands read different members of a
    /// list. Places outside the scope are left out. If there is a scope, many postings may be read, so each bucket is
    /// read under its own lock. If leaders change too often meanwhile, all buckets are locked at once.
    pub(super) fn all_bands(
        &mut self,
        tables: &BandTables,
        arena: &Arena,
        signature: &[u8],
        bucket_read_max: usize,
        scope: Option<&dyn Fn(Place) -> bool>,
    ) -> &mut Probed {
        let (bands, equals) = (tables.bands(), tables.equals());
        words_of(signature, &mut self.words);
        bands.keys(&self.words, &mut self.keys);
        let twin_key = equals.prefetch(&self.words);
        self.clear();
        let in_scope = |place| scope.is_none_or(|scope| scope(place) || equals.leads(place));
        // The locks are held until the groups are known, so that each leader keeps its postings and its group
        // meanwhile.
        let mut locked = None;
        for _ in 0..if scope.is_some() { UNLOCKED_ATTEMPTS } else { 0 } {
            let handed_over = equals.handed_over();
            self.clear();
            for band in 0..self.keys.len() {
                let shard = [tables.shard(band, self.keys[band])];
                self.tagged((band, &shard), bucket_read_max);
                self.of_the_keys(bands, arena, (band, &shard), bucket_read_max, in_scope);
            }
            self.count_bands();
            let shards = tables.shards(&self.keys);
            // If a leader has changed since the first bucket was read, its group may be missing.
            if handed_over == equals.handed_over() {
                locked = Some(shards);
                break;
            }
        }
        let is_read = locked.is_some();
        let shards = locked.unwrap_or_else(|| tables.shards(&self.keys));
        if !is_read {
            self.clear();
            self.tagged((0, &shards), bucket_read_max);
            equals.prefetch_home(twin_key);
            self.of_the_keys(bands, arena, (0, &shards), bucket_read_max, in_scope);
            self.count_bands();
        }
        self.groups(tables, arena);
        if let Some(scope) = scope {
            self.probed.groups_in(scope, bucket_read_max);
        }
        self.probed.fullest = self.probed.sizes.iter().copied().max().unwrap_or(0);
        // This is done under the same locks, so no other document can become the leader meanwhile. The findings of the
        // bands and the twin therefore name the same leader.
        self.probed.twin = equals.twin(arena, &self.words, twin_key);
        self.probed.without_twin();
        &mut self.probed
    }

    fn clear(&mut self) {
        let Self { probed: Probed { unread, sizes, .. }, keys, places, .. } = self;
        *unread = 0;
        places.clear();
        sizes.clear();
        sizes.resize(keys.len(), 0);
    }

    /// Collects the entries that may have the query's keys, judged by their tags alone, in the bands from `first` on.
    #[inline]
    fn tagged(&mut self, (first, shards): (usize, &[RwLockReadGuard<'_, Shard>]), bucket_read_max: usize) {
        let Self { probed: Probed { unread, .. }, keys, entries, .. } = self;
        entries.clear();
        let keys = &keys[first..];
        let homes = prefetch_homes(shards, keys);
        for (band, (shard, &key)) in shards.iter().zip(keys).enumerate() {
            let (from, most) = (entries.len(), bucket_read_max.saturating_add(OTHERS_MAX));
            shard.tagged(key, homes[band], |entry| {
                if entries.len() - from < most {
                    entries.push(((first + band) as u32, entry));
                } else {
                    *unread += 1;
                }
            });
        }
    }

    /// Collects the places of the entries that have the query's keys, once per band.
    #[inline]
    fn of_the_keys(
        &mut self,
        bands: &Bands,
        arena: &Arena,
        (first, shards): (usize, &[RwLockReadGuard<'_, Shard>]),
        bucket_read_max: usize,
        in_scope: impl Fn(Place) -> bool,
    ) {
        let Self { probed: Probed { unread, sizes, .. }, keys, words, entries, places } = self;
        let rows = bands.rows();
        // A query with ten similar documents has hundreds of entries, so the signature of each is located only once.
        let mut signatures: SmallVec<[&[AtomicU64]; 64]> = SmallVec::with_capacity(entries.len());
        for &(band, entry) in &*entries {
            let held = arena.signature(shards[band as usize - first].first(entry));
            rows[band as usize].prefetch(held);
            signatures.push(held);
        }
        // The entries of one key are adjacent: either a few places, or one list.
        for (&(band, entry), held) in entries.iter().zip(&signatures) {
            if !rows[band as usize].equal(held, words) {
                continue;
            }
            match shards[band as usize - first].resolve(entry) {
                None => {
                    let size = &mut sizes[band as usize];
                    *size += 1;
                    if *size > bucket_read_max {
                        *unread += 1;
                    } else if in_scope(Place(entry)) {
                        places.push(Place(entry));
                    }
                }
                Some(list) => {
                    sizes[band as usize] = list.len();
                    *unread += list.spread(bucket_read_max, (band as usize, keys.len()), &in_scope, places);
                }
            }
        }
    }

    /// Counts the bands of each place.
    #[inline]
    fn count_bands(&mut self) {
        let Self { probed: Probed { hits, .. }, places, .. } = self;
        hits.clear();
        if places.len() > COUNTED_MAX {
            places.sort_unstable();
            hits.extend(places.chunk_by(|a, b| a == b).map(|same| Hit { place: same[0], bands: same.len() as u32 }));
            return;
        }
        // Each document that is similar to the query is in many bands. So most repetitions are counted before the
        // places are sorted. If two places use the same slot of `latest`, the later place is remembered.
        let mut latest = [u32::MAX; 64];
        for &place in &*places {
            let at = &mut latest[(place.0.wrapping_mul(0x9E37_79B1) >> 26) as usize];
            match hits.get_mut(*at as usize).filter(|hit| hit.place == place) {
                Some(hit) => hit.bands += 1,
                None => {
                    *at = hits.len() as u32;
                    hits.push(Hit { place, bands: 1 });
                }
            }
        }
        hits.sort_unstable_by_key(|hit| hit.place);
        hits.dedup_by(|later, hit| {
            let same = later.place == hit.place;
            if same {
                hit.bands += later.bands;
            }
            same
        });
    }

    /// Turns leaders into groups, and adds the members of the groups to the sizes of buckets.
    #[inline]
    fn groups(&mut self, tables: &BandTables, arena: &Arena) {
        let Self { probed: Probed { hits, groups, sizes, .. }, words, .. } = self;
        let equals = tables.equals();
        groups.clear();
        if equals.any() {
            hits.retain(|&Hit { place: leader, bands }| {
                let Some(group) = equals.led_by(leader) else { return true };
                // The list is empty if no member can be found any longer. The posting is then removed soon.
                let others = group.members().findable().len().saturating_sub(1);
                let held = arena.signature(leader);
                for (size, rows) in sizes.iter_mut().zip(tables.bands().rows()) {
                    *size += if rows.equal(held, words) { others } else { 0 };
                }
                groups.push(GroupHit { leader, bands, group });
                false
            });
        }
    }

    /// Returns how many entries the last query looked at.
    #[cfg(all(test, not(hapax_loom)))]
    pub(super) fn looked_at(&self) -> usize {
        self.entries.len()
    }
}

impl Probed {
    /// Removes groups without a member in the scope. Reads at most `reads_max` members of each.
    fn groups_in(&mut self, in_scope: &dyn Fn(Place) -> bool, reads_max: usize) {
        let Self { groups, unread, .. } = self;
        groups.retain(|found| {
            let members = found.group.members();
            let is_in = members.found().take(reads_max).any(in_scope);
            if !is_in {
                *unread += members.findable().len().saturating_sub(reads_max) as u64;
            }
            is_in
        });
    }

    /// Removes the documents with the query's own signature from the findings of the bands.
    fn without_twin(&mut self) {
        let Self { hits, groups, twin: Some(Twin { leader, .. }), .. } = self else { return };
        if let Ok(at) = hits.binary_search_by_key(leader, |hit| hit.place) {
            hits.remove(at);
        }
        groups.retain(|found| found.leader != *leader);
    }
}
