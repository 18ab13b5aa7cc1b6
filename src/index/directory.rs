//! The places in use, and for a given id the places whose documents may have it (`ids.rs`). Knows nothing of signatures
//! or bands.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::arena::{Arena, PLACES_MAX};
use super::ids::IdIndex;
use super::place::Place;
use super::seed::Seed;

/// All places of an index.
pub(super) struct Directory {
    ids: IdIndex,
    /// Places below this have been used.
    used: AtomicU32,
    /// The places that have been used and are empty now.
    free: Mutex<Vec<Place>>,
}

impl Directory {
    pub(super) fn new(id_fingerprint_bits: u32, seed: Seed) -> Self {
        Self { ids: IdIndex::new(id_fingerprint_bits, seed), used: AtomicU32::new(0), free: Mutex::default() }
    }

    /// Returns a place for a document that is loaded. May be called from several threads at once.
    #[inline]
    pub(super) fn next(&self) -> Place {
        Place(self.used.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns an empty place; `None` if there is none left. Prefetches the bucket of the id, for [`Self::enter`]. Only
    /// one call may run at a time.
    pub(super) fn take_for(&self, arena: &Arena, id_fingerprint: u64) -> Option<Place> {
        self.ids.prefetch(arena, id_fingerprint);
        self.free.lock().pop().or_else(|| (u64::from(self.used()) < PLACES_MAX).then(|| self.next()))
    }

    /// Takes back a place that is empty again.
    pub(super) fn give_back(&self, place: Place) {
        self.free.lock().push(place);
    }

    /// Adds the id of a published document.
    #[inline]
    pub(super) fn enter(&self, arena: &Arena, place: Place) {
        self.ids.insert(arena, place);
    }

    /// Removes the id of a document. Call it before the document's place is freed.
    pub(super) fn leave(&self, arena: &Arena, place: Place) {
        self.ids.remove(arena, place);
    }

    /// Returns every place whose document may have the id with this fingerprint.
    pub(super) fn held_by(&self, arena: &Arena, id_fingerprint: u64) -> SmallVec<[Place; 8]> {
        self.ids.candidates(arena, id_fingerprint)
    }

    /// Returns the number of places that have been used. All of them are below this number.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns how many places have been used and are empty now.
    pub(super) fn empty(&self) -> u64 {
        self.free.lock().len() as u64
    }

    /// Resizes one shard of the table of ids, if a shard is due. Returns whether one was due.
    pub(super) fn resize_next(&self, arena: &Arena) -> bool {
        self.ids.resize_next(arena)
    }

    /// Returns the bytes of the table of ids.
    pub(super) fn bytes(&self) -> u64 {
        self.ids.bytes()
    }
}
