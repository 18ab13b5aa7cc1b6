//! Writes the data that is stored with the content of a document (metadata, labels, its capture, the mark of a page) to
//! its rows, and updates the checksums and the ledger.

use rusqlite::params;

use super::batch::Batch;
use crate::store::additions::Additions;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{DocumentRow, SignatureRow, document_columns, signature_columns};
use crate::types::{Capture, CaptureDate, Labels, Metadata, PayloadDigest, Seq};

/// The checksums of a row before and after the change.
type Sums = (u64, u64);

/// Changes the data that is stored with `target`, as the change at `seq`. A damaged row is an error, because an answer
/// without an error tells the client that its metadata and labels are stored.
pub(super) fn update(batch: &mut Batch<'_>, target: Seq, additions: &Additions, seq: Seq) -> Result<()> {
    let sums = document_sums(batch, target, additions);
    let (old, new) = known(batch, sums, target, seq)?;
    if old != new {
        batch.ledger().documents.exchange(old, new);
        let Additions { metadata, capture, page, .. } = additions;
        let (metadata, hash) = (metadata.as_ref().map(Metadata::as_str), page.map(|page| page.hash.to_be_bytes()));
        let sql = "UPDATE document SET metadata = ?2, page_hash = ?3, extractor = ?4, capture_date = ?5,
                   payload_digest = ?6, sum = ?7 WHERE seq = ?1";
        let Capture { date, digest } = capture;
        let (date, digest) = (date.as_ref().map(CaptureDate::as_str), digest.as_ref().map(PayloadDigest::as_str));
        let extractor = page.map(|page| page.extractor);
        batch.run(seq, sql, params![target.0 as i64, metadata, hash, extractor, date, digest, new as i64])?;
    }
    let sums = signature_sums(batch, target, additions);
    let (old, new) = known(batch, sums, target, seq)?;
    if old != new {
        batch.ledger().signatures.exchange(old, new);
        let labels = additions.labels.as_ref().map(Labels::as_str);
        let sql = "UPDATE signature SET labels = ?2, sum = ?3 WHERE seq = ?1";
        batch.run(seq, sql, params![target.0 as i64, labels, new as i64])?;
    }
    Ok(())
}

/// Returns the checksums, or the error of the change at `seq`.
fn known(batch: &Batch<'_>, sums: rusqlite::Result<Option<Result<Sums, Flaw>>>, target: Seq, seq: Seq) -> Result<Sums> {
    let sums = sums.map_err(|error| batch.failed(error))?;
    let sums = sums.ok_or_else(|| batch.out_of_order(seq, format!("there is no document {} to update", target.0)))?;
    sums.map_err(|flaw| StoreError::damaged(batch.collection(), target, flaw))
}

fn document_sums(
    batch: &mut Batch<'_>,
    target: Seq,
    additions: &Additions,
) -> rusqlite::Result<Option<Result<Sums, Flaw>>> {
    let sql = concat!("SELECT ", document_columns!(), " FROM document d WHERE d.seq = ?1");
    let mut statement = batch.connection().prepare_cached(sql)?;
    let mut rows = statement.query([target.0 as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let buffer = batch.buffer();
    Ok(Some(DocumentRow::read(row, 0, buffer).map(|row| {
        let metadata = additions.metadata.as_ref().map(|metadata| metadata.as_str().as_bytes());
        (
            row.sum(buffer),
            DocumentRow { metadata, page: additions.page, ..row.with_capture(&additions.capture) }.sum(buffer),
        )
    })))
}

fn signature_sums(
    batch: &mut Batch<'_>,
    target: Seq,
    additions: &Additions,
) -> rusqlite::Result<Option<Result<Sums, Flaw>>> {
    let sql = concat!("SELECT ", signature_columns!(), " FROM signature s WHERE s.seq = ?1");
    let mut statement = batch.connection().prepare_cached(sql)?;
    let mut rows = statement.query([target.0 as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let buffer = batch.buffer();
    Ok(Some(SignatureRow::read(row, 0, buffer).map(|(row, old)| {
        let labels = additions.labels.as_ref().map(Labels::as_str);
        (old, SignatureRow { labels, ..row }.sum(buffer))
    })))
}
