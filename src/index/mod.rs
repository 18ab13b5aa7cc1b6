//! The index: what is in memory of every document of a collection, found by signature or by id.
//! In: packed signatures with their `seq`. Out: [`Place`]s of documents, what is known of each, and those like a query.
//! Knows nothing of ids' text, of storage, or of what becomes of what it finds.
//!
//! [`Index`] is the one door. Behind it are rows (`arena.rs`), the tables of each banding over them (`bands.rs`) and the
//! table of ids (`ids.rs`): whoever changes a document changes all of them, through one call.

mod ahead;
mod arena;
mod bands;
mod bucket_sizes;
mod chunks;
mod comparison;
mod equals;
mod fullest;
mod ids;
mod last_seen;
mod leaving;
mod memory;
mod place;
mod place_list;
mod pool;
mod rows;
mod search;
mod seed;
mod shard;

mod sync;
mod table;
mod view;

#[cfg(all(test, not(hapax_loom)))]
mod index_tests;
#[cfg(all(test, not(hapax_loom)))]
mod model_tests;
#[cfg(all(test, hapax_loom))]
mod models;
#[cfg(all(test, not(hapax_loom)))]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hapax_core::{BandKey, Banding, SignatureShape};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use self::leaving::Leaving;
use self::memory::Held;
use self::seed::Seed;
use crate::types::{Seq, TimestampMs};

pub use arena::{Arena, Entry, PLACES_MAX, PLACES_MAX as SLOTS_MAX, Seen};
pub use bands::{BandIndex, GroupHit, Hit, Probe};
pub use bucket_sizes::BucketSizes;
pub use comparison::Comparison;
pub use equals::{Group, Members, Twin};
pub use fullest::Bucket;
pub use ids::IdIndex;
pub use last_seen::{Due, LastSeen, overdue};
pub use leaving::Reading;
pub use memory::IndexBytes;
pub use place::{Place, Walk};
pub use search::{Bounds, Candidate, Cost, Query, Search};
pub use view::View;

/// How an index is made.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// Of all its signatures.
    pub shape: SignatureShape,
    /// The banding to begin with.
    pub banding: Banding,
    /// Bits by which ids are told apart, 1 to 64.
    pub id_fingerprint_bits: u32,
    /// Decides how tables are laid out: the process's own if absent. For tests and measurements.
    pub seed: Option<u64>,
}

/// A part that is on disk, which a search has to read first. Uninhabited today: the one part is in memory. A part on disk
/// makes values of it; they are resolved outside the decision lock, by [`Index::fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsDisk {}

/// Documents that share a band key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullBucket {
    /// Which band.
    pub band: u32,
    /// Its key.
    pub key: BandKey,
    /// How many documents.
    pub documents: usize,
    /// Some of them, old and new.
    pub sample: Vec<Seen>,
}

/// How many documents share a band key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// In the fullest bucket.
    pub largest: u64,
    /// In 99 of 100 buckets at most.
    pub p99: u64,
}

/// A banding that is being built beside the present one. From [`Index::begin_banding`] on every change keeps it up to
/// date. Give it back to [`Index::take_over`] or [`Index::abandon`].
#[must_use]
pub struct NextBanding {
    tables: Arc<BandIndex>,
    /// Documents up to here were there before changes began to enter it themselves.
    through: Seq,
    /// The next place to look at.
    at: u32,
    end: u32,
}

/// All documents of a collection, in memory.
///
/// Opening comes first: [`load`](Self::load) from any threads, then [`build`](Self::build). After that changes come one
/// at a time, under the caller's decision lock, while any number of readers look without one.
pub struct Index {
    shape: SignatureShape,
    seed: Seed,
    arena: Arena,
    ids: IdIndex,
    kept: RwLock<Kept>,
    /// Whether last-seen times are kept: loading threads would get in each other's way with the lock.
    keeps_last_seen: AtomicBool,
    /// Places below this have been used.
    used: AtomicU32,
    /// Used places that are empty.
    free: Mutex<Vec<Place>>,
    leaving: Leaving,
}

/// What can be exchanged while others look.
struct Kept {
    bands: Arc<BandIndex>,
    /// Under a new banding, while it is being built.
    next: Option<Arc<BandIndex>>,
    /// When documents were last seen; absent if they stay for ever.
    last_seen: Option<Arc<LastSeen>>,
}

impl Kept {
    fn bandings(&self) -> impl Iterator<Item = &BandIndex> {
        [&self.bands].into_iter().chain(&self.next).map(|bands| &**bands)
    }
}

impl Index {
    /// An empty index.
    pub fn new(options: &IndexOptions) -> Self {
        let &IndexOptions { shape, banding, id_fingerprint_bits, seed } = options;
        let seed = seed.map_or_else(Seed::of_process, Seed::fixed);
        let bands = Arc::new(BandIndex::seeded(banding, shape, seed));
        Self {
            shape,
            seed,
            arena: Arena::new(shape),
            ids: IdIndex::seeded(id_fingerprint_bits, seed),
            kept: RwLock::new(Kept { bands, next: None, last_seen: None }),
            keeps_last_seen: AtomicBool::new(false),
            used: AtomicU32::new(0),
            free: Mutex::default(),
            leaving: Leaving::default(),
        }
    }

    // Opening.

    /// Takes a document in, without its postings: [`build`](Self::build) makes those. From several threads at once.
    pub fn load(&self, entry: Entry<'_>) -> Place {
        let place = Place(self.used.fetch_add(1, Ordering::Relaxed));
        self.arena.publish(place, entry);
        self.ids.insert(&self.arena, place);
        if self.keeps_last_seen.load(Ordering::Relaxed)
            && let Some(last_seen) = &self.kept.read().last_seen
        {
            last_seen.set(place, entry.last_seen);
        }
        place
    }

    /// Makes the postings of all that was loaded, in parallel; once, before anything else. `progress` is told the share
    /// that is done, from 0 to 1.
    pub fn build(&self, progress: impl Fn(f64) + Sync) {
        let places: Vec<Place> = (0..self.used()).map(Place).collect();
        let kept = self.kept.read();
        let postings = places.len().max(1) as f64 * f64::from(kept.bands.banding().bands());
        let placed = AtomicU64::new(0);
        kept.bands.insert_all(
            &self.arena,
            &places,
            |place| !self.arena.is_linked(place),
            |count| {
                let placed = placed.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
                progress(placed as f64 / postings);
            },
        );
    }

    // Changes, one at a time.

    /// Takes a document in, for everybody to see who may; `None` if the index holds [`PLACES_MAX`].
    pub fn enter(&self, entry: Entry<'_>) -> Option<Place> {
        let place = self.take_place()?;
        let kept = self.kept.read();
        // Before the sweeper can take it for the document that was here.
        if let Some(last_seen) = &kept.last_seen {
            last_seen.set(place, entry.last_seen);
        }
        self.arena.publish(place, entry);
        kept.bandings().for_each(|bands| bands.insert(&self.arena, place, !entry.linked));
        self.ids.insert(&self.arena, place);
        Some(place)
    }

    /// Takes a document out at once: for one that nobody was told of. Returns which it was.
    pub fn withdraw(&self, place: Place) -> Seq {
        let seen = self.arena.peek(place).expect("a place is emptied once");
        // Postings first, so that none ever names an empty place.
        self.kept.read().bandings().for_each(|bands| bands.remove(&self.arena, place));
        self.ids.remove(&self.arena, place);
        self.arena.free(place);
        self.free.lock().push(place);
        seen.seq
    }

    /// Hides a document from that place in the order on.
    pub fn leave(&self, place: Place, at: Seq) {
        self.arena.set_removed(place, at);
    }

    /// Takes [`leave`](Self::leave) back.
    pub fn stay(&self, place: Place) {
        self.arena.set_removed(place, Seq(0));
    }

    /// Notes that nobody can tell whether a document is on disk: no view of what is durable has it any more.
    pub fn doubt(&self, place: Place) {
        self.arena.set_removed(place, view::DOUBTFUL);
    }

    /// Makes a link findable by its bands, or unfindable again. A banding that is being built and has not got to it yet
    /// takes it as it is then.
    pub fn set_findable(&self, place: Place, findable: bool) {
        let kept = self.kept.read();
        kept.bandings().for_each(|bands| bands.set_findable(&self.arena, place, findable));
    }

    /// Makes a document a link, or an ordinary one.
    pub fn set_linked(&self, place: Place, linked: bool) {
        self.arena.set_linked(place, linked);
    }

    // Removal, once earlier readers have left.

    /// Keeps what is readable now readable until dropped. Call it before taking the durable place in the order.
    pub fn reading(&self) -> Reading {
        self.leaving.reading()
    }

    /// These documents are gone, on disk too. They wait for readers that came before; call it after moving the durable
    /// place on.
    pub fn gone(&self, places: Vec<Place>) {
        self.leaving.gone(places);
    }

    /// The document to [`remove`](Self::remove) next; `None` if none is waiting, or a reader may look for the oldest.
    pub fn next_removable(&self) -> Option<Place> {
        self.leaving.next_removable()
    }

    /// Whether any documents wait to be removed.
    pub fn has_leaving(&self) -> bool {
        self.leaving.any()
    }

    /// Takes out what [`next_removable`](Self::next_removable) returned; a change like the others. Returns which it was.
    pub fn remove(&self, place: Place) -> Seq {
        let seq = self.withdraw(place);
        self.leaving.removed();
        seq
    }

    // Reading.

    /// Every place whose document's id may be the one with this fingerprint.
    pub fn held_by(&self, id_fingerprint: u64) -> SmallVec<[Place; 8]> {
        self.ids.candidates(&self.arena, id_fingerprint)
    }

    /// What is at a place; `None` if it is empty or changes while being read.
    pub fn peek(&self, place: Place) -> Option<Seen> {
        self.arena.peek(place)
    }

    /// Finds the documents of a view that are like a query.
    pub fn search(&self, view: View, query: &Query<'_>, bounds: Bounds) -> Result<Search, NeedsDisk> {
        // Held until the search is over: a banding that has been taken over is no longer kept up to date.
        let kept = self.kept.read();
        Ok(search::search(&self.arena, &kept.bands, view, query, bounds))
    }

    /// Adds documents that are known by other means, if they are still at their places, and ranks again.
    pub fn consider(&self, search: &mut Search, query: &Query<'_>, known: &[(Seq, Place)]) {
        search::consider(&self.arena, self.shape, search, query, known);
    }

    /// How many of the documents at these places have as many equal slots as the query asks for.
    pub fn matching(&self, query: &Query<'_>, places: impl Iterator<Item = Place>) -> usize {
        search::matching(&self.arena, self.shape, query, places)
    }

    /// Reads what a search needs from the disk. Not under the decision lock.
    pub fn fetch(&self, needs: NeedsDisk) {
        match needs {}
    }

    /// The banding that searches go by.
    pub fn banding(&self) -> Banding {
        self.kept.read().bands.banding()
    }

    /// How many documents share a band key.
    pub fn fullness(&self) -> Fullness {
        let kept = self.kept.read();
        let sizes = kept.bands.sizes();
        Fullness { largest: sizes.largest(), p99: sizes.quantile(0.99) }
    }

    /// The fullest buckets, at most `limit`, each with up to `samples` of its documents; the fullest first. Buckets of
    /// up to eight documents are looked at only with `all`, which takes a look at every posting.
    pub fn fullest(&self, limit: usize, samples: usize, all: bool) -> Vec<FullBucket> {
        // It takes long: no lock is held meanwhile.
        let bands = Arc::clone(&self.kept.read().bands);
        let fullest = bands.fullest(&self.arena, limit, samples, all).into_iter();
        let full = |Bucket { band, key, documents, sample }| {
            let sample = sample.into_iter().filter_map(|place| self.arena.peek(place)).collect();
            FullBucket { band, key, documents, sample }
        };
        fullest.map(full).collect()
    }

    // Another banding. The caller holds its decision lock for each call.

    /// Begins to build another banding beside the present one. `through` is the last `seq` given out: later documents
    /// enter both. One at a time.
    pub fn begin_banding(&self, banding: Banding, through: Seq) -> NextBanding {
        let tables = Arc::new(BandIndex::seeded(banding, self.shape, self.seed));
        self.kept.write().next = Some(Arc::clone(&tables));
        NextBanding { tables, through, at: 0, end: self.used() }
    }

    /// Adds documents that were there before, looking at no more than so many; says whether that was all.
    pub fn fill(&self, next: &mut NextBanding, documents_max: u32) -> bool {
        let kept = self.kept.read();
        let end = next.end.min(next.at.saturating_add(documents_max));
        for place in (next.at..end).map(Place) {
            let older = self.arena.peek(place).is_some_and(|seen| seen.seq <= next.through);
            // By what the present banding has, and not by the arena's flags: a link that is being promoted can be found,
            // and may be in the new banding already.
            if older && kept.bands.here(place) && !next.tables.here(place) {
                next.tables.insert(&self.arena, place, kept.bands.is_findable(place));
            }
        }
        next.at = end;
        end == next.end
    }

    /// Searches go by a complete new banding from here on.
    pub fn take_over(&self, next: NextBanding) {
        let mut kept = self.kept.write();
        // Both at once: a change between the two would enter its postings twice.
        let old = std::mem::replace(&mut kept.bands, next.tables);
        kept.next = None;
        // Searches need not wait until its memory is given back.
        drop(kept);
        drop(old);
    }

    /// Forgets a banding that was being built.
    pub fn abandon(&self, next: NextBanding) {
        self.kept.write().next = None;
        drop(next);
    }

    // Last-seen times.

    /// Keeps last-seen times, of a collection made then, or with `None` no longer. If they are kept already, nothing
    /// changes. A change like the others.
    pub fn keep_last_seen(&self, made: Option<TimestampMs>) {
        let mut kept = self.kept.write();
        let held = kept.last_seen.take();
        kept.last_seen = made.map(|made| held.unwrap_or_else(|| Arc::new(LastSeen::new(made))));
        self.keeps_last_seen.store(kept.last_seen.is_some(), Ordering::Relaxed);
    }

    /// When documents were last seen; absent if that is not kept.
    pub fn last_seen(&self) -> Option<Arc<LastSeen>> {
        self.kept.read().last_seen.clone()
    }

    /// Every place that has been used so far, whether or not a document is there now.
    pub fn places(&self, from: Walk) -> impl Iterator<Item = Place> + use<> {
        from.places(self.used())
    }

    // Memory.

    /// Bytes by part.
    pub fn bytes(&self) -> IndexBytes {
        self.bytes_of(&self.kept.read())
    }

    /// Places in use, without those whose document is gone and only waits for earlier readers.
    pub fn documents(&self) -> u64 {
        u64::from(self.used()).saturating_sub(self.empty())
    }

    /// What the documents take of the memory budget.
    pub fn claim(&self) -> u64 {
        self.held().claim()
    }

    /// What one document more takes of the memory budget.
    pub fn claim_of_one(&self) -> u64 {
        self.held().claim_of_one()
    }

    fn held(&self) -> Held {
        let kept = self.kept.read();
        let next = kept.next.as_ref().map_or(0, |next| next.banding().bands());
        let last_seen = kept.last_seen.as_ref().map_or(0, |_| LastSeen::bytes_for(1));
        Held {
            bytes: self.bytes_of(&kept),
            bands: [kept.bands.banding().bands(), next],
            row_bytes: self.arena.bytes_for(1) + last_seen,
            documents: self.documents(),
            any_empty: self.empty() > 0,
        }
    }

    fn bytes_of(&self, kept: &Kept) -> IndexBytes {
        let places = u64::from(self.used());
        IndexBytes {
            signatures: self.arena.bytes_for(places),
            postings: kept.bandings().map(BandIndex::bytes).sum(),
            ids: self.ids.bytes(),
            last_seen: kept.last_seen.as_ref().map_or(0, |_| LastSeen::bytes_for(places)),
        }
    }

    fn empty(&self) -> u64 {
        self.free.lock().len() as u64 + self.leaving.count()
    }

    fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    fn take_place(&self) -> Option<Place> {
        self.free.lock().pop().or_else(|| {
            let used = self.used();
            (u64::from(used) < PLACES_MAX).then(|| {
                self.used.store(used + 1, Ordering::Relaxed);
                Place(used)
            })
        })
    }
}
