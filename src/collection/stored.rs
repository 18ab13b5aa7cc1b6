//! A collection's file without its index: for what reads every document and looks none up.
//! Takes the data directory as a server does, and no memory for documents.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hapax_core::{SignatureShape, Spec};

use super::{ClustersPage, CollectionError, Result};
use crate::store::lock::DataDirLock;
use crate::store::{self, Opened, Store, Writer};
use crate::types::{ClusterPlace, CollectionName, Document, Seq};

/// A collection's records, all of them held against the ledger.
pub struct StoredCollection {
    store: Store,
    writer: Option<Writer>,
    shape: SignatureShape,
    documents: u64,
    _lock: DataDirLock,
}

impl StoredCollection {
    /// Opens a collection of a data directory that nobody else uses, and reads it through once; blocking.
    pub fn open(data_dir: &Path, lock_wait: Duration, name: &CollectionName) -> Result<Self> {
        let lock =
            DataDirLock::acquire(data_dir, lock_wait).map_err(|error| CollectionError::Store(error.to_string()))?;
        store::backup::refuse_half_restored(data_dir).map_err(|error| CollectionError::Store(error.chain()))?;
        let path = store::path_of(&data_dir.join("collections"), name);
        if !path.exists() {
            return Err(CollectionError::NoSuchCollection(name.clone()));
        }
        let (store, writer, Opened { meta, documents, .. }) = Store::open(&path)?;
        let spec =
            Spec::parse(&meta.spec).map_err(|error| CollectionError::Store(format!("{}: {error}", path.display())))?;
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        store.scan(threads, |_| {}, &AtomicU64::new(0))?;
        Ok(Self { store, writer: Some(writer), shape: spec.shape(), documents, _lock: lock })
    }

    /// How many documents there are, links included.
    pub fn documents_total(&self) -> u64 {
        self.documents
    }

    /// Documents in order of `seq`, after the given one.
    pub fn documents(&self, after: Seq, limit: usize) -> Result<Vec<Document>> {
        Ok(self.store.page(after, limit)?)
    }

    /// A page of all clusters that have more than one document.
    pub fn clusters(&self, after: ClusterPlace, limit: usize) -> Result<ClustersPage> {
        let (stretches, next) = self.store.clusters(after, limit)?;
        Ok(ClustersPage::new(stretches, next, self.shape))
    }
}

impl Drop for StoredCollection {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.close()
        {
            tracing::error!(%error, "the file could not be closed; its log is replayed at the next start");
        }
    }
}
