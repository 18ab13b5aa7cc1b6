//! A solution that could be written in an afternoon: one concurrent map from band keys to documents, and the signatures
//! in one vector. Band keys and comparison are those of hapax. There are no ids.

use std::cmp::Reverse;
use std::hash::{BuildHasherDefault, Hasher};

use dashmap::DashMap;
use hapax_core::{Banding, SignatureShape, verify};
use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::contender::{Index, InsertShared, Plan, THRESHOLD};
use crate::own::shape_and_banding;

pub(crate) struct Plain {
    /// A vector with room for four numbers is no larger than one with room for one.
    postings: DashMap<u64, SmallVec<[u32; 4]>, BuildHasherDefault<KeyHasher>>,
    /// The signatures one after the other, in the order of their documents.
    signatures: RwLock<Vec<u8>>,
    shape: SignatureShape,
    banding: Banding,
    matching_min: u32,
}

/// Band keys are hashes already.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only keys are hashed");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[derive(Default)]
pub(crate) struct Scratch {
    hits: Vec<u32>,
    ranked: Vec<(Reverse<u32>, u32)>,
}

impl Plain {
    fn put(&self, signature: &[u8]) {
        let slot = {
            let mut signatures = self.signatures.write();
            let slot = (signatures.len() / signature.len()) as u32;
            signatures.extend_from_slice(signature);
            slot
        };
        for key in self.banding.keys(signature, self.shape) {
            self.postings.entry(key.0).or_default().push(slot);
        }
    }
}

impl Index for Plain {
    type Scratch = Scratch;
    const INSERT_SHARED: Option<InsertShared<Self>> = Some(|index, _, signature| index.put(signature));

    fn new(plan: &Plan) -> Self {
        let (shape, banding) = shape_and_banding(plan);
        Self {
            postings: DashMap::default(),
            signatures: RwLock::default(),
            shape,
            banding,
            matching_min: verify::matching_min(THRESHOLD, shape),
        }
    }

    fn insert(&mut self, _: u32, signature: &mut Vec<u8>) {
        self.put(signature);
    }

    fn check(&self, scratch: &mut Scratch, query: &[u8]) -> usize {
        let Scratch { hits, ranked } = scratch;
        hits.clear();
        for key in self.banding.keys(query, self.shape) {
            if let Some(posting) = self.postings.get(&key.0) {
                hits.extend_from_slice(&posting);
            }
        }
        hits.sort_unstable();
        hits.dedup();
        ranked.clear();
        let signatures = self.signatures.read();
        for &slot in &*hits {
            let held = &signatures[slot as usize * query.len()..][..query.len()];
            let matching = verify::matching_slots(query, held, self.shape);
            if matching >= self.matching_min {
                ranked.push((Reverse(matching), slot));
            }
        }
        ranked.sort_unstable();
        ranked.len()
    }
}
