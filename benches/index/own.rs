//! hapax's index as a contender, used as collections use it. An insert is the part of a decision to store that changes
//! the index. A check is a whole search.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use hapax::index::{self, Bounds, Entry, IndexOptions, LabelSet, Query, View};
use hapax::types::{Seq, TimestampMs};
use hapax_core::{Banding, SignatureShape, verify};
use xxhash_rust::xxh3::xxh3_64;

use crate::contender::{Build, Index, InsertShared, Plan, THRESHOLD, Upkeep};

pub(crate) struct Own {
    index: Arc<index::Index>,
    matching_min: u32,
    bounds: Bounds,
}

/// The index has its own buffers for each thread, so they are not here.
#[derive(Default)]
pub(crate) struct Scratch {
    mistaken: HashSet<Seq>,
}

impl Own {
    fn put(&self, number: u32, signature: &[u8]) {
        self.index.enter(entry(number, signature)).expect("there is room");
    }
}

fn entry(number: u32, signature: &[u8]) -> Entry<'_> {
    Entry {
        seq: Seq(u64::from(number) + 1),
        // The hash of the shortest possible id.
        id_fingerprint: xxh3_64(&number.to_le_bytes()),
        content: u64::from(number),
        linked: false,
        signature,
        labels: LabelSet::NONE,
        last_seen: TimestampMs(0),
    }
}

impl Index for Own {
    type Scratch = Scratch;
    /// A collection changes its index from only one thread at a time. The tables also allow several threads, if all
    /// signatures differ.
    const INSERT_SHARED: Option<InsertShared<Self>> = Some(|index, number, signature| index.put(number, signature));
    /// The same situation as at boot: the documents are loaded, and the postings are missing.
    const BUILD: Option<Build<Self>> = Some(|own, documents| {
        for (number, signature) in documents {
            own.index.load(entry(number, &signature));
        }
        let started = Instant::now();
        own.index.build(|_| {});
        started.elapsed()
    });

    fn new(plan: &Plan) -> Self {
        let (shape, banding) = shape_and_banding(plan);
        let options = IndexOptions { shape, banding, id_fingerprint_bits: 64, seed: None };
        Self {
            index: Arc::new(index::Index::new(&options)),
            matching_min: verify::matching_min(THRESHOLD, shape),
            bounds: Bounds {
                bucket_read_max: plan.bucket_read_max,
                candidates_max: usize::MAX,
                listed_max: index::LISTED_MAX,
            },
        }
    }

    fn upkeep(&self) -> Option<Upkeep> {
        let index = Arc::clone(&self.index);
        Some(Box::new(move || index.resize_tables()))
    }

    fn insert(&mut self, number: u32, signature: &mut Vec<u8>) {
        self.put(number, signature);
    }

    fn check(&self, scratch: &mut Scratch, signature: &[u8]) -> usize {
        let query = Query {
            signature,
            content: 0,
            own: None,
            matching_min: self.matching_min,
            members_max: usize::MAX,
            contents_max: None,
            scope: None,
            mistaken: &scratch.mistaken,
            explain: false,
        };
        let Ok(search) = self.index.search(View::Decided, &query, self.bounds);
        search.found.len()
    }
}

/// This cannot fail, because the plans of this program are valid.
pub(crate) fn shape_and_banding(plan: &Plan) -> (SignatureShape, Banding) {
    let shape = SignatureShape { k: plan.k as u32, bits: 8 };
    let banding = Banding::new(plan.bands as u32, plan.rows as u32, shape).expect("the banding fits the signature");
    (shape, banding)
}
