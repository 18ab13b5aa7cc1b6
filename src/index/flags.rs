//! Facts about a place under one banding, one bit per fact, in rows that never move.

use super::chunks::Chunks;
use super::place::Place;
use super::sync::{AtomicU64, Ordering};

/// A fact about a place.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    /// The place is in the index.
    Here,
    /// The document at the place can be found by its bands, either directly or through the leader of its group.
    Findable,
    Posted,
    /// The place leads a group of two or more documents.
    Leads,
}

const FLAGS: usize = 4;

/// The flags of all places.
pub(super) struct Flags {
    /// Each row has the flags of 64 places.
    rows: Chunks,
    /// The number of places whose flags take memory: all places up to the highest one that was ever in the index.
    places: AtomicU64,
}

impl Flags {
    pub(super) fn new() -> Self {
        Self { rows: Chunks::new(FLAGS), places: AtomicU64::new(0) }
    }

    /// Marks a place as being in the index.
    pub(super) fn enter(&self, place: Place, findable: bool) {
        self.places.fetch_max(u64::from(place.0) + 1, Ordering::Relaxed);
        self.set(place, Flag::Here, true);
        self.set(place, Flag::Findable, findable);
    }

    /// Clears all flags of a place.
    pub(super) fn clear(&self, place: Place) {
        [Flag::Here, Flag::Findable, Flag::Posted, Flag::Leads]
            .into_iter()
            .for_each(|flag| self.set(place, flag, false));
    }

    #[inline]
    pub(super) fn has(&self, place: Place, flag: Flag) -> bool {
        let (row, bit) = row_and_bit(place);
        self.rows.row(row).is_some_and(|cells| cells[flag as usize].load(Ordering::Acquire) & bit != 0)
    }

    pub(super) fn set(&self, place: Place, flag: Flag, on: bool) {
        let (row, bit) = row_and_bit(place);
        let cell = &self.rows.make(row)[flag as usize];
        if on {
            cell.fetch_or(bit, Ordering::Release);
        } else {
            cell.fetch_and(!bit, Ordering::Release);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.places.load(Ordering::Relaxed) * FLAGS as u64 / u64::from(u8::BITS)
    }
}

fn row_and_bit(place: Place) -> (u32, u64) {
    (place.0 / u64::BITS, 1 << (place.0 % u64::BITS))
}
