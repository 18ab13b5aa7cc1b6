//! Reads documents in order of `seq`, one page at a time.

use super::clusters::with_representatives;
use super::snapshot::{Snapshot, reading};
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::OUT_OF_ORDER;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::types::{Document, Seq};

/// Reads a page through the table of signatures, so that a missing document is noticed.
pub(in crate::store) fn page(
    snapshot: &mut Snapshot<'_>,
    after: Seq,
    limit: usize,
    mut fits: impl FnMut(&Document) -> bool,
) -> Result<Vec<Document>> {
    let (connection, collection) = (snapshot.connection(), snapshot.collection());
    let reading = |error| reading(collection, error);
    let mut statement = connection
        .prepare_cached(concat!(
            "SELECT ",
            document_columns!(),
            ", ",
            signature_columns!(),
            " FROM signature s LEFT JOIN document d ON d.seq = s.seq",
            " WHERE s.seq > ?1 ORDER BY s.seq"
        ))
        .map_err(reading)?;
    let mut rows = statement.query([i64::try_from(after.0).unwrap_or(i64::MAX)]).map_err(reading)?;
    let mut documents = Vec::new();
    let doomed = snapshot.doomed();
    let buffer = snapshot.buffer();
    let (mut first, mut before) = (None, after);
    while documents.len() < limit
        && let Some(row) = rows.next().map_err(reading)?
    {
        let seq = Seq(row.get::<_, i64>(DOCUMENT_COLUMN_COUNT).map_err(reading)? as u64);
        if seq <= before {
            return Err(StoreError::damaged(collection, seq, OUT_OF_ORDER));
        }
        (first, before) = (first.or(Some(seq)), seq);
        if doomed.has(seq) {
            continue;
        }
        let damaged = |flaw| StoreError::damaged(collection, seq, flaw);
        let mut document = DocumentRow::read(row, 0, buffer).and_then(|row| row.document()).map_err(damaged)?;
        let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer).map_err(damaged)?;
        document.labels = signature.labels().map_err(damaged)?;
        let more = fits(&document);
        documents.push((document, signature.cluster));
        if !more {
            break;
        }
    }
    drop(rows);
    // Search backwards, too, because a damaged inner page may make the first search skip records.
    match last_before(snapshot, first)? {
        Some(skipped) if skipped > after && limit > 0 => Err(StoreError::damaged(collection, skipped, OUT_OF_ORDER)),
        _ => with_representatives(snapshot, documents),
    }
}

/// Returns the last record before `seq`, or the last record of all if `seq` is `None`.
fn last_before(snapshot: &Snapshot<'_>, seq: Option<Seq>) -> Result<Option<Seq>> {
    let connection = snapshot.connection();
    let last = match seq {
        Some(seq) => connection
            .prepare_cached("SELECT max(seq) FROM signature WHERE seq < ?1")
            .and_then(|mut statement| statement.query_row([seq.0 as i64], |row| row.get::<_, Option<i64>>(0))),
        None => connection
            .prepare_cached("SELECT max(seq) FROM signature")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0))),
    };
    last.map(|last| last.map(|seq| Seq(seq as u64))).map_err(|error| reading(snapshot.collection(), error))
}
