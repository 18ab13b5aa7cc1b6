//! Place -> signature, `seq` and the other facts that a lookup needs about a document. The collection's decision lock
//! ensures that there is one writer at a time. Any number of readers read without a lock. A reader reads `seq`, copies
//! the row, and reads `seq` again. If the two values differ, the place was freed or reused in between, and the copy is
//! dropped. (This is a sequence lock; Boehm, "Can seqlocks get along with programming language memory models?", 2012.)
//! All cells are atomics, so a torn copy is a value to discard, never undefined behaviour.

use hapax_core::SignatureShape;

use super::chunks::{Chunks, ROWS_MAX};
use super::labels::{AllLabels, LabelSet};
use super::place::Place;
use super::promotions::Promotions;
use super::sync::{AtomicU64, Ordering, fence};
use crate::types::{Seq, TimestampMs};

/// The maximum number of documents in an index. Places have 31 bits, because tables use the highest bit for themselves.
pub const PLACES_MAX: u64 = ROWS_MAX;

// The row of a place consists of these cells, followed by the signature.

const SEQ: usize = 0;
/// The position in the commit order at which the document is removed, shifted by one bit. The lowest bit says whether
/// the document is a link.
const REMOVED: usize = 1;
const CONTENT: usize = 2;
const ID: usize = 3;
const SIGNATURE: usize = 4;

const LINKED: u64 = 1;

/// A document to put at a place.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub seq: Seq,
    /// A 64-bit fingerprint of its id.
    pub id_fingerprint: u64,
    /// 64 bits of its content hash; 0 if it has none.
    pub content: u64,
    /// Whether it is a link, which has no postings.
    pub linked: bool,
    /// Its packed slots.
    pub signature: &'a [u8],
    /// Its labels.
    pub labels: LabelSet,
    /// The time it was last seen, which is stored if last-seen times are kept.
    pub last_seen: TimestampMs,
}

/// The document at a place at the moment it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The document's `seq`.
    pub seq: Seq,
    /// The position in the commit order at which it is removed; `Seq(0)` if it is not being removed.
    pub removed: Seq,
    /// 64 bits of its content hash; 0 if it has none.
    pub content: u64,
    /// Whether it is a link. After a promotion, this stays set until all earlier readers have finished.
    pub linked: bool,
}

/// The rows of all documents of a collection.
pub(super) struct Arena {
    words: usize,
    signature_bytes: usize,
    rows: Chunks,
    labels: AllLabels,
    promotions: Promotions,
}

impl Arena {
    /// Makes an empty arena for signatures of this shape.
    pub(super) fn new(shape: SignatureShape) -> Self {
        let signature_bytes = shape.bytes();
        let words = signature_bytes.div_ceil(8);
        Self {
            words,
            signature_bytes,
            rows: Chunks::new(SIGNATURE + words),
            labels: AllLabels::new(),
            promotions: Promotions::default(),
        }
    }

    /// Returns the number of 64-bit words that a signature takes.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Puts a document at a free place. The last store makes it visible.
    pub(super) fn publish(&self, place: Place, entry: Entry<'_>) {
        assert_eq!(entry.signature.len(), self.signature_bytes, "signatures of one collection have one length");
        let cells = self.rows.make(place.0);
        debug_assert_eq!(cells[SEQ].load(Ordering::Relaxed), 0, "a place is freed before it is reused");
        // A reader that sees any of the stores below must also see that `seq` has changed to 0 or to the new value.
        fence(Ordering::Release);
        cells[REMOVED].store(u64::from(entry.linked), Ordering::Relaxed);
        cells[CONTENT].store(entry.content, Ordering::Relaxed);
        cells[ID].store(entry.id_fingerprint, Ordering::Relaxed);
        self.labels.set(place, entry.labels);
        for (cell, word) in cells[SIGNATURE..].iter().zip(words(entry.signature)) {
            cell.store(word, Ordering::Relaxed);
        }
        cells[SEQ].store(entry.seq.0, Ordering::Release);
    }

    /// Sets the position in the commit order at which the document is removed; `Seq(0)` undoes this.
    pub(super) fn set_removed(&self, place: Place, removed: Seq) {
        let cell = &self.published(place)[REMOVED];
        cell.store(removed.0 << 1 | cell.load(Ordering::Relaxed) & LINKED, Ordering::Release);
    }

    /// Makes a link an ordinary document for all views at or after the position `at` in the commit order.
    pub(super) fn promote(&self, link: Place, at: Seq) {
        self.promotions.add(link, at);
    }

    /// Undoes [`Self::promote`].
    pub(super) fn demote(&self, link: Place) {
        self.promotions.remove(link);
    }

    /// Makes a promoted link an ordinary document for all views.
    pub(super) fn unlink(&self, link: Place) {
        let cell = &self.published(link)[REMOVED];
        cell.store(cell.load(Ordering::Relaxed) & !LINKED, Ordering::Release);
        // This comes last, because a reader that does not find the link among the promotions reads the cell again.
        self.promotions.remove(link);
    }

    /// Returns the position in the commit order at which a link is promoted, if the arena still marks it as a link
    /// because earlier readers have not finished.
    pub(super) fn promoted_at(&self, link: Place) -> Option<Seq> {
        self.promotions.at(link)
    }

    /// Returns the labels of all documents.
    pub(super) fn labels(&self) -> &AllLabels {
        &self.labels
    }

    /// Empties a place whose postings have been removed.
    pub(super) fn free(&self, place: Place) {
        self.published(place)[SEQ].store(0, Ordering::Release);
    }

    /// Returns the document at the place, and copies as much of its signature into `words` as fits. Returns `None` if
    /// the place is free or changes while it is read.
    pub(super) fn read(&self, place: Place, words: &mut [u64]) -> Option<Occupant> {
        let cells = self.rows.row(place.0)?;
        let seq = cells[SEQ].load(Ordering::Acquire);
        if seq == 0 {
            return None;
        }
        for (word, cell) in words.iter_mut().zip(&cells[SIGNATURE..]) {
            *word = cell.load(Ordering::Relaxed);
        }
        let removed = cells[REMOVED].load(Ordering::Relaxed);
        let content = cells[CONTENT].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let unchanged = cells[SEQ].load(Ordering::Relaxed) == seq;
        let occupant = Occupant { seq: Seq(seq), removed: Seq(removed >> 1), content, linked: removed & LINKED != 0 };
        unchanged.then_some(occupant)
    }

    /// Like [`Arena::read`], without the signature.
    pub(super) fn peek(&self, place: Place) -> Option<Occupant> {
        self.read(place, &mut [])
    }

    /// Returns whether the document at the place is a link, which has no postings.
    pub(super) fn is_linked(&self, place: Place) -> bool {
        self.rows.row(place.0).is_some_and(|cells| cells[REMOVED].load(Ordering::Relaxed) & LINKED != 0)
    }

    // The results of the functions below are valid only while the place cannot be freed. A place with a posting cannot
    // be freed while the table of the posting is locked.

    /// Returns the fingerprint of the id at a place.
    pub(super) fn id_fingerprint(&self, place: Place) -> u64 {
        self.published(place)[ID].load(Ordering::Relaxed)
    }

    /// Returns the `seq` at a place.
    #[inline]
    pub(super) fn seq(&self, place: Place) -> Seq {
        Seq(self.published(place)[SEQ].load(Ordering::Relaxed))
    }

    /// Returns 64 bits of the content hash at a place; 0 if there is none.
    #[inline]
    pub(super) fn content(&self, place: Place) -> u64 {
        self.published(place)[CONTENT].load(Ordering::Relaxed)
    }

    /// Returns the cells of the signature at a place.
    #[inline]
    pub(super) fn signature(&self, place: Place) -> &[AtomicU64] {
        &self.published(place)[SIGNATURE..]
    }

    /// Prefetches a word of the signature from memory.
    #[inline]
    pub(super) fn prefetch(&self, place: Place, word: usize) {
        if let Some(cells) = self.rows.row(place.0) {
            hapax_core::prefetch(&cells[SIGNATURE + word]);
        }
    }

    /// Like [`Self::prefetch`], for the id's fingerprint and the cells next to it.
    #[inline]
    pub(super) fn prefetch_head(&self, place: Place) {
        if let Some(cells) = self.rows.row(place.0) {
            hapax_core::prefetch(&cells[ID]);
        }
    }

    /// Prefetches everything that [`Self::read`] reads for a signature of `words` words.
    #[inline]
    pub(super) fn prefetch_row(&self, place: Place, words: usize) {
        if let Some(cells) = self.rows.row(place.0) {
            let cells = &cells[..SIGNATURE + words];
            cells.iter().step_by(8).chain(cells.last()).for_each(hapax_core::prefetch);
        }
    }

    /// Returns the bytes that this many places take.
    pub(super) fn bytes_for(&self, places: u64) -> u64 {
        places * (SIGNATURE + self.words) as u64 * size_of::<u64>() as u64
    }

    #[inline]
    fn published(&self, place: Place) -> &[AtomicU64] {
        self.rows.row(place.0).expect("the place has been published")
    }
}

/// Converts packed slots to words in memory order. The missing bytes are zero. If the words are read as bytes, they
/// begin with the signature.
pub(super) fn words_of(signature: &[u8], to: &mut Vec<u64>) {
    to.clear();
    to.extend(words(signature));
}

#[inline]
fn words(signature: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = signature.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(last);
    whole.iter().copied().chain(last).map(u64::from_ne_bytes)
}
