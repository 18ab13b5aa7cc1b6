//! Writes new metadata and the mark of another page to the row of a stored document, and updates the checksum and the
//! ledger.

use rusqlite::params;

use super::batch::Batch;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{DocumentRow, document_columns};
use crate::types::{Metadata, PageMark, Seq};

/// The metadata of a document, and the page that its content came from.
type Additions<'a> = (Option<&'a Metadata>, Option<PageMark>);

/// Changes what is stored with `target`, as the change at `seq`. A damaged row is an error, because the client will be
/// told that its metadata is stored.
pub(super) fn update(batch: &mut Batch<'_>, target: Seq, additions: Additions<'_>, seq: Seq) -> Result<()> {
    let Some(sums) = sums(batch, target, additions).map_err(|error| batch.failed(error))? else {
        return Err(batch.out_of_order(seq, format!("there is no document {} to update", target.0)));
    };
    let (old, new) = sums.map_err(|flaw| StoreError::damaged(batch.collection(), target, flaw))?;
    batch.ledger().documents.exchange(old, new);
    let (metadata, page) = additions;
    let (metadata, hash) = (metadata.map(Metadata::as_str), page.map(|page| page.hash.to_be_bytes()));
    let sql = "UPDATE document SET metadata = ?2, page_hash = ?3, extractor = ?4, sum = ?5 WHERE seq = ?1";
    batch.run(seq, sql, params![target.0 as i64, metadata, hash, page.map(|page| page.extractor), new as i64])
}

/// Returns the checksum of the row as it is, and as it will be.
fn sums(
    batch: &mut Batch<'_>,
    target: Seq,
    (metadata, page): Additions<'_>,
) -> rusqlite::Result<Option<Result<(u64, u64), Flaw>>> {
    let sql = concat!("SELECT ", document_columns!(), " FROM document d WHERE d.seq = ?1");
    let mut statement = batch.connection().prepare_cached(sql)?;
    let mut rows = statement.query([target.0 as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let buffer = batch.buffer();
    Ok(Some(DocumentRow::read(row, 0, buffer).map(|row| {
        let metadata = metadata.map(|metadata| metadata.as_str().as_bytes());
        (row.sum(buffer), DocumentRow { metadata, page, ..row }.sum(buffer))
    })))
}
