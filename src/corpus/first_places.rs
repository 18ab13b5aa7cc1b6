//! Windows of documents -> the first place of each. The table takes a part of the hashes: those of a range, which becomes
//! smaller if the table is full. So all windows are found in several readings, each with the range after that of the last.

use std::ops::RangeInclusive;

/// The bytes of a slot: a hash, and the first place of its window.
const SLOT_BYTES: usize = size_of::<u64>() + size_of::<FirstPlace>();
/// While a table grows or shrinks, the old and the new slots are in memory.
const RESIZING: usize = 2;
const SLOTS_MIN: usize = 1 << 10;
/// Marks an empty slot. A window with this hash takes the next one.
const EMPTY: u64 = 0;

/// The place where a window appears first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstPlace {
    /// The number of the document.
    pub document: u32,
    /// The first byte in its text.
    pub from: u32,
    /// The byte after the window.
    pub to: u32,
}

/// The first places of the windows whose hashes are in a range.
pub struct FirstPlaces {
    hashes: Vec<u64>,
    places: Vec<FirstPlace>,
    used: usize,
    slots_max: usize,
    range: RangeInclusive<u64>,
}

impl FirstPlaces {
    /// `bytes`: the memory that the table may take. `from`: the first hash of its range, which ends with the largest one.
    pub fn new(bytes: usize, from: u64) -> Self {
        let slots_max = (bytes / (SLOT_BYTES * RESIZING)).max(SLOTS_MIN);
        let halves = (slots_max / SLOTS_MIN).ilog2();
        let slots = slots_max >> halves;
        Self {
            hashes: vec![EMPTY; slots],
            places: vec![FirstPlace::default(); slots],
            used: 0,
            slots_max,
            range: from..=u64::MAX,
        }
    }

    /// The hashes whose windows are found. Windows with other hashes may have been found while the range was larger.
    pub fn range(&self) -> &RangeInclusive<u64> {
        &self.range
    }

    /// Looks for the window of a document. Returns its first place, if that is in an earlier document. If the window is new,
    /// this is its first place. The documents must come in their order.
    pub fn see(&mut self, hash: u64, place: impl FnOnce() -> FirstPlace, document: u32) -> Option<FirstPlace> {
        let hash = hash.max(EMPTY + 1);
        if !self.range.contains(&hash) {
            return None;
        }
        let slot = self.slot(hash);
        if self.hashes[slot] == hash {
            return Some(self.places[slot]).filter(|first| first.document < document);
        }
        self.hashes[slot] = hash;
        self.places[slot] = place();
        self.used += 1;
        // Four fifths of the slots are used at most.
        if self.used >= self.hashes.len() / 5 * 4 {
            self.make_room();
        }
        None
    }

    /// Returns the slot of a hash, or the empty one that it takes.
    fn slot(&self, hash: u64) -> usize {
        let slots = self.hashes.len();
        // The upper bits of all hashes of a small range are equal.
        let mut slot = ((u128::from(hash.rotate_left(32)) * slots as u128) >> 64) as usize;
        while self.hashes[slot] != hash && self.hashes[slot] != EMPTY {
            slot += 1;
            if slot == slots {
                slot = 0;
            }
        }
        slot
    }

    /// Doubles the slots if the memory allows it. Otherwise forgets the upper half of the range.
    fn make_room(&mut self) {
        let slots = self.hashes.len();
        let slots = if slots * 2 <= self.slots_max {
            slots * 2
        } else {
            let (from, to) = (*self.range.start(), *self.range.end());
            self.range = from..=from + (to - from) / 2;
            slots
        };
        let hashes = std::mem::replace(&mut self.hashes, vec![EMPTY; slots]);
        let places = std::mem::replace(&mut self.places, vec![FirstPlace::default(); slots]);
        self.used = 0;
        for (hash, place) in hashes.into_iter().zip(places) {
            if hash != EMPTY && self.range.contains(&hash) {
                let slot = self.slot(hash);
                self.hashes[slot] = hash;
                self.places[slot] = place;
                self.used += 1;
            }
        }
    }
}

/// Returns the hash by which a window is found.
pub fn found_by(hash: u64) -> u64 {
    hash.max(EMPTY + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use hapax_core::SplitMix64;

    use super::*;

    #[test]
    fn several_ranges_find_what_a_map_finds() {
        let mut random = SplitMix64::new(3);
        let hashes: Vec<Vec<u64>> =
            (0..60).map(|_| (0..200).map(|_| SplitMix64::new(random.next_u64() % 6000).next_u64()).collect()).collect();
        let place = |document: usize, at: usize| FirstPlace { document: document as u32, from: at as u32, to: 0 };
        let (mut known, mut expected) = (HashMap::new(), HashMap::new());
        for (document, of) in hashes.iter().enumerate() {
            for (at, &hash) in of.iter().enumerate() {
                let first: FirstPlace = *known.entry(hash).or_insert(place(document, at));
                if first.document < document as u32 {
                    expected.insert((document, at), first);
                }
            }
        }
        // The least table has room for 819 windows.
        let (mut found, mut from, mut readings) = (HashMap::new(), 0, 0);
        loop {
            let (mut table, mut of_reading) = (FirstPlaces::new(0, from), Vec::new());
            for (document, of) in hashes.iter().enumerate() {
                for (at, &hash) in of.iter().enumerate() {
                    let first = table.see(hash, || place(document, at), document as u32);
                    of_reading.extend(first.map(|first| (hash, (document, at), first)));
                }
            }
            let valid = of_reading.into_iter().filter(|(hash, ..)| table.range().contains(&found_by(*hash)));
            found.extend(valid.map(|(_, at, first)| (at, first)));
            readings += 1;
            match table.range().end().checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(found == expected && expected.len() > 1000);
        assert!((8..=16).contains(&readings), "{readings}");
    }
}
