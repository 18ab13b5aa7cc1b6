//! `LocalCollection`: the operations of one open collection. Each calls the part that does the work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::long_work::Turns;
use super::lookup::{self, Check, Items, Lookup};
use super::meters::CollectionInfo;
use super::upkeep::{Expiry, Merges, Rebanding, Removals, Target, UpkeepParts, write_statistics};
use super::write::{self, Insertion, MergeAsked, Ticket, Writes, start_committer};
use crate::cpu::WhenFull;
use crate::extract::Page;
use crate::index::IndexBytes;
use crate::store::Writer;
use crate::telemetry::names::{self, label, value};
use crate::types::{
    ClusterPlace, ClusterRank, CollectionName, Content, DocId, Document, Extract, GoldenPair, Html, IndexKind, Keep,
    Label, LabelDeletion, Merge, MergeSource, OnDuplicate, OnExisting, Scope, Seq, Statistics, StoredText, TimestampMs,
    Verdict,
};
use crate::verdicts::{
    Attached, Changes, CheckOptions, ClusterPage, ClustersPage, CollectionError, Comparand, Comparison, Description,
    GoldenReport, HotBucket, InsertOptions, LargestClusters, ListedJob, OverlapOptions, Overlaps, PrepareOptions,
    Prepared, Preparer, Purpose, Result, Settings, TextSigner, check_threshold,
};
use hapax_core::IllFormed;

/// The time between two checks of whether a job has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long a request to stop a job waits for the end of the job.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// An open collection on this machine.
pub struct LocalCollection {
    name: CollectionName,
    created: TimestampMs,
    lookup: Arc<Lookup>,
    writes: Arc<Writes>,
    expiry: Arc<Expiry>,
    merges: Arc<Merges>,
    removals: Arc<Removals>,
    rebanding: Arc<Rebanding>,
    /// Held while the golden set is evaluated or changed, or while the buckets are surveyed. Each of these operations
    /// needs memory and takes up to a second.
    long: Turns,
    info: CollectionInfo,
}

/// The parts of a collection once its file has been read.
pub(super) struct Parts {
    pub name: CollectionName,
    /// The time of its creation.
    pub created: TimestampMs,
    pub writes: Arc<Writes>,
}

impl LocalCollection {
    pub(super) fn start(parts: Parts, writer: Writer) -> Self {
        let Parts { name, created, writes } = parts;
        start_committer(&writes, &name, writer);
        let lookup = Arc::clone(writes.lookup());
        let expiry = Arc::new(Expiry::new(name.clone(), Arc::clone(&writes)));
        let merges = Arc::new(Merges::new(name.clone(), created, Arc::clone(&writes)));
        let removals = Arc::new(Removals::new(name.clone(), Arc::clone(&writes)));
        let rebanding = Arc::new(Rebanding::new(Arc::clone(&writes), created));
        Self {
            name,
            created,
            lookup,
            writes,
            expiry,
            merges,
            removals,
            rebanding,
            long: Turns::default(),
            info: CollectionInfo::default(),
        }
    }

    pub fn name(&self) -> &CollectionName {
        &self.name
    }

    pub fn settings(&self) -> Settings {
        self.lookup.policy().settings.clone()
    }

    /// Returns the settings and document counts of the collection.
    pub fn describe(&self) -> Description {
        self.described(self.settings())
    }

    fn described(&self, settings: Settings) -> Description {
        let counts = self.lookup.counts();
        let (documents, linked) = (counts.documents(), counts.linked());
        Description::new(self.name.clone(), settings, self.created, documents, Some(linked))
    }

    /// Prepares a document for a lookup or an insertion, with default options.
    pub async fn prepare(&self, content: Content) -> Result<Prepared> {
        self.prepare_with(content, PrepareOptions::default()).await
    }

    /// Prepares a document for the use that `options` name.
    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().prepare(content, options, verify).await
    }

    /// Extracts the text of a page. `extract` replaces the setting of the collection.
    pub async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        self.preparer().extract(html, extract, when_full).await
    }

    /// Starts signing a text that arrives in pieces.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().text_signer(ill_formed, options, verify)
    }

    /// Returns an upper bound on the memory that preparing a text of `text_bytes` takes in addition to the text, in
    /// bytes.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().shingle_bytes(purpose, text_bytes, verify)
    }

    /// Returns whether lookups compare documents by their shingles.
    pub fn compares_shingles(&self) -> bool {
        self.lookup.policy().terms.compares_shingles()
    }

    /// Returns an error unless the documents of the collection are found in this way.
    pub fn require(&self, index: IndexKind) -> Result<()> {
        let has = if self.lookup.items().is_some() { IndexKind::Containment } else { IndexKind::Similarity };
        if has == index { Ok(()) } else { Err(CollectionError::wrong_index(&self.name, has)) }
    }

    /// Finds the items that a text contains. Never writes.
    pub async fn overlaps(&self, text: String, options: OverlapOptions, when_full: WhenFull) -> Result<Overlaps> {
        self.require(IndexKind::Containment)?;
        lookup::overlaps(&self.lookup, text, options, when_full).await
    }

    /// Looks a document up. The answer has at most `bytes_max` bytes, see [`Verdict::fit`]. Never writes. Never waits
    /// for a write, except for a few milliseconds if a document that it needs is being replaced or deleted.
    pub async fn check_within(
        &self,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        self.require(IndexKind::Similarity)?;
        if let Some(threshold) = options.threshold {
            check_threshold(threshold)?;
        }
        let (made, shingles) = prepared.into_parts();
        match made {
            Some(made) => lookup::check(&self.lookup, Check { id, made, shingles, options, bytes_max }).await,
            None => lookup::check_empty(&self.lookup, id, options.threshold).await,
        }
    }

    /// Checks a document and inserts it in one step. The answer has at most `bytes_max` bytes, see [`Verdict::fit`];
    /// the document is stored in full. The decision is made when this returns and is durable once the ticket resolves.
    pub async fn insert_within(
        &self,
        id: DocId,
        attached: Attached,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Ticket<Verdict>> {
        let (labels, bytes, is_too_short) =
            (attached.labels.clone(), prepared.content_bytes(), prepared.is_too_short());
        let (made, shingles) = prepared.into_parts();
        let inserted = match made {
            None => write::insert_empty(&self.writes, id, options.on_existing, is_too_short).await,
            Some(made) => {
                let insertion = Insertion { id, attached, made, room: None, shingles, options, bytes_max, merge: None };
                self.refuse_lookups(&insertion)?;
                // Boxed here, so that the futures that await this stay small.
                write::insert(&self.writes, Box::new(insertion)).await
            }
        };
        if let Ok(ticket) = &inserted {
            self.writes.statistics().count(labels.as_ref(), ticket.value(), bytes);
        }
        inserted
    }

    /// Refuses a document that was prepared for a lookup, if the collection stores payloads.
    fn refuse_lookups(&self, insertion: &Insertion) -> Result<()> {
        let has_payload = insertion.made.kept.as_ref().is_some_and(|kept| kept.payload.is_some());
        if self.preparer().keep() == Keep::Signature || has_payload {
            return Ok(());
        }
        let detail = "was prepared for a lookup and has nothing to store; prepare it for an insertion".into();
        Err(CollectionError::Invalid { field: "document", detail })
    }

    /// Deletes the document with this id. The ticket says whether there was one.
    pub async fn delete(&self, id: DocId) -> Result<Ticket<bool>> {
        write::delete(&self.writes, id).await
    }

    /// Deletes all documents with a label. They count as deleted at once, and are removed in the background.
    pub async fn delete_labelled(&self, label: Label) -> Result<Ticket<LabelDeletion>> {
        write::delete_labelled(&self.writes, label).await
    }

    /// Begins to insert the documents of another collection into this one, or returns the running merge of that
    /// collection. Fails unless both collections accept the same contents.
    pub fn merge(&self, from: &Self, on_duplicate: OnDuplicate, on_existing: OnExisting) -> Result<Ticket<Merge>> {
        if self.name == from.name {
            let detail = "is the collection itself; name another one".into();
            return Err(CollectionError::Invalid { field: "from", detail });
        }
        self.settings().takes_from(&from.settings(), (&self.name, &from.name))?;
        let (through, documents) = (from.lookup.durable(), from.lookup.counts().documents());
        let source = MergeSource { name: from.name.clone(), created: from.created, through, documents };
        write::begin_merge(&self.writes, MergeAsked { source, on_duplicate, on_existing })
    }

    /// Returns the counts of the outcomes of all documents that clients sent for insertion.
    pub fn statistics(&self) -> Statistics {
        self.writes.statistics().all()
    }

    /// Like [`statistics`](Self::statistics), but for each of the first `limit` labels, in the order of their texts.
    /// With `name`, only labels with this name are listed; with `after`, only labels after that label.
    pub fn label_statistics(
        &self,
        name: Option<&str>,
        after: Option<&Label>,
        limit: usize,
    ) -> Vec<(Label, Statistics)> {
        self.writes.statistics().by_label(name, after, limit)
    }

    /// Stops a merge. Documents that the merge has already stored are kept. Waits up to two seconds for its end. If the
    /// disk accepts no writes, the merge ends later.
    pub async fn stop_merge(&self, number: Seq) {
        self.writes.jobs().stop(number);
        let begun = Instant::now();
        while self.writes.jobs().is_running(number) && begun.elapsed() < STOP_WAIT {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the jobs that run, and the last ones that have ended, the newest first.
    pub fn jobs(&self) -> Vec<ListedJob> {
        self.writes.jobs().list()
    }

    /// Returns up to `limit` reports of a merge, as JSON, each with the `seq` of its document in the other collection.
    /// The reports are in the order of `seq`, and begin after `after`.
    pub async fn merge_reports(&self, merge: Seq, after: Seq, limit: usize) -> Result<Vec<(Seq, String)>> {
        lookup::merge_reports(&self.lookup, merge, after, limit).await
    }

    /// Returns the document with this id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        lookup::document(&self.lookup, id).await
    }

    /// Returns the document with this id and its text. If both together have more than `bytes_max` bytes as JSON,
    /// returns [`StoredText::TooLong`] in place of the text. Fails if the collection keeps no texts.
    pub async fn document_with_text(&self, id: &DocId, bytes_max: usize) -> Result<Option<(Document, StoredText)>> {
        lookup::document_with_text(&self.lookup, id, bytes_max).await
    }

    /// Returns documents in order of `seq`, beginning after `after`, and whether more may follow. Returns as many as
    /// fit into `bytes_max` bytes of JSON, but at least one.
    pub async fn documents_within(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<(Vec<Document>, bool)> {
        lookup::documents_within(&self.lookup, after, limit, bytes_max).await
    }

    /// Like [`documents_within`](Self::documents_within), for the documents of a scope.
    pub async fn scoped_documents_within(
        &self,
        scope: Arc<Scope>,
        after: Seq,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Document>, bool)> {
        lookup::scoped_documents_within(&self.lookup, scope, after, limit, bytes_max).await
    }

    /// Returns the first `limit` labels that documents have, in the order of their texts, and how many documents have
    /// each. With `name`, only labels with this name are listed; with `after`, only labels after that label.
    pub fn labels(&self, name: Option<&str>, after: Option<&Label>, limit: usize) -> Vec<(Label, u64)> {
        self.lookup.index().label_counts(name, after, limit)
    }

    /// Returns a page of the cluster of document `id`. With `after`, returns the next page of the cluster that `after`
    /// names. The document `id` may then have left this cluster or been deleted.
    pub async fn cluster(&self, id: DocId, after: Option<ClusterPlace>, limit: usize) -> Result<Option<ClusterPage>> {
        lookup::cluster(&self.lookup, id, after, limit).await
    }

    /// Returns a page of all clusters that have more than one document.
    pub async fn clusters(&self, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
        lookup::clusters(&self.lookup, after, limit).await
    }

    /// Returns a page of the clusters that have more than one document, the largest first.
    pub async fn largest_clusters(&self, after: Option<ClusterRank>, limit: usize) -> Result<LargestClusters> {
        let turn = self.long.take().await?;
        lookup::largest(&self.lookup, after, limit, turn).await
    }

    /// Returns the fullest buckets, the fullest first.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        let turn = self.long.take().await?;
        lookup::buckets(&self.lookup, limit, turn).await
    }

    /// Returns how much memory a comparison of two documents needs for those of them that are stored.
    pub async fn bytes_to_compare(&self, documents: [&Comparand; 2]) -> Result<usize> {
        self.require(IndexKind::Similarity)?;
        lookup::stored_bytes(&self.lookup, documents).await
    }

    /// Compares two documents. Fails if one of them has no shingle.
    pub async fn compare(&self, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        lookup::compare(&self.lookup, a, b, when_full).await
    }

    /// Evaluates the golden set under the present settings.
    pub async fn golden(&self) -> Result<GoldenReport> {
        self.require(IndexKind::Similarity)?;
        let turn = self.long.take().await?;
        let report = lookup::golden::stored_beside(&self.lookup, turn).await?;
        self.lookup.meters().golden(&self.name, &report);
        Ok(report)
    }

    /// Stores a golden set in place of the earlier one, and evaluates it. The set is durable when this returns.
    pub async fn set_golden(&self, pairs: Vec<GoldenPair>) -> Result<GoldenReport> {
        self.require(IndexKind::Similarity)?;
        let (turn, pairs) = (self.long.take().await?, Arc::new(pairs));
        let (report, _turn) = lookup::golden::given_beside(&self.lookup, &pairs, turn).await?;
        let written = self.writes.write_golden(pairs)?;
        written.await.unwrap_or_else(|_| Err(CollectionError::closed()))?;
        self.lookup.meters().golden(&self.name, &report);
        Ok(report)
    }

    /// Changes settings. A new banding is built while the old one serves requests.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        // These are the settings right after this change. Another change may have followed since.
        let settings = self.rebanding.update(changes).await?;
        Ok(self.described(settings))
    }

    /// Stops taking writes, waits until all accepted writes are on disk, and closes the file. Blocks the thread.
    pub fn close(&self) {
        write_statistics(&self.writes);
        if !self.writes.close() {
            tracing::error!(collection = %self.name, "the commit thread panicked");
        }
    }

    /// Returns whether the file of the collection has been closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lookup.records().store().is_closed()
    }

    /// Returns the parts that background threads work on.
    pub(crate) fn upkeep_parts(&self) -> UpkeepParts {
        let target = Target { name: self.name.clone(), lookup: Arc::clone(&self.lookup) };
        UpkeepParts {
            expiry: Arc::clone(&self.expiry),
            removals: Arc::clone(&self.removals),
            merges: Arc::clone(&self.merges),
            target,
            writes: Arc::clone(&self.writes),
        }
    }

    pub fn observe(&self) {
        let label = || self.name.to_string();
        let set = |name: &'static str, value: f64| metrics::gauge!(name, label::COLLECTION => label()).set(value);
        let (index, limits) = (self.lookup.index(), self.lookup.limits());
        let queue = self.writes.gauges();
        set(names::LOG_BYTES, self.lookup.records().store().log_bytes() as f64);
        set(names::DOCUMENTS, self.lookup.counts().documents() as f64);
        set(names::COMMIT_QUEUE_DEPTH, queue.depth as f64);
        set(names::COMMIT_QUEUE_MAX, limits.commit_queue_max as f64);
        set(names::COMMIT_PAYLOAD_BYTES, queue.payload_bytes as f64);
        set(names::COMMIT_PAYLOAD_BYTES_MAX, limits.commit_payload_bytes_max as f64);
        self.info.set(&self.name, &self.lookup.policy().settings);
        self.writes.account();
        let IndexBytes { signatures, postings, ids, last_seen, labels } = index.bytes();
        set(names::LABEL_DELETIONS_LEFT, self.writes.jobs().left() as f64);
        set(names::LABELS, index.labels_used() as f64);
        set(names::LABELS_MAX, limits.labels.labels_max as f64);
        let parts = [
            (value::PART_SIGNATURES, signatures),
            (value::PART_POSTINGS, postings),
            (value::PART_IDS, ids),
            (value::PART_SEEN_TIMES, last_seen),
            (value::PART_LABELS, labels),
            (value::PART_CLUSTERS, queue.cluster_bytes),
            (value::PART_NGRAMS, self.lookup.items().map_or(0, Items::bytes)),
            (value::PART_ID_CACHE, self.lookup.records().ids_bytes()),
        ];
        for (part, bytes) in parts {
            metrics::gauge!(names::INDEX_BYTES, label::COLLECTION => label(), label::PART => part).set(bytes as f64);
        }
    }

    pub(super) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    fn preparer(&self) -> &Preparer {
        self.lookup.preparer()
    }
}
