//! Document id -> slot, by a 64-bit fingerprint of the id.
//! Ids are long and live in the store; two ids may share a fingerprint, so a slot found here is a guess that the
//! caller confirms against the record.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64;

use crate::types::{DocId, Slot};

/// A multimap of fingerprints to slots.
pub struct IdIndex {
    slots: DashMap<u64, Slots, BuildHasherDefault<FingerprintHasher>>,
    mask: u64,
}

/// Nearly every fingerprint has one slot; the rest pay for a box.
enum Slots {
    One(Slot),
    #[allow(clippy::box_collection, reason = "a Vec in place would make every entry larger")]
    Many(Box<Vec<Slot>>),
}

/// Fingerprints are hashes already; one multiplication spreads those that a test has cut to a few bits.
#[derive(Default)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed");
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl IdIndex {
    /// Tells ids apart by 1 to 64 bits of their fingerprints.
    pub fn with_fingerprint_bits(bits: u32) -> Self {
        Self { slots: DashMap::default(), mask: u64::MAX >> (64 - bits) }
    }

    /// The fingerprint of an id; stored beside the signature, so it may never change.
    pub fn fingerprint(id: &DocId) -> u64 {
        xxh3_64(id.as_str().as_bytes())
    }

    /// Adds a slot under a fingerprint.
    pub fn insert(&self, fingerprint: u64, slot: Slot) {
        match self.slots.entry(fingerprint & self.mask) {
            Entry::Vacant(entry) => {
                entry.insert(Slots::One(slot));
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Slots::Many(slots) => slots.push(slot),
                one @ Slots::One(_) => {
                    let Slots::One(first) = *one else { unreachable!("matched just above") };
                    *one = Slots::Many(Box::new(vec![first, slot]));
                }
            },
        }
    }

    /// Takes a slot out again.
    pub fn remove(&self, fingerprint: u64, slot: Slot) {
        let Entry::Occupied(mut entry) = self.slots.entry(fingerprint & self.mask) else { return };
        let last = match entry.get_mut() {
            Slots::One(held) => *held == slot,
            Slots::Many(slots) => {
                slots.retain(|held| *held != slot);
                slots.is_empty()
            }
        };
        if last {
            entry.remove();
        }
    }

    /// Every slot whose id may be the one with this fingerprint. Copied, so that no guard of the map is held.
    pub fn candidates(&self, fingerprint: u64) -> Vec<Slot> {
        match self.slots.get(&(fingerprint & self.mask)).as_deref() {
            None => Vec::new(),
            Some(Slots::One(slot)) => vec![*slot],
            Some(Slots::Many(slots)) => slots.to_vec(),
        }
    }

    /// Bytes of the map, by its capacity (an entry and its control byte), boxes left out.
    pub fn bytes(&self) -> u64 {
        self.slots.capacity() as u64 * 8 / 7 * (size_of::<(u64, Slots)>() as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_fingerprints_keep_every_slot() {
        let ids = IdIndex::with_fingerprint_bits(4);
        for slot in 0..100 {
            ids.insert(u64::from(slot), Slot(slot));
        }
        for slot in 0..100 {
            assert!(ids.candidates(u64::from(slot)).contains(&Slot(slot)));
        }
        for slot in 0..100 {
            ids.remove(u64::from(slot), Slot(slot));
            assert!(!ids.candidates(u64::from(slot)).contains(&Slot(slot)));
        }
        assert_eq!(ids.slots.len(), 0);
    }
}
