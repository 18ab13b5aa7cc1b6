//! When a document was last seen -> its row, with the row's checksum and the ledger.

use rusqlite::params;

use super::batch::Batch;
use crate::store::error::Result;
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::types::{Seq, TimestampMs};

/// Notes when `target` was last seen. A document that is gone is passed over; so is a damaged row, with a word in the
/// log: whoever reads it is told, and a time is no reason to refuse all writes.
pub(super) fn touch(batch: &mut Batch<'_>, target: Seq, seen: TimestampMs) -> Result<()> {
    let sums = sums(batch, target, seen).map_err(|error| batch.failed(error))?;
    let Some((old, new)) = sums else { return Ok(()) };
    let sql = "UPDATE signature SET seen_ms = ?2, sum = ?3 WHERE seq = ?1";
    batch.run(target, sql, params![target.0 as i64, seen.0, new as i64])?;
    batch.ledger().signatures.exchange(old, new);
    Ok(())
}

/// The sum of the row as it stands, and with another time.
fn sums(batch: &mut Batch<'_>, target: Seq, seen: TimestampMs) -> rusqlite::Result<Option<(u64, u64)>> {
    let (connection, collection) = (batch.connection(), batch.collection());
    let sql = concat!("SELECT ", signature_columns!(), " FROM signature s WHERE s.seq = ?1");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([target.0 as i64])?;
    let Some(row) = rows.next()? else {
        let lost = connection.prepare_cached("SELECT 1 FROM document WHERE seq = ?1")?.exists([target.0 as i64])?;
        if lost {
            tracing::error!(collection, seq = target.0, "a record has lost its signature; it is not seen again");
        }
        return Ok(None);
    };
    let buffer = batch.buffer();
    Ok(match SignatureRow::read(row, 0, buffer) {
        Ok((row, old)) => Some((old, SignatureRow { seen, ..row }.sum(buffer))),
        Err(flaw) => {
            tracing::error!(collection, seq = target.0, flaw, "a record is damaged; when it was seen stays as it is");
            None
        }
    })
}
