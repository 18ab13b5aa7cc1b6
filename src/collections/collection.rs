//! One collection, wherever its documents are stored. `http` and `cli` call the methods of [`Collection`]. Each method
//! is one `match` over the variants of the enum, and each variant is one way to store documents. No method shows
//! details of one way, such as slots, positions or tickets. So another way needs only a new variant and new match arms.

use std::sync::Arc;

use super::Pending;
use super::{
    Attached, Changes, CheckOptions, ClusterPage, ClustersPage, CollectionError, Comparand, Comparison, Cursor,
    Description, DocumentsPage, GoldenReport, HotBucket, InsertOptions, LargestClusters, ListedJob, OverlapOptions,
    Overlaps, PrepareOptions, Prepared, Purpose, Result, Settings, TextSigner,
};
use crate::cpu::{self, WhenFull};
use crate::engine::LocalCollection;
use crate::extract::Page;
use crate::redis::{AT_ONCE, LineOrder, RedisCollection, delete_in_turn, insert_in_turn};
use crate::types::{
    ClusterPlace, CollectionName, Content, DocId, Document, Extract, GoldenPair, Html, IndexKind, Label, LabelDeletion,
    Merge, OnDuplicate, OnExisting, Scope, Seq, Statistics, StoredText, Verdict,
};
use hapax_core::IllFormed;

/// The order of the documents of one request, which are inserted or deleted one after another. In a cluster, documents
/// that have nothing in common are worked on at once.
pub struct RequestOrder(Option<LineOrder>);

/// An open collection. Cloning is cheap.
#[derive(Clone)]
pub enum Collection {
    /// Its index is in this process, and its documents are in a file on this machine.
    Local(Arc<LocalCollection>),
    /// Its index and its documents are in a Redis or Valkey Cluster.
    Redis(Arc<RedisCollection>),
}

impl Collection {
    /// Begins a request with several documents.
    pub fn begin_request(&self) -> RequestOrder {
        match self {
            Self::Local(_) => RequestOrder(None),
            Self::Redis(_) => RequestOrder(Some(LineOrder::default())),
        }
    }

    pub fn name(&self) -> &CollectionName {
        match self {
            Self::Local(collection) => collection.name(),
            Self::Redis(collection) => collection.name(),
        }
    }

    pub fn settings(&self) -> Settings {
        match self {
            Self::Local(collection) => collection.settings(),
            Self::Redis(collection) => collection.settings(),
        }
    }

    /// Returns the settings and counts of the collection.
    pub fn describe(&self) -> Description {
        match self {
            Self::Local(collection) => collection.describe(),
            Self::Redis(collection) => collection.describe(),
        }
    }

    /// Changes settings. On this machine, the old banding serves requests until the postings of the new one are built.
    /// In a cluster, the banding does not change.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        match self {
            Self::Local(collection) => collection.update(changes).await,
            Self::Redis(collection) => collection.update(changes).await,
        }
    }

    /// Prepares a content for a lookup or an insertion.
    pub async fn prepare(&self, content: Content) -> Result<Prepared> {
        match self {
            Self::Local(collection) => collection.prepare(content).await,
            Self::Redis(collection) => collection.prepare_with(content, PrepareOptions::default()).await,
        }
    }

    /// Does the same as [`prepare`](Self::prepare), with options.
    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        match self {
            Self::Local(collection) => collection.prepare_with(content, options).await,
            Self::Redis(collection) => collection.prepare_with(content, options).await,
        }
    }

    /// Extracts the text of a page. If `extract` is absent, the setting of the collection decides which text this is.
    pub async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        match self {
            Self::Local(collection) => collection.extract(html, extract, when_full).await,
            Self::Redis(collection) => collection.extract(html, extract, when_full).await,
        }
    }

    /// Begins a text that arrives in pieces.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        match self {
            Self::Local(collection) => collection.text_signer(ill_formed, options),
            Self::Redis(collection) => collection.text_signer(ill_formed, options),
        }
    }

    /// Returns the largest size that the shingles of a text take in memory, if this purpose needs them.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        match self {
            Self::Local(collection) => collection.shingle_bytes(purpose, text_bytes),
            Self::Redis(collection) => collection.shingle_bytes(purpose, text_bytes),
        }
    }

    /// Whether a lookup compares shingles, and therefore needs the shingles of its document.
    pub fn compares_shingles(&self) -> bool {
        match self {
            Self::Local(collection) => collection.compares_shingles(),
            // Such settings are refused.
            Self::Redis(_) => false,
        }
    }

    /// Returns an error unless the documents of the collection are found in this way.
    pub fn require(&self, index: IndexKind) -> Result<()> {
        match self {
            Self::Local(collection) => collection.require(index),
            Self::Redis(_) if index == IndexKind::Similarity => Ok(()),
            Self::Redis(_) => absent("lookups by containment"),
        }
    }

    /// Finds the items of a containment collection that a text contains. Never writes.
    pub async fn overlaps(&self, text: String, options: OverlapOptions, when_full: WhenFull) -> Result<Overlaps> {
        match self {
            Self::Local(collection) => collection.overlaps(text, options, when_full).await,
            Self::Redis(_) => absent("lookups by containment"),
        }
    }

    /// Looks a document up. On this machine, it never writes and never waits for a write. In a cluster, it may write to
    /// confirm a match.
    pub async fn check(&self, id: Option<DocId>, prepared: Prepared, options: CheckOptions) -> Result<Verdict> {
        self.check_within(id, prepared, options, usize::MAX).await
    }

    /// Does the same as [`check`](Self::check), for an answer of at most `bytes_max` bytes; see [`Verdict::fit`].
    pub async fn check_within(
        &self,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        match self {
            Self::Local(collection) => collection.check_within(id, prepared, options, bytes_max).await,
            Self::Redis(collection) => collection.check_within(id, prepared, options, bytes_max).await,
        }
    }

    /// Checks and inserts a document. When this returns, the decision is made. When the pending answer is ready, the
    /// decision is durable.
    pub async fn insert(
        &self,
        id: DocId,
        attached: impl Into<Attached>,
        prepared: Prepared,
        options: InsertOptions,
    ) -> Result<Pending<Verdict>> {
        self.insert_within(id, attached.into(), prepared, options, usize::MAX).await
    }

    /// Does the same as [`insert`](Self::insert), for an answer of at most `bytes_max` bytes; see [`Verdict::fit`]. The
    /// limit does not change the stored data.
    pub async fn insert_within(
        &self,
        id: DocId,
        attached: Attached,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Pending<Verdict>> {
        match self {
            Self::Local(collection) => {
                collection.insert_within(id, attached, prepared, options, bytes_max).await.map(Pending::from)
            }
            Self::Redis(collection) => {
                collection.insert_within(id, attached, prepared, options, bytes_max).await.map(Pending::durable)
            }
        }
    }

    /// Does the same as [`insert_within`](Self::insert_within) for the next document of a request with several. In a
    /// cluster, the decision may be made later, after those of all earlier documents of the request that share a band or
    /// the id.
    pub async fn insert_in_turn(
        &self,
        order: &RequestOrder,
        id: DocId,
        attached: Attached,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Pending<Verdict>> {
        match (self, &order.0) {
            (Self::Redis(collection), Some(order)) => {
                let task = insert_in_turn(collection, order, id, attached, prepared, options, bytes_max).await?;
                Ok(Pending::in_turn(task, bytes_max))
            }
            _ => self.insert_within(id, attached, prepared, options, bytes_max).await,
        }
    }

    /// Deletes an id. The answer says whether the id was stored.
    pub async fn delete(&self, id: DocId) -> Result<Pending<bool>> {
        match self {
            Self::Local(collection) => collection.delete(id).await.map(Pending::from),
            Self::Redis(collection) => collection.delete(id).await.map(Pending::durable),
        }
    }

    /// Does the same as [`delete`](Self::delete) for the next id of a request with several; see
    /// [`insert_in_turn`](Self::insert_in_turn).
    pub async fn delete_in_turn(&self, order: &RequestOrder, id: DocId) -> Result<Pending<bool>> {
        match (self, &order.0) {
            (Self::Redis(collection), Some(order)) => Ok(Pending::in_turn(delete_in_turn(collection, order, id), 0)),
            _ => self.delete(id).await,
        }
    }

    /// Returns how many documents of one request are inserted or deleted at once; `None`: one after another.
    pub fn writes_at_once(&self) -> Option<usize> {
        match self {
            Self::Local(_) => None,
            Self::Redis(_) => Some(AT_ONCE),
        }
    }

    /// Returns how many documents of one request should be looked up at once.
    pub fn lookups_at_once(&self) -> usize {
        match self {
            // Enough to keep all cores busy, even if the first lookup takes long.
            Self::Local(_) => 2 * cpu::cores(),
            // Each lookup waits for the network.
            Self::Redis(_) => AT_ONCE,
        }
    }

    /// Deletes all documents with a label. They count as deleted at once, and are removed in the background.
    pub async fn delete_labelled(&self, label: Label) -> Result<Pending<LabelDeletion>> {
        match self {
            Self::Local(collection) => collection.delete_labelled(label).await.map(Pending::from),
            Self::Redis(_) => absent("labels"),
        }
    }

    /// Begins to insert the documents of another collection into this one. If this merge is already running, returns
    /// it. Fails if the collections do not take the same contents.
    pub fn merge(&self, from: &Self, on_duplicate: OnDuplicate, on_existing: OnExisting) -> Result<Pending<Merge>> {
        match (self, from) {
            (Self::Local(into), Self::Local(from)) => into.merge(from, on_duplicate, on_existing).map(Pending::from),
            _ => absent("merges"),
        }
    }

    /// Returns how often each outcome of an insertion occurred.
    pub fn statistics(&self) -> Result<Statistics> {
        match self {
            Self::Local(collection) => Ok(collection.statistics()),
            Self::Redis(_) => absent("statistics"),
        }
    }

    /// Returns how often each outcome of an insertion occurred, for each of the first `limit` labels in the order of
    /// their texts. With `name`, only labels with this name are listed. With `after`, only labels after this label are
    /// listed.
    pub fn label_statistics(
        &self,
        name: Option<&str>,
        after: Option<&Label>,
        limit: usize,
    ) -> Result<Vec<(Label, Statistics)>> {
        match self {
            Self::Local(collection) => Ok(collection.label_statistics(name, after, limit)),
            Self::Redis(_) => absent("labels"),
        }
    }

    /// Stops a merge. The documents that the merge has stored stay. Waits a short time for the end of the merge.
    pub async fn stop_merge(&self, number: Seq) {
        match self {
            Self::Local(collection) => collection.stop_merge(number).await,
            Self::Redis(_) => {}
        }
    }

    /// Returns the running jobs and the last jobs that have ended, the newest first.
    pub fn jobs(&self) -> Result<Vec<ListedJob>> {
        match self {
            Self::Local(collection) => Ok(collection.jobs()),
            Self::Redis(_) => absent("jobs"),
        }
    }

    /// Returns up to `limit` reports of a merge, as JSON. Each report has the `seq` of its document in the other
    /// collection. The reports are in order of `seq`, and begin after `after`.
    pub async fn merge_reports(&self, merge: Seq, after: Seq, limit: usize) -> Result<Vec<(Seq, String)>> {
        match self {
            Self::Local(collection) => collection.merge_reports(merge, after, limit).await,
            Self::Redis(_) => absent("merges"),
        }
    }

    /// Returns the document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        match self {
            Self::Local(collection) => collection.document(id).await,
            Self::Redis(collection) => collection.document(id).await,
        }
    }

    /// Returns the document with this id and its text. If both together have more than `bytes_max` bytes as JSON,
    /// returns [`StoredText::TooLong`] in place of the text. Fails if the collection stores no texts.
    pub async fn document_with_text(&self, id: &DocId, bytes_max: usize) -> Result<Option<(Document, StoredText)>> {
        match self {
            Self::Local(collection) => collection.document_with_text(id, bytes_max).await,
            Self::Redis(_) => absent("texts"),
        }
    }

    /// Returns documents in order of `seq`, from the first one or from the end of an earlier page.
    pub async fn documents(&self, after: Option<Cursor>, limit: usize) -> Result<DocumentsPage> {
        self.documents_within(None, after, limit, usize::MAX).await
    }

    /// Does the same as [`documents`](Self::documents), for a page of at most `bytes_max` bytes of JSON. The page has
    /// at least one document, even if it is longer. With a scope, returns only the documents in it.
    pub async fn documents_within(
        &self,
        scope: Option<Arc<Scope>>,
        after: Option<Cursor>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<DocumentsPage> {
        match self {
            Self::Local(collection) => {
                let after = after.map_or(Ok(Seq(0)), |cursor| cursor.document())?;
                let (documents, more) = match scope {
                    Some(scope) => collection.scoped_documents_within(scope, after, limit, bytes_max).await?,
                    None => collection.documents_within(after, limit, bytes_max).await?,
                };
                Ok(DocumentsPage::new(documents, more))
            }
            Self::Redis(_) if scope.is_some() => absent("labels"),
            Self::Redis(collection) => {
                let after = after.map_or(Ok(Seq(0)), |cursor| cursor.document())?;
                collection.documents_within(after, limit, bytes_max).await
            }
        }
    }

    /// Returns the first `limit` labels that documents have, in the order of their texts, and how many documents have
    /// each. With `name`, only labels with this name are listed. With `after`, only labels after this label are listed.
    pub fn labels(&self, name: Option<&str>, after: Option<&Label>, limit: usize) -> Result<Vec<(Label, u64)>> {
        match self {
            Self::Local(collection) => Ok(collection.labels(name, after, limit)),
            Self::Redis(_) => absent("labels"),
        }
    }

    /// Returns a page of the document's cluster. With `after`, it returns the next page of the same cluster, even if
    /// the document has left the cluster since.
    pub async fn cluster(&self, id: DocId, after: Option<Cursor>, limit: usize) -> Result<Option<ClusterPage>> {
        match self {
            Self::Local(collection) => {
                let after = after.map(|cursor| cursor.cluster()).transpose()?;
                collection.cluster(id, after, limit).await
            }
            Self::Redis(_) => absent("clusters of documents"),
        }
    }

    /// Returns a page of all clusters that have more than one document.
    pub async fn clusters(&self, after: Option<Cursor>, limit: usize) -> Result<ClustersPage> {
        match self {
            Self::Local(collection) => {
                let after = after.map_or(Ok(ClusterPlace::default()), |cursor| cursor.cluster())?;
                collection.clusters(after, limit).await
            }
            Self::Redis(_) => absent("clusters of documents"),
        }
    }

    /// Returns a page of the clusters that have more than one document, the largest first.
    pub async fn largest_clusters(&self, after: Option<Cursor>, limit: usize) -> Result<LargestClusters> {
        match self {
            Self::Local(collection) => {
                let after = after.map(|cursor| cursor.rank()).transpose()?;
                collection.largest_clusters(after, limit).await
            }
            Self::Redis(_) => absent("clusters of documents"),
        }
    }

    /// Returns the fullest buckets, the fullest first.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        match self {
            Self::Local(collection) => collection.buckets(limit).await,
            Self::Redis(collection) => collection.buckets(limit).await,
        }
    }

    /// Evaluates the golden set under the present settings.
    pub async fn golden(&self) -> Result<GoldenReport> {
        match self {
            Self::Local(collection) => collection.golden().await,
            Self::Redis(_) => absent("golden sets"),
        }
    }

    /// Stores a golden set in place of the earlier one, and evaluates it. The set is durable when this returns.
    pub async fn set_golden(&self, pairs: Vec<GoldenPair>) -> Result<GoldenReport> {
        match self {
            Self::Local(collection) => collection.set_golden(pairs).await,
            Self::Redis(_) => absent("golden sets"),
        }
    }

    /// Returns how much memory two documents take while they are compared. Only documents that are stored are counted.
    pub async fn bytes_to_compare(&self, documents: [&Comparand; 2]) -> Result<usize> {
        match self {
            Self::Local(collection) => collection.bytes_to_compare(documents).await,
            Self::Redis(_) => absent("comparisons"),
        }
    }

    /// Compares two documents. Both must have tokens or shingles to compare. If `a` is a long content and the queue for
    /// processors is full, `when_full` says what happens. All later work waits for a place in the queue, because the
    /// work on `a` would otherwise be lost.
    pub async fn compare(&self, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        match self {
            Self::Local(collection) => collection.compare(a, b, when_full).await,
            Self::Redis(_) => absent("comparisons"),
        }
    }
}

/// Refuses what a collection in a Redis cluster cannot do.
fn absent<T>(what: &'static str) -> Result<T> {
    Err(CollectionError::NotInThisStore { what })
}
