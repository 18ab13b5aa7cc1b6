//! A collection's file without its index, for work that reads every document and never looks up a document. It locks
//! the data directory as a server does, and needs no memory for documents.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hapax_core::{Pipeline, Spec, SpecError, TextSpec};

use crate::cpu;
use crate::engine::{Pairs, compared_page};
use crate::load::{ExportedRow, FileSettings};
use crate::store::lock::DataDirLock;
use crate::store::{self, Opened, Record, Store, Writer};
use crate::types::{ClusterPlace, CollectionName, Seq};
use crate::verdicts::{ClustersPage, CollectionError, Cursor, DocumentsPage, Result, Settings};

/// The maximum number of bytes of the shingles and texts that are compared for one page.
const PAGE_BYTES_MAX: u64 = 32 << 20;
/// The limit on the payloads of rows that are read together, in bytes. When it is reached, no further row is read.
const ROWS_BYTES_MAX: usize = 16 << 20;

/// The records of a collection, after all of them were checked against the ledger.
pub struct StoredCollection {
    store: Store,
    writer: Option<Writer>,
    settings: Settings,
    /// The version of the extractor with which the collection was created.
    extractor: u32,
    /// The pipeline that makes shingles of stored texts.
    pipeline: Option<Pipeline>,
    documents: u64,
    _lock: DataDirLock,
}

impl StoredCollection {
    /// Opens a collection of a data directory that no other process uses, and reads the whole collection once. Blocks
    /// the thread.
    pub fn open(data_dir: &Path, lock_wait: Duration, name: &CollectionName) -> Result<Self> {
        let lock = DataDirLock::acquire(data_dir, lock_wait)?;
        store::backup::refuse_half_restored(data_dir).map_err(|error| CollectionError::Store(error.chain()))?;
        let dir = data_dir.join("collections");
        let path = store::path_of(&dir, name);
        if dir.is_dir() {
            store::finish_repairs(&dir).map_err(|error| CollectionError::of_system(dir.display(), &error))?;
        }
        if !path.exists() {
            return Err(CollectionError::NoSuchCollection(name.clone()));
        }
        let (store, writer, Opened { meta, documents, .. }) = Store::open(&path)?;
        let unusable = |error: String| CollectionError::Store(format!("{}: {error}", path.display()));
        let spec = Spec::parse(&meta.spec).map_err(|error| unusable(error.to_string()))?;
        let settings = Settings::of(&meta, spec).map_err(|error| unusable(error.to_string()))?;
        let pipeline = without_key(&settings.spec).map_err(|error| unusable(error.to_string()))?;
        store.scan(cpu::cores(), |_| {}, &AtomicU64::new(0))?;
        let extractor = meta.extractor;
        Ok(Self { store, writer: Some(writer), settings, extractor, pipeline, documents, _lock: lock })
    }

    /// Returns the number of documents, including links.
    pub fn documents_total(&self) -> u64 {
        self.documents
    }

    /// Returns documents in order of `seq`, from the first one or from the end of an earlier page.
    pub fn documents(&self, after: Option<&Cursor>, limit: usize) -> Result<DocumentsPage> {
        let after = after.map_or(Ok(Seq(0)), Cursor::document)?;
        let documents = self.store.page(after, limit)?;
        let more = documents.len() == limit;
        Ok(DocumentsPage::new(documents, more))
    }

    /// Returns the settings, in the form of a file of signatures.
    pub fn file_settings(&self) -> FileSettings {
        FileSettings::of(&self.settings, self.extractor)
    }

    /// Returns rows for a file of signatures, in order of `seq`: the documents after `after`. An empty result means
    /// that all documents have been returned.
    pub fn rows(&self, after: Seq, limit: usize) -> Result<Vec<ExportedRow>> {
        let records = self.store.whole_records(after, limit, ROWS_BYTES_MAX)?;
        records.into_iter().map(|record| self.row(record)).collect()
    }

    /// Returns the records of documents, in order of `seq`: those after `after`. An empty result means that all have been
    /// returned.
    pub(in crate::collections) fn records(&self, after: Seq, limit: usize) -> Result<Vec<Record>> {
        Ok(self.store.whole_records(after, limit, ROWS_BYTES_MAX)?)
    }

    pub(in crate::collections) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn row(&self, record: Record) -> Result<ExportedRow> {
        let representative = match record.cluster {
            Seq(0) => None,
            cluster => self.store.representative(cluster)?.filter(|(seq, _)| *seq != record.seq).map(|(_, id)| id),
        };
        let seqs: Vec<_> = record.verdict.matches.iter().map(|found| found.seq).collect();
        let heads = self.store.heads(&seqs, None, false)?;
        let matches = heads.into_iter().map(|head| Some(head?.id)).collect();
        Ok(ExportedRow { record, representative, matches })
    }

    /// Returns a page of all clusters that have more than one document.
    pub fn clusters(&self, after: Option<&Cursor>, limit: usize) -> Result<ClustersPage> {
        let after = after.map_or(Ok(ClusterPlace::default()), Cursor::cluster)?;
        let (stretches, next) = self.store.clusters(after, limit)?;
        let Settings { spec, verify, threshold, .. } = &self.settings;
        let made_by = (spec, self.pipeline.as_ref());
        let mut pairs = Pairs::new(&self.store, made_by, *verify, *threshold, PAGE_BYTES_MAX);
        Ok(compared_page(stretches, next, &mut pairs)?.expect("nobody else uses the data directory"))
    }
}

/// The number of shingles that two texts share does not depend on the key, so a file can be read without its secret.
fn without_key(spec: &Spec) -> std::result::Result<Option<Pipeline>, SpecError> {
    let Spec::Text(text) = spec else { return Ok(None) };
    Pipeline::new(&TextSpec { key: None, ..text.clone() }, None).map(Some)
}

impl Drop for StoredCollection {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.close()
        {
            tracing::error!(%error, "cannot close the file; its log is replayed at the next start");
        }
    }
}
