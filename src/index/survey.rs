//! How crowded the buckets are, in documents. Documents with equal signatures share postings, and here each of them
//! counts. A sample of the documents is looked up by their own keys, because what matters is the bucket that a document
//! falls into: most buckets hold one document and are met by nobody else.

use std::collections::HashMap;

use super::arena::Arena;
use super::band_tables::BandTables;
use super::fullest::{documents_beside, fullest};
use super::place::Place;
use super::shard::INLINE_MAX;

/// How many of the longest lists are counted in documents to find the largest bucket.
const COUNTED: usize = 16;

/// The sizes of buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The documents in the largest bucket.
    pub largest: u64,
    /// Half of the documents fall into no bucket of more documents than this.
    pub p50: u64,
    /// The same for 99 of 100 documents.
    pub p99: u64,
    /// The buckets with more postings than a lookup reads.
    pub over_cap: u64,
}

/// Measures the buckets that the documents at these places fall into. `all` also looks for the largest bucket among those
/// of up to eight documents, which reads every posting.
pub(super) fn survey(
    tables: &BandTables,
    arena: &Arena,
    sample: impl Iterator<Item = Place>,
    all: bool,
    bucket_read_max: usize,
) -> Survey {
    let mut known = HashMap::new();
    let findable = sample.filter(|&place| tables.here(place) && tables.is_findable(place));
    let mut sizes: Vec<u64> = findable.map(|place| fullest_of(tables, arena, place, &mut known)).collect();
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
        over_cap: over_cap(tables, arena, bucket_read_max),
    }
}

/// Returns the documents in the fullest of a document's buckets. Long buckets are counted once and then `known`.
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

fn over_cap(tables: &BandTables, arena: &Arena, bucket_read_max: usize) -> u64 {
    let mut over = 0;
    for (table, rows) in tables.tables().iter().zip(tables.bands().rows()) {
        table.for_each_list(|list| over += u64::from(list.len() > bucket_read_max));
        if bucket_read_max < INLINE_MAX {
            table.for_each_few(&rows.keys(arena), |places| over += u64::from(places.len() > bucket_read_max));
        }
    }
    over
}
