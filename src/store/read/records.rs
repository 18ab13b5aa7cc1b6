//! Reads one record, a part of one record, or several whole records.

use std::sync::Arc;

use super::payloads;
use super::snapshot::{Snapshot, reading};
use crate::store::error::Result;
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::record::{Head, Record};
use crate::types::{Payload, Seq};

pub(in crate::store) fn record(snapshot: &mut Snapshot<'_>, seq: Seq) -> Result<Option<Record>> {
    let sql = concat!(
        "SELECT ",
        document_columns!(),
        ", ",
        signature_columns!(),
        " FROM document d LEFT JOIN signature s ON s.seq = d.seq WHERE d.seq = ?1"
    );
    snapshot.one(seq, sql, |row, buffer| {
        let document = DocumentRow::read(row, 0, buffer)?;
        let (signature, _) = SignatureRow::read(row, DOCUMENT_COLUMN_COUNT, buffer)?;
        document.record(&signature)
    })
}

/// Reads up to `limit` records after `after` with their payloads, in order of `seq`. Stops after the record that brings
/// the total size of the payloads to `bytes_max` or more.
pub(in crate::store) fn whole(
    snapshot: &mut Snapshot<'_>,
    after: Seq,
    limit: usize,
    bytes_max: usize,
) -> Result<Vec<Record>> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    for seq in seqs(snapshot, after, limit)? {
        let Some(record) = record(snapshot, seq)? else { continue };
        let mut kept = None;
        if payloads::bytes(snapshot, seq)?.is_some() {
            let keep = &mut |_, payload| {
                kept = Some(Arc::new(payload));
                Ok(())
            };
            payloads::payload(snapshot, seq, &mut |_| Ok(()), keep)?;
        }
        bytes += kept.as_ref().map_or(0, |payload: &Arc<Payload>| payload.bytes.len());
        records.push(Record { payload: kept, ..record });
        if bytes >= bytes_max {
            break;
        }
    }
    Ok(records)
}

fn seqs(snapshot: &Snapshot<'_>, after: Seq, limit: usize) -> Result<Vec<Seq>> {
    let reading = |error| reading(snapshot.collection(), error);
    let sql = "SELECT seq FROM signature WHERE seq > ?1 ORDER BY seq";
    let mut statement = snapshot.connection().prepare_cached(sql).map_err(reading)?;
    let mut rows = statement.query([i64::try_from(after.0).unwrap_or(i64::MAX)]).map_err(reading)?;
    let (doomed, mut seqs) = (snapshot.doomed(), Vec::new());
    while seqs.len() < limit
        && let Some(row) = rows.next().map_err(reading)?
    {
        let seq = Seq(row.get::<_, i64>(0).map_err(reading)? as u64);
        seqs.extend((!doomed.has(seq)).then_some(seq));
    }
    Ok(seqs)
}

pub(in crate::store) fn head(snapshot: &mut Snapshot<'_>, seq: Seq, with_metadata: bool) -> Result<Option<Head>> {
    document(snapshot, seq, |row| row.head(with_metadata))
}

/// Includes the metadata if it fits into `metadata_bytes`, and subtracts its length.
pub(in crate::store) fn head_within(
    snapshot: &mut Snapshot<'_>,
    seq: Seq,
    metadata_bytes: &mut Option<usize>,
    with_capture: bool,
) -> Result<Option<Head>> {
    document(snapshot, seq, |row| row.head_within(metadata_bytes, with_capture))
}

fn document<T>(
    snapshot: &mut Snapshot<'_>,
    seq: Seq,
    make: impl FnOnce(&DocumentRow<'_>) -> Result<T, Flaw>,
) -> Result<Option<T>> {
    let sql = concat!("SELECT ", document_columns!(), " FROM document d WHERE d.seq = ?1");
    snapshot.one(seq, sql, |row, buffer| make(&DocumentRow::read(row, 0, buffer)?))
}
