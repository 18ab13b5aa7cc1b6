//! `Lookup` holds everything that lookups read: the index, the records, the documents in doubt, the settings, and the
//! position up to which the commit order is on disk. Writes change index and records under the decision lock. Lookups
//! never take that lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use hapax_core::ShingleSet;

use super::counts::DocumentCounts;
use super::doubts::Doubts;
use super::items::Items;
use super::judgement::Judgement;
use super::payloads::{set_of, text_of};
use super::records::{Mentions, Records};
use super::survivors::{ReadBounds, Survivors};
use crate::engine::meters::Meters;
use crate::index::{
    Bounds, Index, LISTED_MAX, LabelSet, LabelsFull, NeedsDisk, Query, Reading, SETS_PER_LABEL, Search, View,
};
use crate::store::Record;
use crate::types::{Keep, LabelLimits, Labels, Overlap, SOURCE, Seq, Similarity, StoredText, TimestampMs};
use crate::verdicts::{CollectionError, Limits, Preparer, Result, Settings, ShingleQuery, Terms, similarity};

/// Everything that lookups need.
pub(crate) struct Lookup {
    index: Index,
    records: Records,
    /// The items of a containment collection.
    items: Option<Items>,
    doubts: Doubts,
    policy: ArcSwap<Policy>,
    preparer: Arc<Preparer>,
    limits: Limits,
    meters: Meters,
    counts: DocumentCounts,
    /// Everything up to this position in the commit order is on disk.
    durable: AtomicU64,
    /// The last-seen time of documents that were stored before last-seen times were recorded.
    seen_floor: TimestampMs,
}

/// The settings, which can change while the collection is open, and numbers derived from them.
pub(crate) struct Policy {
    pub settings: Settings,
    /// The numbers that decide whether a candidate is a match, unless a check asks for another threshold.
    pub terms: Terms,
}

impl Policy {
    /// Derives the policy from the settings.
    pub(crate) fn of(settings: Settings) -> Self {
        let terms = Terms::new(settings.verify, settings.threshold, &settings.spec);
        Self { settings, terms }
    }
}

impl Lookup {
    /// Makes the lookup of a collection that has just been opened: everything up to `durable` is on disk.
    pub(crate) fn new(
        (index, records, items): (Index, Records, Option<Items>),
        policy: Policy,
        preparer: Arc<Preparer>,
        limits: Limits,
        meters: Meters,
        counts: DocumentCounts,
        (durable, seen_floor): (Seq, TimestampMs),
    ) -> Self {
        let (doubts, policy, durable) = (Doubts::default(), ArcSwap::from_pointee(policy), AtomicU64::new(durable.0));
        Self { index, records, items, doubts, policy, preparer, limits, meters, counts, durable, seen_floor }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Returns the items of a containment collection; `None` in other collections.
    pub(crate) fn items(&self) -> Option<&Items> {
        self.items.as_ref()
    }

    /// Returns the bytes of memory that the documents claim.
    pub(crate) fn claim(&self) -> u64 {
        self.index.claim() + self.items.as_ref().map_or(0, Items::bytes)
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

    pub(crate) fn policy(&self) -> Guard<Arc<Policy>> {
        self.policy.load()
    }

    /// Replaces the settings. The caller holds the decision lock, so that no decision uses both the old and the new
    /// ones.
    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Returns the last-seen time of a record. If the document was stored before last-seen times were recorded, returns
    /// the time at which the file was upgraded to the format that records them.
    pub(crate) fn last_seen_on_disk(&self, record: &Record) -> TimestampMs {
        if record.seen == TimestampMs(0) { self.seen_floor } else { record.seen }
    }

    /// Returns the view of a check. Everything in the view stays readable until the guard is dropped.
    pub(crate) fn read(&self) -> (Reading, View) {
        // The guard is taken first. Documents that are removed after this point stay readable until the guard is
        // dropped, whatever `durable` is.
        let reading = self.index.reading();
        (reading, View::Durable(self.durable()))
    }

    /// Returns the position in the commit order up to which everything is on disk.
    pub(crate) fn durable(&self) -> Seq {
        Seq(self.durable.load(Ordering::Acquire))
    }

    /// Lets checks see everything up to `durable` from now on.
    pub(crate) fn set_durable(&self, durable: Seq) {
        self.durable.store(durable.0, Ordering::Release);
    }

    pub(crate) fn search(&self, view: View, query: &Query<'_>) -> std::result::Result<Search, NeedsDisk> {
        self.search_reading(view, query, self.limits.bucket_read_max)
    }

    /// Like [`search`](Self::search), with another limit on the number of postings that are read from a bucket.
    pub(crate) fn search_reading(
        &self,
        view: View,
        query: &Query<'_>,
        bucket_read_max: usize,
    ) -> std::result::Result<Search, NeedsDisk> {
        let bounds = Bounds { bucket_read_max, candidates_max: self.limits.candidates_max, listed_max: LISTED_MAX };
        self.index.search(view, query, bounds)
    }

    /// Holds a set of labels for a document that will be stored. `had` are the labels of the document that it replaces
    /// or updates. Fails if a limit on labels is reached.
    pub(crate) fn hold_labels(&self, labels: Option<&Labels>, had: Option<&Labels>) -> Result<LabelSet> {
        let LabelLimits { labels_max, source_documents_max } = self.limits.labels;
        self.index.hold_labels(labels, had, self.limits.labels).map_err(|full| match full {
            LabelsFull::Labels => CollectionError::LabelsFull { max: labels_max },
            LabelsFull::Sets => CollectionError::LabelSetsFull { max: labels_max.saturating_mul(SETS_PER_LABEL) },
            LabelsFull::Source => {
                self.meters.source_refused.increment(1);
                let source_label = labels.and_then(|labels| labels.get(SOURCE)).unwrap_or_default().to_owned();
                CollectionError::SourceFull { source_label, max: source_documents_max.unwrap_or_default() }
            }
        })
    }

    /// Returns the limits on reading documents from disk for comparisons.
    pub(crate) fn read_bounds(&self) -> ReadBounds {
        let Limits { exact_reads_max: documents_max, exact_bytes_max: bytes_max, .. } = self.limits;
        ReadBounds { documents_max, bytes_max }
    }

    /// Returns how many shingles a query shares with a stored document; `None` if the document is gone. Reads the disk.
    pub(crate) fn overlap(&self, query: &ShingleQuery<'_>, seq: Seq) -> Result<Option<Overlap>> {
        Ok(self.stored_set(seq)?.map(|set| query.overlap(&set)))
    }

    /// Returns the shingles of a stored document; `None` if the collection stores no shingles, or if the document is
    /// gone.
    pub(crate) fn stored_set(&self, seq: Seq) -> Result<Option<ShingleSet>> {
        if self.preparer.keep() == Keep::Signature {
            return Ok(None);
        }
        if let Some(set) = self.records.sets(&[seq]).pop().flatten() {
            return Ok(Some(ShingleSet::clone(&set)));
        }
        Ok(self.records.store().payload(seq, |payload| set_of(self.preparer.pipeline(), &payload))?)
    }

    /// Returns the text of a stored document. If the text has more than `bytes_max` bytes as JSON, returns
    /// [`StoredText::TooLong`] instead. If the payload is a set of shingles, returns [`StoredText::Absent`]. `None` if
    /// the document is gone. Reads the disk.
    pub(crate) fn stored_text(&self, seq: Seq, bytes_max: usize) -> Result<Option<StoredText>> {
        let read = self.records.store().payload_within(seq, bytes_max, |payload| text_of(&payload, bytes_max))?;
        Ok(read.map(|read| read.unwrap_or_else(|bytes| StoredText::TooLong { bytes })))
    }

    /// Returns the similarity of a pair. Every part of hapax that states a similarity uses this function.
    pub(crate) fn similarity(&self, matching: u32, same_content: bool, overlap: Option<Overlap>) -> Similarity {
        similarity(self.preparer.spec(), matching, same_content, overlap)
    }

    /// Records the cost of a lookup in the metrics. If a decision had to repeat its lookup, only the last one counts.
    pub(crate) fn meter(&self, judgement: &Judgement, survivors: &Survivors, mentions: &Mentions) {
        let (meters, cost, (cached, read)) = (&self.meters, judgement.cost(), mentions.sources());
        meters.probe_seconds.record(cost.probe);
        meters.verify_seconds.record(cost.verify);
        meters.candidates.record(judgement.candidates());
        meters.fullest_bucket.record(cost.fullest_bucket as f64);
        judgement.bounds().for_each(|bound| meters.bounded(bound));
        meters.candidates_above.increment(u64::from(judgement.above()));
        meters.candidates_below.increment(u64::from(judgement.candidates() - judgement.above()));
        meters.ids_cached.increment(cached);
        meters.ids_read.increment(read);
        if let Some((compared, read_bytes)) = survivors.cost() {
            meters.exact_compared.record(compared as f64);
            meters.exact_read_bytes.increment(read_bytes);
        }
    }
}
