//! A view of a collection's file as it is at one moment.

use std::sync::Arc;

use rusqlite::{Connection, Row};

use super::doomed::Doomed;
use super::joined::ClusterView;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::types::Seq;

const DOCUMENT_GONE: Flaw = "its document is gone";

/// A view of the file as it is at one moment.
pub(in crate::store) struct Snapshot<'a> {
    connection: &'a Connection,
    collection: &'a str,
    doomed: Arc<Doomed>,
    clusters: Option<ClusterView<'a>>,
    buffer: Vec<u8>,
}

impl<'a> Snapshot<'a> {
    /// Wraps `connection`. It must have an open transaction, so that all reads see the file as it is at one moment.
    pub(super) fn new(
        connection: &'a Connection,
        collection: &'a str,
        doomed: Arc<Doomed>,
        clusters: Option<ClusterView<'a>>,
    ) -> Self {
        Self { connection, collection, doomed, clusters, buffer: Vec::new() }
    }

    pub(in crate::store) fn connection(&self) -> &'a Connection {
        self.connection
    }

    pub(in crate::store) fn collection(&self) -> &'a str {
        self.collection
    }

    /// Returns which documents joined which cluster. Only for [`read_clusters`](super::readers::Readers::read_clusters).
    pub(super) fn clusters(&self) -> &ClusterView<'a> {
        self.clusters.as_ref().expect("this is a read of clusters")
    }

    /// Returns the documents that are deleted by label and still on disk. They must not be listed.
    pub(super) fn doomed(&self) -> Arc<Doomed> {
        Arc::clone(&self.doomed)
    }

    /// Returns a buffer for computing the checksums of rows.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Reads the one row that `sql` selects for a document. If the row is missing but the signature exists, the file is
    /// damaged.
    pub(super) fn one<T>(
        &mut self,
        seq: Seq,
        sql: &str,
        make: impl FnOnce(&Row<'_>, &mut Vec<u8>) -> Result<T, Flaw>,
    ) -> Result<Option<T>> {
        let reading = |error| reading(self.collection, error).at_record(seq);
        let mut statement = self.connection.prepare_cached(sql).map_err(reading)?;
        let mut rows = statement.query([seq.0 as i64]).map_err(reading)?;
        match rows.next().map_err(reading)? {
            Some(row) => {
                make(row, &mut self.buffer).map(Some).map_err(|flaw| StoreError::damaged(self.collection, seq, flaw))
            }
            None if self.has_signature(seq)? => Err(StoreError::damaged(self.collection, seq, DOCUMENT_GONE)),
            None => Ok(None),
        }
    }

    pub(in crate::store) fn has_signature(&self, seq: Seq) -> Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM signature WHERE seq = ?1")
            .and_then(|mut statement| statement.exists([seq.0 as i64]))
            .map_err(|error| reading(self.collection, error))
    }
}

pub(in crate::store) fn reading(collection: &str, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(collection, "reading", error)
}
