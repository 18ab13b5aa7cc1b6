//! The index: the documents of a collection in memory, found by signature or by id.
//! In: packed signatures with their `seq`. Out: the [`Place`]s of documents, facts about each, and the documents
//! similar to a query.
//! Knows nothing of the text of ids, of storage, or of how its findings are used.
//!
//! All access is through [`Index`]: one call changes a document everywhere. Behind it are a directory of places and ids
//! (`directory.rs`) and the parts that hold documents. Today there is one part, in memory (`part.rs`). It has a row for
//! each document (`arena.rs`) and, for each banding (`bands.rs`), tables over the rows (`band_tables.rs`) that searches
//! probe (`bucket_reads.rs`). A part on disk would be a second part. [`NeedsDisk`] is prepared for it.

mod ahead;
mod arena;
mod band_rows;
mod band_tables;
mod bands;
mod bucket_reads;
mod chunks;
mod directory;
mod equals;
mod flags;
mod fullest;
mod group;
mod ids;
mod key_members;
mod labels;
mod last_seen;
mod leaving;
mod memory;
mod part;
mod place;
mod place_list;
mod pool;
mod promotions;
mod search;
mod seed;
mod shard;
mod survey;
mod sync;
mod table;
mod verifier;
mod view;

#[cfg(all(test, not(hapax_loom)))]
mod concurrency_tests;
#[cfg(all(test, not(hapax_loom)))]
mod index_tests;
#[cfg(all(test, not(hapax_loom)))]
mod labels_tests;
#[cfg(all(test, hapax_loom))]
mod loom_tests;
#[cfg(all(test, not(hapax_loom)))]
mod model_tests;
#[cfg(all(test, not(hapax_loom)))]
mod tables_tests;

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use hapax_core::{Banding, SignatureShape};
use smallvec::SmallVec;

use self::directory::Directory;
use self::leaving::{Leaving, Settled};
use self::memory::Holding;
use self::part::MemoryPart;
use self::seed::Seed;
use crate::types::{InvalidLabel, Label, LabelLimits, Labels, Scope, Seq, TimestampMs};

pub use arena::{Entry, Occupant, PLACES_MAX};
pub use fullest::FullBucket;
pub use labels::{InScope, LabelSet, LabelsFull, SETS_PER_LABEL};
pub use last_seen::{Due, LastSeen};
pub use leaving::Reading;
pub use memory::IndexBytes;
pub use part::NextBanding;
pub use place::{Place, Walk};
pub use search::{Bounds, Candidate, Cost, Examined, LISTED_MAX, Query, Search, Unread};
pub use survey::Survey;
pub use view::View;

/// The options of a new index.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// The shape of all signatures.
    pub shape: SignatureShape,
    /// The first banding.
    pub banding: Banding,
    /// The number of bits that distinguish ids, 1 to 64.
    pub id_fingerprint_bits: u32,
    /// The seed of the tables, for tests and measurements. If absent, the process's own seed is used.
    pub seed: Option<u64>,
}

/// A part on disk that a search has to read first. This type has no values today, because the only part is in memory. A
/// part on disk would return values of this type, and the caller would resolve them outside the decision lock with
/// [`Index::fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsDisk {}

/// All documents of a collection, in memory.
///
/// To open an index, call [`load`](Self::load) from any number of threads, then [`build`](Self::build). After that,
/// changes run one at a time under the caller's decision lock, while any number of readers search without a lock.
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

    /// Adds a document without its postings, which [`build`](Self::build) makes. May be called from several threads at
    /// once.
    pub fn load(&self, entry: Entry<'_>) -> Place {
        let place = self.directory.next();
        self.part.load(place, entry);
        self.directory.enter(self.part.rows(), place);
        place
    }

    /// Makes the postings of all loaded documents, in parallel. Call it once, before anything else. `progress` is
    /// called with the share that is done, from 0 to 1.
    pub fn build(&self, progress: impl Fn(f64) + Sync) {
        self.part.build(self.directory.used(), progress);
    }

    // Changes. Only one may run at a time. This also applies to all functions below that "count as a change".

    /// Adds a document. Returns `None` if the index holds [`PLACES_MAX`] documents.
    pub fn enter(&self, entry: Entry<'_>) -> Option<Place> {
        let place = self.directory.take_for(self.part.rows(), entry.id_fingerprint)?;
        self.part.enter(place, entry);
        self.directory.enter(self.part.rows(), place);
        Some(place)
    }

    /// Removes a document at once, which undoes [`enter`](Self::enter). Returns its `seq`.
    pub fn withdraw(&self, place: Place) -> Seq {
        let rows = self.part.rows();
        let occupant = rows.peek(place).expect("a place is emptied once");
        // Postings are removed first, so that no posting ever names an empty place.
        self.part.unpost(place);
        self.directory.leave(rows, place);
        rows.free(place);
        self.set_labels(place, LabelSet::NONE);
        self.directory.give_back(place);
        occupant.seq
    }

    /// Marks a document as removed at a position in the commit order. Views from that position on do not show it.
    pub fn leave(&self, place: Place, at: Seq) {
        self.part.rows().set_removed(place, at);
    }

    /// Undoes [`leave`](Self::leave).
    pub fn stay(&self, place: Place) {
        self.part.rows().set_removed(place, Seq(0));
    }

    /// Marks a document as being in doubt: it is unknown whether it is on disk. No view shows it any more.
    pub fn doubt(&self, place: Place) {
        self.part.rows().set_removed(place, view::DOUBTFUL);
    }

    /// Makes a link an ordinary document for all views at or after the position `at` in the commit order. If a new
    /// banding is being built and has not reached the link yet, it later takes the link in the state of that time.
    pub fn promote(&self, link: Place, at: Seq) {
        self.part.promote(link, at);
    }

    /// Undoes [`promote`](Self::promote).
    pub fn demote(&self, link: Place) {
        self.part.demote(link);
    }

    // Removal, after earlier readers have finished.

    /// Registers a reader: everything that is readable now stays readable until the guard is dropped. Call it before
    /// reading the durable position in the commit order.
    pub fn reading(&self) -> Reading {
        self.leaving.reading()
    }

    /// Takes documents that are deleted on disk, and links that are promoted on disk. The deleted documents stay until
    /// all earlier readers have finished. Call it after advancing the durable position in the commit order.
    pub fn gone(&self, places: Vec<Place>, promoted: Vec<Place>) {
        self.leaving.gone(places, promoted);
    }

    /// Returns the next document to [`remove`](Self::remove). Returns `None` if no document is waiting, or if a reader
    /// may still read the oldest one. Counts as a change.
    pub fn next_removable(&self) -> Option<Place> {
        loop {
            match self.leaving.next()? {
                Settled::Promoted(link) => self.part.rows().unlink(link),
                Settled::Gone(place) => return Some(place),
            }
        }
    }

    /// Returns whether a document can be removed now.
    pub fn has_removable(&self) -> bool {
        self.leaving.is_removable()
    }

    /// Returns whether any documents wait to be removed.
    pub fn has_leaving(&self) -> bool {
        self.leaving.any()
    }

    /// Removes the document that [`next_removable`](Self::next_removable) returned, and returns its `seq`. Counts as a
    /// change.
    pub fn remove(&self, place: Place) -> Seq {
        let seq = self.withdraw(place);
        self.leaving.removed();
        seq
    }

    // Upkeep.

    /// Resizes the shards of tables that changes have left nearly full or sparse. Call it after changes, from one
    /// thread at a time. It may run at the same time as a change. Without it, a change that finds a shard full must
    /// resize that shard, which takes 0.1 ms.
    pub fn resize_tables(&self) {
        while self.part.resize_next() || self.directory.resize_next(self.part.rows()) {}
    }

    // Reading.

    /// Returns every place whose document may have the id with this fingerprint.
    pub fn held_by(&self, id_fingerprint: u64) -> SmallVec<[Place; 8]> {
        self.directory.held_by(self.part.rows(), id_fingerprint)
    }

    /// Returns whether the document at a place is a link according to all decisions so far.
    pub fn is_link(&self, place: Place) -> bool {
        let rows = self.part.rows();
        rows.peek(place).is_some_and(|read| View::Decided.shown(rows, place, read).linked)
    }

    /// Returns the document at a place; `None` if the place is empty or changes while it is read.
    pub fn peek(&self, place: Place) -> Option<Occupant> {
        self.part.rows().peek(place)
    }

    /// Finds the documents of a view that are similar to a query.
    pub fn search(&self, view: View, query: &Query<'_>, bounds: Bounds) -> Result<Search, NeedsDisk> {
        Ok(self.part.search(view, query, bounds))
    }

    /// Adds documents that the caller has found by other means, if they are still at their places, and ranks the result
    /// again.
    pub fn consider(&self, search: &mut Search, query: &Query<'_>, known: &[(Seq, Place)]) {
        search::consider(self.part.rows(), self.part.shape(), search, query, known);
    }

    /// Returns how many of the documents at these places have at least as many equal slots as the query requires.
    pub fn matching(&self, query: &Query<'_>, places: impl Iterator<Item = Place>) -> usize {
        search::matching(self.part.rows(), self.part.shape(), query, places)
    }

    /// Reads the data that a search needs from the disk. Must not be called under the decision lock.
    pub fn fetch(&self, needs: NeedsDisk) {
        match needs {}
    }

    /// Returns the banding that searches use.
    pub fn banding(&self) -> Banding {
        self.part.banding()
    }

    /// Measures how crowded the buckets are, with a sample of about `documents_max` documents. Another `number` selects
    /// another sample. With `all`, reads every posting, so that the largest bucket is found even if it is small. Calls
    /// `pause` for each document.
    pub fn survey(
        &self,
        (documents_max, number): (u32, u32),
        all: bool,
        bucket_read_max: usize,
        pause: impl Fn(),
    ) -> Survey {
        let sample = self.sample(documents_max, number).inspect(|_| pause());
        self.part.survey(sample, all, bucket_read_max)
    }

    /// Returns about `documents_max` evenly spread places. Another `number` selects others. Some may be empty.
    pub fn sample(&self, documents_max: u32, number: u32) -> impl Iterator<Item = Place> + use<> {
        let used = self.directory.used();
        let step = used.div_ceil(documents_max).max(1);
        (number % step..used).step_by(step as usize).map(Place)
    }

    /// Returns up to `limit` of the fullest buckets, the fullest first, and for each of them up to `samples` documents.
    /// Buckets of up to eight documents are included only with `all`, which reads every posting.
    pub fn fullest(&self, limit: usize, samples: usize, all: bool) -> Vec<FullBucket> {
        self.part.fullest(limit, samples, all)
    }

    // Another banding. The caller holds its decision lock for each call.

    /// Starts to build another banding next to the present one. `through` is the last `seq` assigned: later documents
    /// enter both bandings. Only one can be built at a time.
    pub fn begin_banding(&self, banding: Banding, through: Seq) -> NextBanding {
        self.part.begin_banding(banding, through, self.directory.used())
    }

    /// Adds documents that existed before [`begin_banding`](Self::begin_banding) to the next banding. Looks at
    /// `documents_max` places at most, and returns whether those were the last.
    pub fn fill(&self, next: &mut NextBanding, documents_max: u32) -> bool {
        self.part.fill(next, documents_max)
    }

    /// Makes searches use a complete new banding from now on.
    pub fn take_over(&self, next: NextBanding) {
        self.part.take_over(next);
    }

    /// Forgets a banding that was being built. Its memory is freed when `next` is dropped, which may take long and must
    /// not happen under the decision lock.
    pub fn abandon(&self, next: &NextBanding) {
        self.part.abandon(next);
    }

    // Last-seen times.

    /// Starts to keep last-seen times, for a collection created at `made`, or stops keeping them if `made` is `None`.
    /// Changes nothing if they are kept already. Counts as a change.
    pub fn keep_last_seen(&self, made: Option<TimestampMs>) {
        self.part.keep_last_seen(made);
    }

    /// Returns the last-seen times; `None` if they are not kept.
    pub fn last_seen(&self) -> Option<Arc<LastSeen>> {
        self.part.last_seen()
    }

    /// Returns every place that has been used so far, whether or not it holds a document now.
    pub fn places(&self, from: Walk) -> impl Iterator<Item = Place> + use<> {
        from.places(self.directory.used())
    }

    // Labels.

    /// Returns a set of labels with one more holder, for an [`Entry`] or for [`set_labels`](Self::set_labels) of a
    /// document that has the labels `had` so far. Fails if a limit is reached. Counts as a change.
    pub fn hold_labels(
        &self,
        labels: Option<&Labels>,
        had: Option<&Labels>,
        limits: LabelLimits,
    ) -> Result<LabelSet, LabelsFull> {
        labels.map_or(Ok(LabelSet::NONE), |labels| self.part.rows().labels().hold(labels, had, limits))
    }

    /// Returns the set of these labels; [`LabelSet::NONE`] if no document has it.
    pub fn known_labels(&self, labels: Option<&Labels>) -> LabelSet {
        labels.map_or(LabelSet::NONE, |labels| self.part.rows().labels().known(labels))
    }

    /// Releases a set of labels that no place uses. Counts as a change.
    pub fn release_labels(&self, set: LabelSet) {
        self.part.rows().labels().release(set);
    }

    /// Returns the set of labels with this text and one more holder, for an [`Entry`] to [`load`](Self::load), and
    /// counts the document. May be called from several threads at once.
    pub fn load_labels(&self, text: Option<&str>) -> Result<LabelSet, InvalidLabel> {
        let labels = self.part.rows().labels();
        let set = text.map_or(Ok(LabelSet::NONE), |text| labels.load(text))?;
        labels.count(set, true);
        Ok(set)
    }

    /// Returns the labels of the document at a place.
    pub fn labels_at(&self, place: Place) -> LabelSet {
        self.part.rows().labels().of(place)
    }

    /// Replaces the labels of the document at a place, and releases its former labels. Counts as a change.
    pub fn set_labels(&self, place: Place, set: LabelSet) {
        let labels = self.part.rows().labels();
        let had = labels.of(place);
        labels.set(place, set);
        labels.release(had);
    }

    /// Adds one decided document to the count of each label in the set, or subtracts one. Counts as a change.
    pub fn count_labels(&self, set: LabelSet, is_new: bool) {
        self.part.rows().labels().count(set, is_new);
    }

    /// Returns the first `limit` labels that documents have, in the order of their texts, and how many documents have
    /// each. With `name`, only labels with this name are listed; with `after`, only later labels.
    pub fn label_counts(&self, name: Option<&str>, after: Option<&Label>, limit: usize) -> Vec<(Label, u64)> {
        self.part.rows().labels().counts(name, after, limit)
    }

    /// Returns the number of different labels that documents have, including labels that are not on disk yet.
    pub fn labels_used(&self) -> u64 {
        self.part.rows().labels().used()
    }

    /// Returns every place whose document has a label according to all decisions, with all its labels. `decided`
    /// contains the new labels of documents whose labels will change. Looks at every place. Counts as a change.
    pub fn labelled(&self, label: &Label, decided: &HashMap<Place, LabelSet>) -> Vec<(Place, LabelSet)> {
        let labels = self.part.rows().labels();
        let sets = labels.sets_with(label);
        if sets.is_empty() {
            return Vec::new();
        }
        let as_decided = |place| decided.get(&place).copied().unwrap_or_else(|| labels.of(place));
        let all = self.places(Walk::start()).map(|place| (place, as_decided(place)));
        all.filter(|(_, set)| sets.contains(set)).collect()
    }

    /// Returns the fingerprint of the id at a place, which must have a document. Counts as a change.
    pub fn id_fingerprint(&self, place: Place) -> u64 {
        self.part.rows().id_fingerprint(place)
    }

    /// Returns the documents that a scope includes, for a [`Query`].
    pub fn scope(&self, scope: &Scope) -> InScope<'_> {
        self.part.rows().labels().scope(scope)
    }

    /// Returns up to `limit` documents of a view that are in the scope, in the order of `seq`, from the first after
    /// `after`. Looks at every place.
    pub fn in_scope(&self, view: View, scope: &InScope<'_>, after: Seq, limit: usize) -> Vec<Seq> {
        let rows = self.part.rows();
        let mut first = BinaryHeap::new();
        for place in self.places(Walk::start()).filter(|&place| scope.takes_place(place)) {
            let Some(occupant) = rows.peek(place).filter(|occupant| occupant.seq > after && view.sees(occupant)) else {
                continue;
            };
            first.push(occupant.seq);
            if first.len() > limit {
                first.pop();
            }
        }
        first.into_sorted_vec()
    }

    // Memory.

    pub fn bytes(&self) -> IndexBytes {
        let (used, part) = (u64::from(self.directory.used()), self.part.bytes());
        IndexBytes {
            signatures: used * part.row_bytes,
            postings: part.table_bytes,
            ids: self.directory.bytes(),
            last_seen: used * part.last_seen_bytes,
            labels: self.part.rows().labels().bytes() + used * part.labels_bytes,
        }
    }

    /// Returns the number of documents. Deleted documents that only wait for earlier readers do not count.
    pub fn documents(&self) -> u64 {
        u64::from(self.directory.used()).saturating_sub(self.empty())
    }

    /// Returns the bytes of the memory budget that the documents take.
    pub fn claim(&self) -> u64 {
        self.holding().claim()
    }

    /// Returns the bytes of the memory budget that one more document would take.
    pub fn claim_of_one(&self) -> u64 {
        self.holding().claim_of_one()
    }

    /// Estimates the bytes of the memory budget that another banding would take while it is built.
    pub fn claim_of_banding(&self, banding: Banding) -> u64 {
        self.holding().claim_of_banding(banding.bands())
    }

    fn holding(&self) -> Holding {
        Holding {
            part: self.part.bytes(),
            id_bytes: self.directory.bytes(),
            label_bytes: self.part.rows().labels().bytes(),
            documents: self.documents(),
            any_empty: self.empty() > 0,
        }
    }

    fn empty(&self) -> u64 {
        self.directory.empty() + self.leaving.count()
    }
}
