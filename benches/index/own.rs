//! hapax's index as a contender.
//! An insert puts the signature, `seq` and the fingerprint of an id where decisions do; a check is what
//! `collection::judge` does for a signature.

use std::cmp::Reverse;
use std::time::Instant;

use hapax::index::{Arena, BandIndex, Comparison, Entry, IdIndex, Probe};
use hapax::types::{Seq, Slot, TimestampMs};
use hapax_core::{Banding, SignatureShape, verify};
use xxhash_rust::xxh3::xxh3_64;

use crate::contender::{Build, Index, InsertShared, Plan, THRESHOLD};

pub(crate) struct Own {
    arena: Arena,
    bands: BandIndex,
    ids: IdIndex,
    shape: SignatureShape,
    matching_min: u32,
    bucket_read_max: usize,
}

#[derive(Default)]
pub(crate) struct Scratch {
    probe: Probe,
    words: Vec<u64>,
    ranked: Vec<(Reverse<u32>, Seq)>,
}

impl Own {
    fn publish(&self, slot: Slot, signature: &[u8]) {
        // The hash of an id as short as they come.
        let id_fingerprint = xxh3_64(&slot.0.to_le_bytes());
        let (seq, content) = (Seq(u64::from(slot.0) + 1), u64::from(slot.0));
        self.arena
            .publish(slot, Entry { seq, id_fingerprint, content, linked: false, signature, last_seen: TimestampMs(0) });
    }

    fn put(&self, number: u32, signature: &[u8]) {
        let slot = Slot(number);
        self.publish(slot, signature);
        self.bands.insert(&self.arena, slot, true);
        self.ids.insert(&self.arena, slot);
    }
}

impl Index for Own {
    type Scratch = Scratch;
    const INSERT_SHARED: Option<InsertShared<Self>> = Some(|index, number, signature| index.put(number, signature));
    /// As at boot: the arena is full, the postings are to be made.
    const BUILD: Option<Build<Self>> = Some(|index, documents| {
        let slots: Vec<Slot> = documents
            .map(|(number, signature)| {
                index.publish(Slot(number), &signature);
                Slot(number)
            })
            .collect();
        let started = Instant::now();
        index.bands.insert_all(&index.arena, &slots, |_| true, |_| {});
        started.elapsed()
    });

    fn new(plan: &Plan) -> Self {
        let (shape, banding) = shape_and_banding(plan);
        Self {
            arena: Arena::new(shape),
            bands: BandIndex::new(banding, shape),
            ids: IdIndex::with_fingerprint_bits(64),
            shape,
            matching_min: verify::matching_min(THRESHOLD, shape),
            bucket_read_max: plan.bucket_read_max,
        }
    }

    fn insert(&mut self, number: u32, signature: &mut Vec<u8>) {
        self.put(number, signature);
    }

    fn check(&self, scratch: &mut Scratch, query: &[u8]) -> usize {
        let Scratch { probe, words, ranked } = scratch;
        self.bands.probe(&self.arena, query, self.bucket_read_max, probe);
        ranked.clear();
        let mut comparison = Comparison::new(&self.arena, query, self.shape, self.matching_min, words);
        comparison.each(&probe.hits, |_, seen, matching| {
            if seen.removed == Seq(0) && matching >= self.matching_min {
                ranked.push((Reverse(matching), seen.seq));
            }
        });
        let groups = probe.groups.iter().map(|found| &found.group);
        for group in groups.chain(probe.twin.iter().filter_map(|twin| twin.group.as_ref())) {
            let members = group.members();
            let Some((_, matching)) = members.found().next().and_then(|slot| comparison.with(slot)) else { continue };
            if matching >= self.matching_min {
                let seen = members.found().filter_map(|slot| self.arena.peek(slot));
                ranked.extend(seen.map(|seen| (Reverse(matching), seen.seq)));
            }
        }
        if let Some(twin) = probe.twin.as_ref().filter(|twin| twin.group.is_none())
            && let Some((seen, matching)) = comparison.with(twin.place())
        {
            ranked.push((Reverse(matching), seen.seq));
        }
        ranked.sort_unstable();
        ranked.len()
    }
}

/// Validated: a plan that does not fit is ours.
pub(crate) fn shape_and_banding(plan: &Plan) -> (SignatureShape, Banding) {
    let shape = SignatureShape { k: plan.k as u32, bits: 8 };
    let banding = Banding::new(plan.bands as u32, plan.rows as u32, shape).expect("the banding fits the signature");
    (shape, banding)
}
