//! Measures how crowded the buckets are, in documents. Documents with equal signatures share postings, but here each of
//! them is counted. A sample of the documents is looked up under their own keys. A sample of the buckets would tell
//! little, because most buckets contain a single document. The same lookup shows whether each document of the sample
//! can be found by each of its bands.

use std::collections::HashMap;
use std::time::Duration;

use super::arena::Arena;
use super::band_tables::BandTables;
use super::fullest::{documents_beside, fullest};
use super::key_members::INLINE_MAX;
use super::place::Place;
use crate::types::Seq;

/// The number of the longest lists whose documents are counted, to find the largest bucket.
const COUNTED: usize = 16;

/// A posting counts as missing if this many attempts do not find it.
const LOOKS: u32 = 3;
/// The pause between two attempts, because a change may be in progress.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The findings of a survey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The number of documents in the largest bucket.
    pub largest: u64,
    /// For each sampled document, the documents in its fullest bucket are counted. This is the median of these numbers.
    pub p50: u64,
    /// The 99th percentile of the same numbers.
    pub p99: u64,
    /// The number of buckets with more postings than a lookup reads.
    pub over_cap: u64,
    /// The number of documents that were looked up under their own keys.
    pub looked_up: u64,
    /// The band of each posting that was missing. Empty if the index is intact.
    pub missing: Vec<u32>,
}

/// Measures the buckets that the documents at these places fall into. With `all`, reads every posting, so that the
/// largest bucket is found even if it has at most eight documents.
pub(super) fn survey(
    tables: &BandTables,
    arena: &Arena,
    sample: impl Iterator<Item = Place>,
    all: bool,
    bucket_read_max: usize,
) -> Survey {
    let (mut known, mut suspects) = (HashMap::new(), Vec::new());
    let findable = sample.filter(|&place| tables.here(place) && tables.is_findable(place));
    let look = |place| {
        if let Some(occupant) = arena.peek(place)
            && !absent_bands(tables, arena, place).is_empty()
        {
            suspects.push((place, occupant.seq));
        }
        fullest_of(tables, arena, place, &mut known)
    };
    let mut sizes: Vec<u64> = findable.map(look).collect();
    sizes.sort_unstable();
    let quantile = |share: f64| {
        let rank = (sizes.len() as f64 * share).ceil() as usize;
        sizes.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    let listed = fullest(tables, arena, COUNTED, 0, all).first().map_or(0, |bucket| bucket.documents as u64);
    Survey {
        largest: sizes.last().copied().unwrap_or(0).max(listed),
        p50: quantile(0.5),
        p99: quantile(0.99),
        over_cap: over_cap(tables, arena, all, bucket_read_max),
        looked_up: sizes.len() as u64,
        missing: missing(tables, arena, suspects),
    }
}

/// Looks again for the postings of documents, and returns the bands of the postings that are really missing.
fn missing(tables: &BandTables, arena: &Arena, mut suspects: Vec<(Place, Seq)>) -> Vec<u32> {
    let mut missing = Vec::new();
    for _ in 1..LOOKS {
        if suspects.is_empty() {
            return Vec::new();
        }
        std::thread::sleep(LOOK_AGAIN);
        missing.clear();
        suspects.retain(|&(place, seq)| {
            let absent = absent_bands(tables, arena, place);
            // A document that is being removed, or was removed, need not be found.
            let stays = arena.peek(place).is_some_and(|now| now.seq == seq) && tables.here(place);
            let lost = stays && tables.is_findable(place) && !absent.is_empty();
            if lost {
                missing.extend(absent);
            }
            lost
        });
    }
    missing
}

/// Returns the bands in which a document, or the leader of its group, has no posting.
fn absent_bands(tables: &BandTables, arena: &Arena, place: Place) -> Vec<u32> {
    let Some(leader) = tables.equals().leader(arena, place) else { return Vec::new() };
    let (bands, keys) = (tables.bands(), tables.bands().keys_of(arena, place));
    let is_absent = |&(band, &key): &(usize, &u64)| {
        let rows = &bands.rows()[band];
        let shard = tables.tables()[band].read(key);
        !shard.members(key, |held| rows.equal_of(arena, place, held)).has(leader, |place| arena.seq(place))
    };
    keys.iter().enumerate().filter(is_absent).map(|(band, _)| band as u32).collect()
}

/// Returns the number of documents in the fullest bucket of a document. Buckets of more than eight documents are
/// counted only once: `known` contains their sizes.
fn fullest_of(tables: &BandTables, arena: &Arena, place: Place, known: &mut HashMap<(usize, u64), u64>) -> u64 {
    let keys = tables.bands().keys_of(arena, place);
    let sizes = keys.iter().enumerate().map(|(band, &key)| {
        if let Some(&documents) = known.get(&(band, key)) {
            return documents;
        }
        let documents = documents_beside(tables, arena, (band, key), place) as u64;
        if documents > INLINE_MAX as u64 {
            known.insert((band, key), documents);
        }
        documents
    });
    sizes.max().unwrap_or(0)
}

/// Returns the number of buckets with more than `bucket_read_max` postings. Short buckets are counted only with `all`.
fn over_cap(tables: &BandTables, arena: &Arena, all: bool, bucket_read_max: usize) -> u64 {
    let mut over = 0;
    for (table, rows) in tables.tables().iter().zip(tables.bands().rows()) {
        table.for_each_list(|list| over += u64::from(list.len() > bucket_read_max));
        if all && bucket_read_max < INLINE_MAX {
            table.for_each_few(&rows.keys(arena), |places| over += u64::from(places.len() > bucket_read_max));
        }
    }
    over
}
