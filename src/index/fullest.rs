//! The buckets that most documents share, from the lists of the tables and the groups of equal signatures.

use std::collections::HashMap;

use hapax_core::BandKey;

use super::Arena;
use super::bands::BandIndex;
use super::place::Place;
use super::rows::BandKeys;
use super::sync::Ordering;

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
    pub sample: Vec<Place>,
}

impl BandIndex {
    /// The fullest buckets, at most `limit`, each with up to `samples` of its documents; the fullest first. Buckets of
    /// up to eight documents are looked at only with `all`, which takes a look at every posting.
    pub fn fullest(&self, arena: &Arena, limit: usize, samples: usize, all: bool) -> Vec<Bucket> {
        let mut fullest = Fullest { index: self, arena, limit, floor: 2, keys: HashMap::new() };
        for (band, table) in self.tables.iter().enumerate() {
            table.for_each_list(|list| {
                list.first().into_iter().for_each(|first| fullest.consider(list.len(), band, first));
            });
            if all {
                let keys = BandKeys { rows: &self.rows[band], arena };
                table.for_each_few(&keys, |places| fullest.consider(places.len(), band, places[0]));
            }
        }
        for (leader, documents) in self.equals.sizes() {
            (0..self.tables.len()).for_each(|band| fullest.consider(documents, band, leader));
        }
        let keys = fullest.keys.into_iter();
        let mut buckets: Vec<Bucket> =
            keys.map(|((band, key), (_, place))| self.bucket(arena, band, key, place, samples)).collect();
        buckets.sort_by_key(|bucket| (std::cmp::Reverse(bucket.documents), bucket.band));
        buckets.truncate(limit);
        buckets
    }

    fn bucket(&self, arena: &Arena, band: usize, key: u64, one: Place, samples: usize) -> Bucket {
        let rows = &self.rows[band];
        let shard = self.tables[band].read(key);
        let members = shard.members(key, |held| rows.equal_of(arena, one, held));
        let mut sample = Vec::new();
        members.spread(samples, &mut sample);
        let mut documents = members.len();
        for (leader, group) in members.iter().filter_map(|place| Some((place, self.equals.led_by(place)?))) {
            let members = group.members();
            documents += members.findable().len() - 1;
            // It is one of its group.
            sample.retain(|&place| place != leader);
            members.findable().spread(samples.saturating_sub(sample.len()), (0, 1), &mut sample);
        }
        let words: Vec<u64> = arena.signature(one).iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
        let signature = &bytemuck::cast_slice(&words)[..self.shape.bytes()];
        let key = self.banding.key(signature, self.shape, band as u32);
        Bucket { band: band as u32, key, documents, sample }
    }
}

/// Keys of many documents.
struct Fullest<'a> {
    index: &'a BandIndex,
    arena: &'a Arena,
    limit: usize,
    /// Fewer documents are not worth noting.
    floor: usize,
    /// Band and key -> documents, and one of them.
    keys: HashMap<(usize, u64), (usize, Place)>,
}

impl Fullest<'_> {
    /// A key may come several times, once for its list and once for each group of equal signatures: the most counts.
    fn consider(&mut self, documents: usize, band: usize, place: Place) {
        if documents < self.floor {
            return;
        }
        let key = self.index.rows[band].key_of(self.arena, place);
        let noted = self.keys.entry((band, key)).or_insert((documents, place));
        if noted.0 < documents {
            *noted = (documents, place);
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
