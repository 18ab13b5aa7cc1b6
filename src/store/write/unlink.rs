//! Turns a link into an ordinary document: changes the flags and the checksums of both rows.

use rusqlite::{Connection, params};

use super::batch::Batch;
use crate::store::error::Result;
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::types::Seq;

/// The new flags of a row, and its checksums before and after.
struct Reflagged {
    flags: u8,
    old_sum: u64,
    new_sum: u64,
}

/// The reason why a link could not be read.
enum Unread {
    Flaw(Flaw),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Flaw> for Unread {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

/// Promotes `link`, if there is one, as part of the change at `seq`.
pub(super) fn promote(batch: &mut Batch<'_>, link: Option<Seq>, seq: Seq) -> Result<()> {
    let Some(link) = link else { return Ok(()) };
    let rows = match read_unlinked(batch.connection(), link, batch.buffer()) {
        Ok(rows) => rows,
        Err(Unread::Sqlite(error)) => return Err(batch.failed(error)),
        // A damaged record must not prevent other writes, so it stays a link.
        Err(Unread::Flaw(flaw)) => {
            tracing::error!(
                collection = batch.collection(),
                record = link.0,
                flaw,
                "could not turn a damaged link into an ordinary document; it stays a link on disk"
            );
            return Ok(());
        }
    };
    let Some([signature, document]) = rows else {
        return Err(batch.out_of_order(seq, format!("there is no link {} to promote", link.0)));
    };
    batch.ledger().signatures.exchange(signature.old_sum, signature.new_sum);
    batch.ledger().documents.exchange(document.old_sum, document.new_sum);
    for (sql, row) in [
        ("UPDATE signature SET flags = ?2, sum = ?3 WHERE seq = ?1", signature),
        ("UPDATE document SET flags = ?2, sum = ?3 WHERE seq = ?1", document),
    ] {
        batch.run(seq, sql, params![link.0 as i64, row.flags, row.new_sum as i64])?;
    }
    Ok(())
}

/// Turns a link into an ordinary document in both of its rows, if they are intact. The caller updates the ledger.
pub(in crate::store) fn unlink(connection: &Connection, link: Seq) -> rusqlite::Result<()> {
    let rows = match read_unlinked(connection, link, &mut Vec::new()) {
        Ok(Some(rows)) => rows,
        Ok(None) | Err(Unread::Flaw(_)) => return Ok(()),
        Err(Unread::Sqlite(error)) => return Err(error),
    };
    for (table, row) in ["signature", "document"].into_iter().zip(rows) {
        let update = format!("UPDATE {table} SET flags = ?2, sum = ?3 WHERE seq = ?1");
        connection.prepare_cached(&update)?.execute(params![link.0 as i64, row.flags, row.new_sum as i64])?;
    }
    Ok(())
}

/// Reads the two rows of a link, and computes the flags and checksums that these rows have without the link flag.
/// Returns `None` if there is no such link.
fn read_unlinked(connection: &Connection, link: Seq, buffer: &mut Vec<u8>) -> Result<Option<[Reflagged; 2]>, Unread> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        document_columns!(),
        ", ",
        signature_columns!(),
        " FROM document d JOIN signature s ON s.seq = d.seq WHERE d.seq = ?1"
    ))?;
    let mut rows = statement.query([link.0 as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (signature, old_sum) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer)?;
    if !signature.linked {
        return Ok(None);
    }
    let signature = SignatureRow { linked: false, ..signature };
    let signature = Reflagged { flags: signature.flags(), old_sum, new_sum: signature.sum(buffer) };
    let document = DocumentRow::read(row, 0, buffer)?;
    let old_sum = document.sum(buffer);
    let document = document.unlinked();
    let document = Reflagged { flags: document.flags, old_sum, new_sum: document.sum(buffer) };
    Ok(Some([signature, document]))
}
