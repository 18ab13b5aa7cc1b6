//! The index: what is in memory of every document of a collection, found by signature or by id.
//! In: packed signatures with their `seq`. Out: [`Place`]s of documents, what is known of each, and those like a query.
//! Knows nothing of ids' text, of storage, or of what becomes of what it finds.
//!
//! [`Index`] is the one door: whoever changes a document changes it everywhere, through one call. Behind it is a
//! directory of places and ids (`directory.rs`) above parts. Today there is one part, in memory (`part.rs`): a row of
//! each document (`arena.rs`), and for each banding (`bands.rs`) tables over the rows (`band_tables.rs`), which searches
//! probe (`probe.rs`). A part on disk would be another, which [`NeedsDisk`] tells of.

mod ahead;
mod arena;
mod band_rows;
mod band_tables;
mod bands;
mod bucket_sizes;
mod chunks;
mod directory;
mod equals;
mod flags;
mod fullest;
mod group;
mod ids;
mod last_seen;
mod leaving;
mod memory;
mod part;
mod place;
mod place_list;
mod pool;
mod probe;
mod search;
mod seed;
mod shard;
mod sync;
mod table;
mod verifier;
mod view;

#[cfg(all(test, not(hapax_loom)))]
mod concurrency_tests;
#[cfg(all(test, not(hapax_loom)))]
mod index_tests;
#[cfg(all(test, hapax_loom))]
mod loom_tests;
#[cfg(all(test, not(hapax_loom)))]
mod tables_tests;

use std::sync::Arc;

use hapax_core::{Banding, SignatureShape};
use smallvec::SmallVec;

use self::directory::Directory;
use self::leaving::Leaving;
use self::memory::Holding;
use self::part::MemoryPart;
use self::seed::Seed;
use crate::types::{Seq, TimestampMs};

pub use arena::{Entry, Occupant, PLACES_MAX};
pub use bucket_sizes::Fullness;
pub use fullest::FullBucket;
pub use last_seen::{Due, LastSeen, overdue};
pub use leaving::Reading;
pub use memory::IndexBytes;
pub use part::NextBanding;
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

/// All documents of a collection, in memory.
///
/// Opening comes first: [`load`](Self::load) from any threads, then [`build`](Self::build). After that changes come one
/// at a time, under the caller's decision lock, while any number of readers look without one.
pub struct Index {
    directory: Directory,
    part: MemoryPart,
    leaving: Leaving,
}

impl Index {
    pub fn new(options: &IndexOptions) -> Self {
        let &IndexOptions { shape, banding, id_fingerprint_bits, seed } = options;
        let seed = seed.map_or_else(Seed::of_process, Seed::fixed);
        Self {
            directory: Directory::new(id_fingerprint_bits, seed),
            part: MemoryPart::new(shape, banding, seed),
            leaving: Leaving::default(),
        }
    }

    // Opening.

    /// Adds a document without its postings: [`build`](Self::build) makes those. From several threads at once.
    pub fn load(&self, entry: Entry<'_>) -> Place {
        let place = self.directory.next();
        self.part.load(place, entry);
        self.directory.enter(self.part.rows(), place);
        place
    }

    /// Makes the postings of all that was loaded, in parallel; once, before anything else. `progress` is told the share
    /// that is done, from 0 to 1.
    pub fn build(&self, progress: impl Fn(f64) + Sync) {
        self.part.build(self.directory.used(), progress);
    }

    // Changes, one at a time.

    /// Adds a document; `None` if the index holds [`PLACES_MAX`].
    pub fn enter(&self, entry: Entry<'_>) -> Option<Place> {
        let place = self.directory.take()?;
        self.part.enter(place, entry);
        self.directory.enter(self.part.rows(), place);
        Some(place)
    }

    /// Removes a document at once, which undoes [`enter`](Self::enter). Returns which it was.
    pub fn withdraw(&self, place: Place) -> Seq {
        let rows = self.part.rows();
        let occupant = rows.peek(place).expect("a place is emptied once");
        // Postings first, so that none ever names an empty place.
        self.part.unpost(place);
        self.directory.leave(rows, place);
        rows.free(place);
        self.directory.give_back(place);
        occupant.seq
    }

    /// A document is removed at that place in the order: views from there on do not have it.
    pub fn leave(&self, place: Place, at: Seq) {
        self.part.rows().set_removed(place, at);
    }

    /// Takes [`leave`](Self::leave) back.
    pub fn stay(&self, place: Place) {
        self.part.rows().set_removed(place, Seq(0));
    }

    /// Marks a document in doubt: it is unclear whether it is on disk. No view has it any more.
    pub fn doubt(&self, place: Place) {
        self.part.rows().set_removed(place, view::DOUBTFUL);
    }

    /// Makes a link findable by its bands, or unfindable again. A banding that is being built and has not got to it yet
    /// takes it as it is then.
    pub fn set_findable(&self, place: Place, findable: bool) {
        self.part.set_findable(place, findable);
    }

    /// Makes a document a link, or an ordinary one.
    pub fn set_linked(&self, place: Place, linked: bool) {
        self.part.rows().set_linked(place, linked);
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

    /// Removes what [`next_removable`](Self::next_removable) returned; a change like the others. Returns which it was.
    pub fn remove(&self, place: Place) -> Seq {
        let seq = self.withdraw(place);
        self.leaving.removed();
        seq
    }

    // Reading.

    /// Every place whose document's id may be the one with this fingerprint.
    pub fn held_by(&self, id_fingerprint: u64) -> SmallVec<[Place; 8]> {
        self.directory.held_by(self.part.rows(), id_fingerprint)
    }

    /// What is at a place; `None` if it is empty or changes while being read.
    pub fn peek(&self, place: Place) -> Option<Occupant> {
        self.part.rows().peek(place)
    }

    /// Finds the documents of a view that are like a query.
    pub fn search(&self, view: View, query: &Query<'_>, bounds: Bounds) -> Result<Search, NeedsDisk> {
        Ok(self.part.search(view, query, bounds))
    }

    /// Adds documents that are known by other means, if they are still at their places, and ranks again.
    pub fn consider(&self, search: &mut Search, query: &Query<'_>, known: &[(Seq, Place)]) {
        search::consider(self.part.rows(), self.part.shape(), search, query, known);
    }

    /// How many of the documents at these places have as many equal slots as the query asks for.
    pub fn matching(&self, query: &Query<'_>, places: impl Iterator<Item = Place>) -> usize {
        search::matching(self.part.rows(), self.part.shape(), query, places)
    }

    /// Reads what a search needs from the disk. Not under the decision lock.
    pub fn fetch(&self, needs: NeedsDisk) {
        match needs {}
    }

    /// The banding that searches go by.
    pub fn banding(&self) -> Banding {
        self.part.banding()
    }

    /// How many documents share a band key.
    pub fn fullness(&self) -> Fullness {
        self.part.fullness()
    }

    /// The fullest buckets, at most `limit`, each with up to `samples` of its documents; the fullest first. Buckets of
    /// up to eight documents are looked at only with `all`, which takes a look at every posting.
    pub fn fullest(&self, limit: usize, samples: usize, all: bool) -> Vec<FullBucket> {
        self.part.fullest(limit, samples, all)
    }

    // Another banding. The caller holds its decision lock for each call.

    /// Begins to build another banding beside the present one. `through` is the last `seq` given out: later documents
    /// enter both. One at a time.
    pub fn begin_banding(&self, banding: Banding, through: Seq) -> NextBanding {
        self.part.begin_banding(banding, through, self.directory.used())
    }

    /// Adds documents that were there before, looking at no more than so many; says whether that was all.
    pub fn fill(&self, next: &mut NextBanding, documents_max: u32) -> bool {
        self.part.fill(next, documents_max)
    }

    /// Searches go by a complete new banding from here on.
    pub fn take_over(&self, next: NextBanding) {
        self.part.take_over(next);
    }

    /// Forgets a banding that was being built. Its memory is given back when `next` is dropped, which may take long: not
    /// under the decision lock.
    pub fn abandon(&self, next: &NextBanding) {
        self.part.abandon(next);
    }

    // Last-seen times.

    /// Keeps last-seen times, of a collection made then, or with `None` no longer. If they are kept already, nothing
    /// changes. A change like the others.
    pub fn keep_last_seen(&self, made: Option<TimestampMs>) {
        self.part.keep_last_seen(made);
    }

    /// When documents were last seen; absent if that is not kept.
    pub fn last_seen(&self) -> Option<Arc<LastSeen>> {
        self.part.last_seen()
    }

    /// Every place that has been used so far, whether or not a document is there now.
    pub fn places(&self, from: Walk) -> impl Iterator<Item = Place> + use<> {
        from.places(self.directory.used())
    }

    // Memory.

    pub fn bytes(&self) -> IndexBytes {
        let (used, part) = (u64::from(self.directory.used()), self.part.bytes());
        IndexBytes {
            signatures: used * part.row_bytes,
            postings: part.table_bytes,
            ids: self.directory.bytes(),
            last_seen: used * part.last_seen_bytes,
        }
    }

    /// Places in use, without those whose document is gone and only waits for earlier readers.
    pub fn documents(&self) -> u64 {
        u64::from(self.directory.used()).saturating_sub(self.empty())
    }

    /// What the documents take of the memory budget.
    pub fn claim(&self) -> u64 {
        self.holding().claim()
    }

    /// What one document more takes of the memory budget.
    pub fn claim_of_one(&self) -> u64 {
        self.holding().claim_of_one()
    }

    fn holding(&self) -> Holding {
        let empty = self.empty();
        Holding {
            part: self.part.bytes(),
            id_bytes: self.directory.bytes(),
            documents: u64::from(self.directory.used()).saturating_sub(empty),
            any_empty: empty > 0,
        }
    }

    fn empty(&self) -> u64 {
        self.directory.empty() + self.leaving.count()
    }
}
