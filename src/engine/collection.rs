//! One collection, open: its verbs, each a call to the part that knows how.

use std::sync::Arc;

use super::lookup::{self, Check, Lookup};
use super::upkeep::{Expiry, Rebanding, ScrubTarget, UpkeepParts};
use super::write::{self, Insertion, Ticket, Writes, start_committer};
use crate::cpu::WhenFull;
use crate::index::IndexBytes;
use crate::store::Writer;
use crate::telemetry::names::{self, label, value};
use crate::types::{
    ClusterPlace, CollectionName, Content, DocId, Document, Keep, Metadata, Seq, TimestampMs, Verdict, Verify,
};
use crate::verdicts::{
    Changes, CheckOptions, ClusterPage, ClustersPage, CollectionError, Comparand, Comparison, Description, HotBucket,
    InsertOptions, PrepareOptions, Prepared, Preparer, Purpose, Result, Settings, TextSigner, check_threshold,
};
use hapax_core::IllFormed;

/// One collection of this machine, open.
pub struct LocalCollection {
    name: CollectionName,
    created: TimestampMs,
    lookup: Arc<Lookup>,
    writes: Arc<Writes>,
    expiry: Arc<Expiry>,
    rebanding: Arc<Rebanding>,
}

/// What a collection is made of when its file has been read.
pub(super) struct Parts {
    pub name: CollectionName,
    /// When it was made.
    pub created: TimestampMs,
    /// What is in it.
    pub writes: Arc<Writes>,
}

impl LocalCollection {
    pub(super) fn start(parts: Parts, writer: Writer) -> Self {
        let Parts { name, created, writes } = parts;
        start_committer(&writes, &name, writer);
        let lookup = Arc::clone(writes.lookup());
        let expiry = Arc::new(Expiry::new(name.clone(), Arc::clone(&writes)));
        let rebanding = Arc::new(Rebanding::new(Arc::clone(&writes), created));
        Self { name, created, lookup, writes, expiry, rebanding }
    }

    pub fn name(&self) -> &CollectionName {
        &self.name
    }

    pub fn settings(&self) -> Settings {
        self.lookup.policy().settings.clone()
    }

    /// Its settings and counts.
    pub fn describe(&self) -> Description {
        self.described(self.settings())
    }

    fn described(&self, settings: Settings) -> Description {
        let counts = self.lookup.counts();
        let (documents, linked) = (counts.documents(), counts.linked());
        Description::new(self.name.clone(), settings, self.created, documents, Some(linked))
    }

    /// Makes a document ready to be judged.
    pub async fn prepare(&self, content: Content) -> Result<Prepared> {
        self.prepare_with(content, PrepareOptions::default()).await
    }

    /// Makes a document ready to be judged, or for other uses.
    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().prepare(content, options, verify).await
    }

    /// Begins a text that will be given in pieces.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().text_signer(ill_formed, options, verify)
    }

    /// Bytes that a text of so many takes at the most beside itself while it is prepared.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        let verify = self.lookup.policy().settings.verify;
        self.preparer().shingle_bytes(purpose, text_bytes, verify)
    }

    /// Whether contents that are looked up are compared by their shingles.
    pub fn compares_shingles(&self) -> bool {
        self.lookup.policy().settings.verify == Verify::Exact
    }

    /// Looks a document up, for an answer of so many bytes; see [`Verdict::fit`]. Never writes and never waits for a
    /// write.
    pub async fn check_within(
        &self,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        if let Some(threshold) = options.threshold {
            check_threshold(threshold)?;
        }
        let (made, shingles) = prepared.into_parts();
        match made {
            Some(made) => lookup::check(&self.lookup, Check { id, made, shingles, options, bytes_max }).await,
            None => Ok(lookup::check_empty(&self.lookup, id)),
        }
    }

    /// Check-and-insert, for an answer of so many bytes; see [`Verdict::fit`]. What is stored is the same. It is decided
    /// when this returns, durable when the ticket is.
    pub async fn insert_within(
        &self,
        id: DocId,
        metadata: Option<Metadata>,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Ticket<Verdict>> {
        let (made, shingles) = prepared.into_parts();
        let Some(made) = made else { return write::insert_empty(&self.writes, id, options.on_existing).await };
        let has_payload = made.kept.as_ref().is_some_and(|kept| kept.payload.is_some());
        if self.preparer().keep() != Keep::Signature && !has_payload {
            let detail = "was prepared to be looked up".into();
            return Err(CollectionError::Invalid { field: "document", detail });
        }
        let insertion = Insertion { id, metadata, made, room: None, shingles, options, bytes_max };
        write::insert(&self.writes, insertion).await
    }

    /// Deletes an id; the ticket says whether it was there.
    pub async fn delete(&self, id: DocId) -> Result<Ticket<bool>> {
        write::delete(&self.writes, id).await
    }

    /// The document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        lookup::document(&self.lookup, id).await
    }

    /// Documents in order of `seq`, after the given one, as many as fit into so many bytes of JSON and at least one; and
    /// whether more may follow.
    pub async fn documents_within(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<(Vec<Document>, bool)> {
        lookup::documents_within(&self.lookup, after, limit, bytes_max).await
    }

    /// A page of the cluster that a document is in, or of the cluster of `after`, whatever became of the document since.
    pub async fn cluster(&self, id: DocId, after: Option<ClusterPlace>, limit: usize) -> Result<Option<ClusterPage>> {
        lookup::cluster(&self.lookup, id, after, limit).await
    }

    /// A page of all clusters that have more than one document.
    pub async fn clusters(&self, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
        lookup::clusters(&self.lookup, after, limit).await
    }

    /// The fullest buckets, the fullest first.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        lookup::buckets(&self.lookup, limit).await
    }

    /// Compares two documents; both must have something to compare.
    pub async fn compare(&self, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        lookup::compare(&self.lookup, a, b, when_full).await
    }

    /// Changes settings; a new banding is built while the old one serves.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        // Not those of a change that came after.
        let settings = self.rebanding.update(changes).await?;
        Ok(self.described(settings))
    }

    /// Stops taking writes, waits until those taken are on disk, and closes the file; blocking.
    pub fn close(&self) {
        if !self.writes.close() {
            tracing::error!(collection = %self.name, "the committer panicked");
        }
    }

    /// Whether its file has been closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lookup.records().store().is_closed()
    }

    /// What threads in the background look after.
    pub(crate) fn upkeep_parts(&self) -> UpkeepParts {
        let scrub_target = ScrubTarget { name: self.name.clone(), lookup: Arc::clone(&self.lookup) };
        UpkeepParts { expiry: Arc::clone(&self.expiry), scrub_target, writes: Arc::clone(&self.writes) }
    }

    pub fn observe(&self) {
        let label = || self.name.to_string();
        let set = |name: &'static str, value: f64| metrics::gauge!(name, label::COLLECTION => label()).set(value);
        let (index, limits) = (self.lookup.index(), self.lookup.limits());
        let (queue, fullness) = (self.writes.gauges(), index.fullness());
        set(names::LOG_BYTES, self.lookup.records().store().log_bytes() as f64);
        set(names::DOCUMENTS, self.lookup.counts().documents() as f64);
        set(names::COMMIT_QUEUE_DEPTH, queue.depth as f64);
        set(names::COMMIT_QUEUE_MAX, limits.commit_queue_max as f64);
        set(names::COMMIT_PAYLOAD_BYTES, queue.payload_bytes as f64);
        set(names::COMMIT_PAYLOAD_BYTES_MAX, limits.commit_payload_bytes_max as f64);
        set(names::BUCKET_DOCUMENTS_LARGEST, fullness.largest as f64);
        set(names::BUCKET_DOCUMENTS_P99, fullness.p99 as f64);
        self.writes.account();
        let IndexBytes { signatures, postings, ids, last_seen } = index.bytes();
        let parts = [
            (value::PART_SIGNATURES, signatures),
            (value::PART_POSTINGS, postings),
            (value::PART_IDS, ids),
            (value::PART_SEEN_TIMES, last_seen),
            (value::PART_CLUSTERS, queue.cluster_bytes),
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
