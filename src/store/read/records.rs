//! Reads one record, or a part of it.

use super::snapshot::Snapshot;
use crate::store::error::Result;
use crate::store::format::columns::Flaw;
use crate::store::format::rows::{
    DOCUMENT_COLUMN_COUNT, DocumentRow, SignatureRow, document_columns, signature_columns,
};
use crate::store::record::{Head, Record};
use crate::types::Seq;

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
