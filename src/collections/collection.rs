//! One collection, whatever keeps its documents: the verbs that `http` and `cli` know.
//! Each verb is one match over the kinds. It shows no place in an index, no order and no ticket of one kind, so that a
//! second kind only adds arms here.

use std::sync::Arc;

use super::Pending;
use super::{
    Changes, CheckOptions, ClusterPage, ClustersPage, Comparand, Comparison, Cursor, Description, DocumentsPage,
    HotBucket, InsertOptions, PrepareOptions, Prepared, Purpose, Result, Settings, TextSigner,
};
use crate::cpu::WhenFull;
use crate::engine::LocalCollection;
use crate::types::{ClusterPlace, CollectionName, Content, DocId, Document, Metadata, Seq, Verdict};
use hapax_core::IllFormed;

/// An open collection. Cheap to clone.
#[derive(Clone)]
pub enum Collection {
    /// Its index is in this process, its documents are in a file of this machine.
    Local(Arc<LocalCollection>),
}

impl Collection {
    pub fn name(&self) -> &CollectionName {
        match self {
            Self::Local(collection) => collection.name(),
        }
    }

    pub fn settings(&self) -> Settings {
        match self {
            Self::Local(collection) => collection.settings(),
        }
    }

    /// Its settings and counts.
    pub fn describe(&self) -> Description {
        match self {
            Self::Local(collection) => collection.describe(),
        }
    }

    /// Changes settings; a new banding is built while the old one serves.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        match self {
            Self::Local(collection) => collection.update(changes).await,
        }
    }

    /// Makes a content ready to be looked up or inserted.
    pub async fn prepare(&self, content: Content) -> Result<Prepared> {
        match self {
            Self::Local(collection) => collection.prepare(content).await,
        }
    }

    /// As [`prepare`](Self::prepare), with options.
    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        match self {
            Self::Local(collection) => collection.prepare_with(content, options).await,
        }
    }

    /// Makes a text ready that arrives in pieces.
    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        match self {
            Self::Local(collection) => collection.text_signer(ill_formed, options),
        }
    }

    /// Bytes of memory that the shingles of a text take at most, if this purpose needs them.
    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        match self {
            Self::Local(collection) => collection.shingle_bytes(purpose, text_bytes),
        }
    }

    /// Whether a lookup compares shingles, so that it needs those of its document.
    pub fn compares_shingles(&self) -> bool {
        match self {
            Self::Local(collection) => collection.compares_shingles(),
        }
    }

    /// Looks a document up. Never writes and never waits for a write.
    pub async fn check(&self, id: Option<DocId>, prepared: Prepared, options: CheckOptions) -> Result<Verdict> {
        self.check_within(id, prepared, options, usize::MAX).await
    }

    /// As [`check`](Self::check), for an answer of so many bytes; see [`Verdict::fit`].
    pub async fn check_within(
        &self,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        match self {
            Self::Local(collection) => collection.check_within(id, prepared, options, bytes_max).await,
        }
    }

    /// Check-and-insert: decided when this returns, durable when the answer is.
    pub async fn insert(
        &self,
        id: DocId,
        metadata: Option<Metadata>,
        prepared: Prepared,
        options: InsertOptions,
    ) -> Result<Pending<Verdict>> {
        self.insert_within(id, metadata, prepared, options, usize::MAX).await
    }

    /// As [`insert`](Self::insert), for an answer of so many bytes; see [`Verdict::fit`]. What is stored is the same.
    pub async fn insert_within(
        &self,
        id: DocId,
        metadata: Option<Metadata>,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Pending<Verdict>> {
        match self {
            Self::Local(collection) => {
                collection.insert_within(id, metadata, prepared, options, bytes_max).await.map(Pending::from)
            }
        }
    }

    /// Deletes an id; the answer says whether it was there.
    pub async fn delete(&self, id: DocId) -> Result<Pending<bool>> {
        match self {
            Self::Local(collection) => collection.delete(id).await.map(Pending::from),
        }
    }

    /// The document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        match self {
            Self::Local(collection) => collection.document(id).await,
        }
    }

    /// Documents in order of `seq`, from the first one or from where an earlier page ended.
    pub async fn documents(&self, after: Option<Cursor>, limit: usize) -> Result<DocumentsPage> {
        self.documents_within(after, limit, usize::MAX).await
    }

    /// As [`documents`](Self::documents), as many as fit into so many bytes of JSON and at least one.
    pub async fn documents_within(
        &self,
        after: Option<Cursor>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<DocumentsPage> {
        match self {
            Self::Local(collection) => {
                let after = after.map_or(Ok(Seq(0)), |cursor| cursor.document())?;
                let (documents, more) = collection.documents_within(after, limit, bytes_max).await?;
                Ok(DocumentsPage::new(documents, more))
            }
        }
    }

    /// A page of the cluster that a document is in, or of the cluster of `after`, whatever became of the document since.
    pub async fn cluster(&self, id: DocId, after: Option<Cursor>, limit: usize) -> Result<Option<ClusterPage>> {
        match self {
            Self::Local(collection) => {
                let after = after.map(|cursor| cursor.cluster()).transpose()?;
                collection.cluster(id, after, limit).await
            }
        }
    }

    /// A page of all clusters that have more than one document.
    pub async fn clusters(&self, after: Option<Cursor>, limit: usize) -> Result<ClustersPage> {
        match self {
            Self::Local(collection) => {
                let after = after.map_or(Ok(ClusterPlace::default()), |cursor| cursor.cluster())?;
                collection.clusters(after, limit).await
            }
        }
    }

    /// The fullest buckets, the fullest first.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        match self {
            Self::Local(collection) => collection.buckets(limit).await,
        }
    }

    /// Compares two documents; both must have something to compare. `when_full` is for what is long.
    pub async fn compare(&self, a: Comparand, b: Comparand, when_full: WhenFull) -> Result<Comparison> {
        match self {
            Self::Local(collection) => collection.compare(a, b, when_full).await,
        }
    }
}
