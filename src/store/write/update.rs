//! Other metadata for a stored document -> its row, with the row's checksum and the ledger.

use rusqlite::params;

use super::writer::Writer;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::store::format::ledger::Ledger;
use crate::store::format::rows::{DocumentRow, document_columns};
use crate::types::{Metadata, Seq};

impl Writer {
    /// Gives `target` other metadata, as the change at `seq`. A row that is damaged is an error: the client is told that
    /// its metadata is stored.
    pub(in crate::store) fn update(
        &mut self,
        target: Seq,
        metadata: Option<&Metadata>,
        seq: Seq,
        ledger: &mut Ledger,
    ) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let sums = self.metadata_sums(target, metadata, &mut buffer);
        self.buffer = buffer;
        let Some(sums) = sums.map_err(|error| self.sqlite(error))? else {
            return Err(self.out_of_order(seq, format!("there is no document {} to update", target.0)));
        };
        let (old, new) = sums.map_err(|flaw| StoreError::damaged(&self.collection, target, flaw))?;
        ledger.documents.exchange(old, new);
        let metadata = metadata.map(Metadata::as_str);
        let sql = "UPDATE document SET metadata = ?2, sum = ?3 WHERE seq = ?1";
        self.run(seq, sql, params![target.0 as i64, metadata, new as i64])
    }

    /// The sum of the row as it is, and with other metadata.
    fn metadata_sums(
        &self,
        target: Seq,
        metadata: Option<&Metadata>,
        buffer: &mut Vec<u8>,
    ) -> rusqlite::Result<Option<Result<(u64, u64), Flaw>>> {
        let sql = concat!("SELECT ", document_columns!(), " FROM document d WHERE d.seq = ?1");
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([target.0 as i64])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(DocumentRow::read(row, 0, buffer).map(|row| {
            let metadata = metadata.map(|metadata| metadata.as_str().as_bytes());
            (row.sum(buffer), DocumentRow { metadata, ..row }.sum(buffer))
        })))
    }
}
