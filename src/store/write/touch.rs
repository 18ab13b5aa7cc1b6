//! Writes the last-seen time of a document to its row, and updates the checksum and the ledger.

use rusqlite::params;

use super::batch::Batch;
use crate::store::error::Result;
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::types::{Seq, TimestampMs};

/// Notes when `target` was last seen. Skips a document that is gone. Also skips a damaged row, and logs it: reads of
/// the row return the error, and one last-seen time must not stop all writes.
pub(super) fn touch(batch: &mut Batch<'_>, target: Seq, seen: TimestampMs) -> Result<()> {
    let sums = sums(batch, target, seen).map_err(|error| batch.failed(error))?;
    let Some((old, new)) = sums else { return Ok(()) };
    let sql = "UPDATE signature SET seen_ms = ?2, sum = ?3 WHERE seq = ?1";
    batch.run(target, sql, params![target.0 as i64, seen.0, new as i64])?;
    batch.ledger().signatures.exchange(old, new);
    Ok(())
}

/// Returns the present checksum of the row, and its checksum with the new time.
fn sums(batch: &mut Batch<'_>, target: Seq, seen: TimestampMs) -> rusqlite::Result<Option<(u64, u64)>> {
    let (connection, collection) = (batch.connection(), batch.collection());
    let sql = concat!("SELECT ", signature_columns!(), " FROM signature s WHERE s.seq = ?1");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([target.0 as i64])?;
    let Some(row) = rows.next()? else {
        let lost = connection.prepare_cached("SELECT 1 FROM document WHERE seq = ?1")?.exists([target.0 as i64])?;
        if lost {
            tracing::error!(
                collection,
                seq = target.0,
                "could not update a last-seen time: the record has lost its signature"
            );
        }
        return Ok(None);
    };
    let buffer = batch.buffer();
    Ok(match SignatureRow::read(row, 0, buffer) {
        Ok((row, old)) => Some((old, SignatureRow { seen, ..row }.sum(buffer))),
        Err(flaw) => {
            tracing::error!(
                collection,
                seq = target.0,
                flaw,
                "could not update a last-seen time: the record is damaged"
            );
            None
        }
    })
}
