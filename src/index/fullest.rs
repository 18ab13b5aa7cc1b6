//! The buckets with the most documents, computed from the lists of the tables and the groups of equal signatures.

use std::cmp::Reverse;
use std::collections::HashMap;

use hapax_core::BandKey;

use super::arena::{Arena, Occupant};
use super::band_tables::BandTables;
use super::place::Place;
use super::sync::Ordering;

/// Documents that share a band key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullBucket {
    pub band: u32,
    pub key: BandKey,
    pub documents: usize,
    /// Some of these documents, both old and new ones.
    pub sample: Vec<Occupant>,
}

/// Returns up to `limit` of the fullest buckets, the fullest first, and for each of them up to `samples` documents.
/// Buckets of up to eight documents are included only with `all`, which reads every posting.
pub(super) fn fullest(tables: &BandTables, arena: &Arena, limit: usize, samples: usize, all: bool) -> Vec<FullBucket> {
    let mut fullest = Fullest { tables, arena, limit, floor: 2, keys: HashMap::new() };
    for (band, table) in tables.tables().iter().enumerate() {
        table.for_each_list(|list| {
            list.first().into_iter().for_each(|first| fullest.consider(list.len(), band, first));
        });
        if all {
            let keys = tables.bands().rows()[band].keys(arena);
            table.for_each_few(&keys, |places| fullest.consider(places.len(), band, places[0]));
        }
    }
    for (leader, documents) in tables.equals().sizes() {
        (0..tables.tables().len()).for_each(|band| fullest.consider(documents, band, leader));
    }
    let keys = fullest.keys.into_iter();
    let mut buckets: Vec<FullBucket> =
        keys.map(|((band, key), (_, place))| bucket(tables, arena, (band, key), place, samples)).collect();
    buckets.sort_by_key(|bucket| (Reverse(bucket.documents), bucket.band));
    buckets.truncate(limit);
    buckets
}

/// Returns how many documents share a key with the document at `one`, including that document.
pub(super) fn documents_beside(tables: &BandTables, arena: &Arena, (band, key): (usize, u64), one: Place) -> usize {
    let rows = &tables.bands().rows()[band];
    let shard = tables.tables()[band].read(key);
    let members = shard.members(key, |held| rows.equal_of(arena, one, held));
    let equals = tables.equals();
    if !equals.any() {
        return members.len();
    }
    // The members are counted after the lock is released. A group may change meanwhile, but the count need not be
    // exact.
    let members: Vec<Place> = members.iter().collect();
    drop(shard);
    let size = |place| equals.led_by(place).map_or(1, |group| group.members().findable().len());
    members.into_iter().map(size).sum()
}

/// Returns the bucket of a key that `one` has.
fn bucket(tables: &BandTables, arena: &Arena, (band, key): (usize, u64), one: Place, samples: usize) -> FullBucket {
    let rows = &tables.bands().rows()[band];
    let shard = tables.tables()[band].read(key);
    let members = shard.members(key, |held| rows.equal_of(arena, one, held));
    let mut sample = Vec::new();
    members.spread(samples, &mut sample);
    let mut documents = members.len();
    for (leader, group) in members.iter().filter_map(|place| Some((place, tables.equals().led_by(place)?))) {
        let members = group.members();
        // The list is empty if no member can be found any longer. The posting is then removed soon.
        documents += members.findable().len().saturating_sub(1);
        // The leader is one of the members, which are added below.
        sample.retain(|&place| place != leader);
        members.findable().spread(samples.saturating_sub(sample.len()), (0, 1), |_| true, &mut sample);
    }
    let words: Vec<u64> = arena.signature(one).iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
    let signature = &bytemuck::cast_slice(&words)[..tables.bands().shape().bytes()];
    let key = tables.bands().key_on_the_wire(signature, band as u32);
    let sample = sample.into_iter().filter_map(|place| arena.peek(place)).collect();
    FullBucket { band: band as u32, key, documents, sample }
}

/// Collects the keys that many documents share.
struct Fullest<'a> {
    tables: &'a BandTables,
    arena: &'a Arena,
    limit: usize,
    /// Buckets with fewer documents are not noted.
    floor: usize,
    /// Band and key -> the number of documents, and one of them.
    keys: HashMap<(usize, u64), (usize, Place)>,
}

impl Fullest<'_> {
    /// Notes a key and how many documents have it. The same key may be noted several times, once for its list and once
    /// for each group of equal signatures; the largest number counts.
    fn consider(&mut self, documents: usize, band: usize, place: Place) {
        if documents < self.floor {
            return;
        }
        let key = self.tables.bands().rows()[band].key_of(self.arena, place);
        let noted = self.keys.entry((band, key)).or_insert((documents, place));
        if noted.0 < documents {
            *noted = (documents, place);
        }
        // Keeps twice the requested number of keys, because the groups of a key are added up only later.
        let kept = 2 * self.limit;
        if self.keys.len() > 2 * kept {
            let mut counts: Vec<usize> = self.keys.values().map(|&(documents, _)| documents).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let last = counts[kept - 1];
            // Many keys may have the same number of documents as the last key that is kept. Only some of these keys
            // are kept, so that exactly `kept` keys remain.
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
