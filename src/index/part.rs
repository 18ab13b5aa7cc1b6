//! Documents in memory: a row for each, and tables over the rows for each banding.
//! Any number of readers search while one writer makes changes. Knows nothing of ids, or of which places are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hapax_core::{Banding, SignatureShape};
use parking_lot::RwLock;

use super::arena::{Arena, Entry};
use super::band_tables::BandTables;
use super::fullest::{FullBucket, fullest};
use super::last_seen::LastSeen;
use super::memory::PartBytes;
use super::place::Place;
use super::search::{Bounds, Query, Search, search};
use super::seed::Seed;
use super::survey::{Survey, survey};
use super::view::View;
use crate::types::{Seq, TimestampMs};

/// The part of an index that is in memory and takes all changes.
pub(super) struct MemoryPart {
    shape: SignatureShape,
    seed: Seed,
    arena: Arena,
    tables: RwLock<Tables>,
    /// Whether last-seen times are kept. This is a copy outside of the lock, because threads that load documents would
    /// contend for the lock.
    keeps_last_seen: AtomicBool,
}

/// The tables and times, which can be replaced while the index is in use.
struct Tables {
    now: Arc<BandTables>,
    /// The tables of a new banding, while they are being built.
    next: Option<Arc<BandTables>>,
    /// Last-seen times; absent if documents never expire.
    last_seen: Option<Arc<LastSeen>>,
}

/// A banding that is being built next to the present one. After [`Index::begin_banding`](super::Index::begin_banding),
/// every change keeps it up to date until it takes over or is abandoned.
#[must_use]
pub struct NextBanding {
    tables: Arc<BandTables>,
    /// Documents up to this `seq` existed before changes began to enter this banding.
    through: Seq,
    /// The next place to look at.
    at: u32,
    end: u32,
}

impl Tables {
    fn all(&self) -> impl Iterator<Item = &BandTables> {
        [&self.now].into_iter().chain(&self.next).map(|tables| &**tables)
    }
}

impl MemoryPart {
    pub(super) fn new(shape: SignatureShape, banding: Banding, seed: Seed) -> Self {
        let now = Arc::new(BandTables::new(banding, shape, seed));
        Self {
            shape,
            seed,
            arena: Arena::new(shape),
            tables: RwLock::new(Tables { now, next: None, last_seen: None }),
            keeps_last_seen: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn rows(&self) -> &Arena {
        &self.arena
    }

    pub(super) fn shape(&self) -> SignatureShape {
        self.shape
    }

    /// Puts a document at an empty place, without its postings, which [`Self::build`] makes. May be called from several
    /// threads at once.
    pub(super) fn load(&self, place: Place, entry: Entry<'_>) {
        self.arena.publish(place, entry);
        if self.keeps_last_seen.load(Ordering::Relaxed)
            && let Some(last_seen) = &self.tables.read().last_seen
        {
            last_seen.set(place, entry.last_seen);
        }
    }

    /// Makes the postings of all places below `places`, in parallel. `progress` is called with the share that is done,
    /// from 0 to 1.
    pub(super) fn build(&self, places: u32, progress: impl Fn(f64) + Sync) {
        let places: Vec<Place> = (0..places).map(Place).collect();
        let tables = self.tables.read();
        let postings = places.len().max(1) as f64 * f64::from(tables.now.bands().banding().bands());
        let placed = AtomicU64::new(0);
        tables.now.insert_all(
            &self.arena,
            &places,
            |place| !self.arena.is_linked(place),
            |count| {
                let placed = placed.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
                progress(placed as f64 / postings);
            },
        );
    }

    /// Puts a document at an empty place, with its postings.
    pub(super) fn enter(&self, place: Place, entry: Entry<'_>) {
        let tables = self.tables.read();
        // The time is set first, so that expiry cannot see the new document with the time of the former document at
        // this place.
        if let Some(last_seen) = &tables.last_seen {
            last_seen.set(place, entry.last_seen);
        }
        self.arena.publish(place, entry);
        tables.all().for_each(|tables| tables.insert(&self.arena, place, !entry.linked));
    }

    /// Removes the postings of a document.
    pub(super) fn unpost(&self, place: Place) {
        self.tables.read().all().for_each(|tables| tables.remove(&self.arena, place));
    }

    /// Resizes one shard of the tables, if a shard is due. Returns whether one was due.
    pub(super) fn resize_next(&self) -> bool {
        // The lock is held for one shard only, so that other tables can take over soon.
        self.tables.read().all().any(|tables| tables.resize_next(&self.arena))
    }

    /// Makes a link an ordinary document for all views at or after the position `at` in the commit order.
    pub(super) fn promote(&self, link: Place, at: Seq) {
        // The promotion is noted before a search can find the link.
        self.arena.promote(link, at);
        self.tables.read().all().for_each(|tables| tables.set_findable(&self.arena, link, true));
    }

    /// Undoes [`Self::promote`].
    pub(super) fn demote(&self, link: Place) {
        self.tables.read().all().for_each(|tables| tables.set_findable(&self.arena, link, false));
        self.arena.demote(link);
    }

    /// Finds the documents of a view that are similar to a query.
    pub(super) fn search(&self, view: View, query: &Query<'_>, bounds: Bounds) -> Search {
        // The lock is held until the search is over, because a banding that was replaced is no longer kept up to date.
        let tables = self.tables.read();
        search(&self.arena, &tables.now, view, query, bounds)
    }

    pub(super) fn banding(&self) -> Banding {
        self.tables.read().now.bands().banding()
    }

    /// Measures how many documents are in the buckets of the documents at these places.
    pub(super) fn survey(&self, sample: impl Iterator<Item = Place>, all: bool, bucket_read_max: usize) -> Survey {
        // This takes long, so the lock is not held for it.
        let now = Arc::clone(&self.tables.read().now);
        let mut seen = survey(&now, &self.arena, sample, all, bucket_read_max);
        // The tables of a banding that was replaced are no longer kept up to date.
        if !Arc::ptr_eq(&now, &self.tables.read().now) {
            seen.missing.clear();
        }
        seen
    }

    /// Returns up to `limit` of the fullest buckets, and for each of them up to `samples` documents.
    pub(super) fn fullest(&self, limit: usize, samples: usize, all: bool) -> Vec<FullBucket> {
        // This takes long, so the lock is not held for it.
        let now = Arc::clone(&self.tables.read().now);
        fullest(&now, &self.arena, limit, samples, all)
    }

    /// Starts to build another banding for the places below `end`.
    pub(super) fn begin_banding(&self, banding: Banding, through: Seq, end: u32) -> NextBanding {
        let tables = Arc::new(BandTables::new(banding, self.shape, self.seed));
        self.tables.write().next = Some(Arc::clone(&tables));
        NextBanding { tables, through, at: 0, end }
    }

    /// Adds documents that existed before [`Self::begin_banding`] to the next banding. Looks at `documents_max` places
    /// at most, and returns whether those were the last.
    pub(super) fn fill(&self, next: &mut NextBanding, documents_max: u32) -> bool {
        let tables = self.tables.read();
        let end = next.end.min(next.at.saturating_add(documents_max));
        for place in (next.at..end).map(Place) {
            let older = self.arena.peek(place).is_some_and(|seen| seen.seq <= next.through);
            // Whether a document can be found is read from the present banding, not from the arena's flags: a link that
            // is being promoted can be found already, and may be in the new banding already.
            if older && tables.now.here(place) && !next.tables.here(place) {
                next.tables.insert(&self.arena, place, tables.now.is_findable(place));
            }
        }
        next.at = end;
        end == next.end
    }

    /// Makes searches use a complete new banding from now on.
    pub(super) fn take_over(&self, next: NextBanding) {
        let mut tables = self.tables.write();
        // Both fields are replaced under one lock. A change between the two steps would enter its postings twice.
        let old = std::mem::replace(&mut tables.now, next.tables);
        tables.next = None;
        // The lock is released first, so that searches do not wait until the memory is freed.
        drop(tables);
        drop(old);
    }

    /// Stops changes from entering a banding that was being built.
    pub(super) fn abandon(&self, _next: &NextBanding) {
        self.tables.write().next = None;
    }

    pub(super) fn keep_last_seen(&self, made: Option<TimestampMs>) {
        let mut tables = self.tables.write();
        let held = tables.last_seen.take();
        tables.last_seen = made.map(|made| held.unwrap_or_else(|| Arc::new(LastSeen::new(made))));
        self.keeps_last_seen.store(tables.last_seen.is_some(), Ordering::Relaxed);
    }

    pub(super) fn last_seen(&self) -> Option<Arc<LastSeen>> {
        self.tables.read().last_seen.clone()
    }

    /// Returns the memory that this part takes.
    pub(super) fn bytes(&self) -> PartBytes {
        let tables = self.tables.read();
        let bands = |tables: &BandTables| tables.bands().banding().bands();
        PartBytes {
            row_bytes: self.arena.bytes_for(1),
            last_seen_bytes: tables.last_seen.as_ref().map_or(0, |_| LastSeen::bytes_for(1)),
            labels_bytes: self.arena.labels().bytes_of_place(),
            table_bytes: tables.all().map(BandTables::bytes).sum(),
            bands: [bands(&tables.now), tables.next.as_deref().map_or(0, bands)],
        }
    }
}
