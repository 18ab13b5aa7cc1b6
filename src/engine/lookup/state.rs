//! What a lookup goes by: the index, the records behind it, what is in doubt, the settings, and from where in the commit
//! order it sees. Writers change index and records under their lock; readers take none.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hapax_core::ShingleSet;
use parking_lot::{RwLock, RwLockReadGuard};

use super::doubts::Doubts;
use super::judgement::Judgement;
use super::payloads::set_of;
use super::records::Records;
use super::survivors::{ReadBounds, Survivors};
use crate::engine::meters::Meters;
use crate::index::{Bounds, Index, NeedsDisk, Place, Query, Reading, Search, View};
use crate::store::{Looked, Record};
use crate::types::{Keep, Overlap, Seq, Similarity, TimestampMs, Verify};
use crate::verdicts::{Limits, Made, Preparer, Result, Settings, ShingleQuery, matching_min, similarity};

/// All that lookups need.
pub(crate) struct Lookup {
    index: Index,
    records: Records,
    doubts: Doubts,
    policy: RwLock<Policy>,
    preparer: Arc<Preparer>,
    limits: Limits,
    meters: Meters,
    counts: DocumentCounts,
    /// The place in the order up to which everything is on disk.
    durable: AtomicU64,
    /// Documents of before there was a note of it count as seen then.
    seen_floor: TimestampMs,
}

/// What can change while the collection is open, and what follows from it.
pub(crate) struct Policy {
    pub settings: Settings,
    /// Equal slots from which a candidate is a match, or survives to be compared exactly.
    pub matching_min: u32,
}

impl Policy {
    /// What follows from the settings.
    pub(crate) fn of(settings: Settings) -> Self {
        let matching_min = matching_min(settings.verify, settings.threshold, &settings.spec);
        Self { settings, matching_min }
    }
}

/// How many documents are on disk.
#[derive(Debug, Default)]
pub(crate) struct DocumentCounts {
    documents: AtomicI64,
    linked: AtomicI64,
}

impl DocumentCounts {
    /// So many, links included, and so many links among them.
    pub(crate) fn new(documents: i64, linked: i64) -> Self {
        Self { documents: documents.into(), linked: linked.into() }
    }

    /// So many more, or less.
    pub(crate) fn add(&self, documents: i64, linked: i64) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.linked.fetch_add(linked, Ordering::Relaxed);
    }

    /// Documents, links included.
    pub(crate) fn documents(&self) -> u64 {
        counted(&self.documents)
    }

    pub(crate) fn linked(&self) -> u64 {
        counted(&self.linked)
    }
}

/// What is counted is there, so a count that is below zero is a fault of ours.
fn counted(count: &AtomicI64) -> u64 {
    let count = count.load(Ordering::Relaxed);
    debug_assert!(count >= 0, "{count} documents");
    count.max(0) as u64
}

impl Lookup {
    /// Of a collection that has just been opened: everything up to `durable` is on disk.
    pub(crate) fn new(
        (index, records): (Index, Records),
        policy: Policy,
        preparer: Arc<Preparer>,
        limits: Limits,
        meters: Meters,
        counts: DocumentCounts,
        (durable, seen_floor): (Seq, TimestampMs),
    ) -> Self {
        let (doubts, policy, durable) = (Doubts::default(), RwLock::new(policy), AtomicU64::new(durable.0));
        Self { index, records, doubts, policy, preparer, limits, meters, counts, durable, seen_floor }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    pub(crate) fn doubts(&self) -> &Doubts {
        &self.doubts
    }

    pub(crate) fn preparer(&self) -> &Arc<Preparer> {
        &self.preparer
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    pub(crate) fn counts(&self) -> &DocumentCounts {
        &self.counts
    }

    pub(crate) fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read()
    }

    /// Other settings from here on. The caller holds the decision lock, so that no decision goes by both.
    pub(crate) fn set_policy(&self, policy: Policy) {
        *self.policy.write() = policy;
    }

    /// When a document was last seen, as its record says. One that was stored before last-seen times were counts as seen
    /// when its file was brought to the format that has them.
    pub(crate) fn last_seen_on_disk(&self, record: &Record) -> TimestampMs {
        if record.seen == TimestampMs(0) { self.seen_floor } else { record.seen }
    }

    /// The view of a check. What it shows stays readable until the guard is dropped.
    pub(crate) fn read(&self) -> (Reading, View) {
        // Entered first: what leaves after this waits, whichever place is taken below.
        let reading = self.index.reading();
        (reading, View::Durable(self.durable()))
    }

    /// The place in the order up to which everything is on disk.
    pub(crate) fn durable(&self) -> Seq {
        Seq(self.durable.load(Ordering::Acquire))
    }

    /// Checks see everything up to here from now on.
    pub(crate) fn set_durable(&self, durable: Seq) {
        self.durable.store(durable.0, Ordering::Release);
    }

    pub(crate) fn search(&self, view: View, query: &Query<'_>) -> std::result::Result<Search, NeedsDisk> {
        let Limits { bucket_read_max, candidates_max, .. } = self.limits;
        self.index.search(view, query, Bounds { bucket_read_max, candidates_max })
    }

    /// What may be read from disk to compare.
    pub(crate) fn read_bounds(&self) -> ReadBounds {
        let Limits { exact_reads_max: documents_max, exact_bytes_max: bytes_max, .. } = self.limits;
        ReadBounds { documents_max, bytes_max }
    }

    /// What a document shares with one that is stored; `None` if that is gone. Reads the disk.
    pub(crate) fn overlap(&self, query: &ShingleQuery<'_>, seq: Seq) -> Result<Option<Overlap>> {
        Ok(self.stored_set(seq)?.map(|set| query.overlap(&set)))
    }

    /// The shingles of a stored document; `None` if none are kept, or the document is gone.
    pub(crate) fn stored_set(&self, seq: Seq) -> Result<Option<ShingleSet>> {
        if self.preparer.keep() == Keep::Signature {
            return Ok(None);
        }
        if let Some(set) = self.records.sets(&[seq]).pop().flatten() {
            return Ok(Some(ShingleSet::clone(&set)));
        }
        let looked = self.records.store().payloads(
            &[seq],
            |_| Ok(()),
            |_, payload| set_of(self.preparer.pipeline(), &payload),
        )?;
        Ok(looked.into_iter().find_map(|(_, looked)| if let Looked::At(set) = looked { Some(set) } else { None }))
    }

    /// The one number for a pair, wherever it is asked for.
    pub(crate) fn similarity(&self, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Similarity {
        similarity(self.preparer.spec(), matching, same_content, overlap)
    }

    /// Counts what a lookup took. A decision that has to look again counts the last look only.
    pub(crate) fn meter(&self, judgement: &Judgement, survivors: &Survivors) {
        let (meters, cost) = (&self.meters, judgement.cost());
        meters.probe_seconds.record(cost.probe);
        meters.verify_seconds.record(cost.verify);
        meters.candidates.record(judgement.candidates());
        meters.fullest_bucket.record(cost.fullest_bucket as f64);
        meters.candidates_above.increment(u64::from(judgement.above()));
        meters.candidates_below.increment(u64::from(judgement.candidates() - judgement.above()));
        if let Some((compared, read_bytes)) = survivors.cost() {
            meters.exact_compared.record(compared as f64);
            meters.exact_read_bytes.increment(read_bytes);
        }
    }
}

/// Asks for documents like one that has been prepared. `contents_max` if survivors will be compared by
/// their shingles.
pub(crate) fn query<'a>(
    made: &'a Made,
    own: Option<Place>,
    matching_min: u32,
    limit: usize,
    contents_max: Option<usize>,
    mistaken: &'a HashSet<Seq>,
) -> Query<'a> {
    // Once one was taken for what it is not, many may be.
    const MISTAKEN: usize = 1024;
    Query {
        signature: &made.signature,
        content: made.content_prefix(),
        own,
        matching_min,
        members_max: limit.max(if mistaken.is_empty() { 1 } else { MISTAKEN }),
        contents_max,
        mistaken,
    }
}

/// How a document is to be compared, if its shingles decide.
pub(crate) fn shingle_query<'a>(made: &'a Made, settings: &Settings, threshold: f64) -> Option<ShingleQuery<'a>> {
    let exact = settings.verify == Verify::Exact;
    made.kept.as_ref().filter(|_| exact).map(|kept| ShingleQuery::new(&kept.set, threshold))
}
