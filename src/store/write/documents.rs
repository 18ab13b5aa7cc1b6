//! Inserts and removes a document with all of its rows.

use rusqlite::params;

use super::batch::Batch;
use crate::store::error::{Result, StoreError};
use crate::store::format::rows::{DocumentRow, SignatureRow};
use crate::store::format::{payload, verdict};
use crate::store::read::payloads::payload as payload_of;
use crate::store::read::snapshot::Snapshot;
use crate::store::record::Record;
use crate::types::{CaptureDate, Keep, PayloadDigest, Seq};

/// Stores a document, at its own `seq`.
pub(in crate::store) fn insert(batch: &mut Batch<'_>, record: &Record) -> Result<()> {
    let signature = SignatureRow::of(record);
    let sum = signature.sum(batch.buffer());
    batch.ledger().signatures.add(sum);
    batch.run(
        record.seq,
        "INSERT INTO signature (seq, id_fingerprint, content_prefix, flags, bytes, cluster, seen_ms, labels, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            signature.seq.0 as i64,
            signature.id_fingerprint as i64,
            signature.content_prefix as i64,
            signature.flags(),
            signature.bytes,
            signature.cluster.0 as i64,
            signature.seen.0,
            signature.labels,
            sum as i64
        ],
    )?;
    insert_document(batch, record)?;
    match (&record.payload, batch.keep()) {
        (None, Keep::Signature) => Ok(()),
        (Some(payload), Keep::Shingles | Keep::Text) => {
            let inserted = payload::insert(batch.connection(), record.seq, payload);
            let sum = batch.executed(record.seq, inserted)?;
            batch.ledger().payloads.add(sum);
            Ok(())
        }
        (payload, keep) => {
            let brought = if payload.is_some() { "a payload" } else { "no payload" };
            Err(batch
                .out_of_order(record.seq, format!("it has {brought}, but the collection keeps `{}`", keep.as_str())))
        }
    }
}

/// Stores the row of `document`.
fn insert_document(batch: &mut Batch<'_>, record: &Record) -> Result<()> {
    let verdict = verdict::to_json(&record.verdict);
    let document = DocumentRow::of(record, &verdict);
    let sum = document.sum(batch.buffer());
    batch.ledger().documents.add(sum);
    batch.run(
        record.seq,
        "INSERT INTO document
         (seq, id, metadata, content_hash, flags, first_seen_ms, shingles, verdict, id_first_seen_ms, page_hash,
          extractor, capture_date, payload_digest, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        params![
            document.seq.0 as i64,
            record.id.as_str(),
            record.metadata.as_ref().map(|metadata| metadata.as_str()),
            document.content,
            document.flags,
            document.first_seen_ms,
            document.shingles.map(|shingles| shingles as i64),
            verdict,
            document.id_first_seen_ms,
            document.page.map(|page| page.hash.to_be_bytes()),
            document.page.map(|page| page.extractor),
            record.capture.date.as_ref().map(CaptureDate::as_str),
            record.capture.digest.as_ref().map(PayloadDigest::as_str),
            sum as i64
        ],
    )
}

/// Tells which rows of a removed document the file had.
enum Removed {
    Whole,
    /// The row of this table was missing, and perhaps others.
    Without(&'static str),
    Nothing,
}

/// Removes a document as part of the change at `seq`. If the document has lost a row, the other rows are removed. Such
/// damage must not prevent the writes of other documents.
pub(super) fn remove(batch: &mut Batch<'_>, target: Seq, seq: Seq) -> Result<()> {
    match remove_rows(batch, target)? {
        Removed::Whole => Ok(()),
        Removed::Without(row) => {
            tracing::error!(
                collection = batch.collection(),
                record = target.0,
                row,
                "a row of a removed document was damaged or lost; check the file with `hapax verify`"
            );
            Ok(())
        }
        Removed::Nothing => Err(batch.out_of_order(seq, format!("there is no record {} to remove", target.0))),
    }
}

/// Removes the remaining rows of a document that may have lost a row by damage. Returns whether a row was missing.
/// Skips a document without any row.
pub(super) fn remove_what_is_left(batch: &mut Batch<'_>, target: Seq) -> Result<bool> {
    Ok(matches!(remove_rows(batch, target)?, Removed::Without(_)))
}

fn remove_rows(batch: &mut Batch<'_>, target: Seq) -> Result<Removed> {
    let signature = batch.take("DELETE FROM signature WHERE seq = ?1 RETURNING sum", target)?;
    let document = batch.take("DELETE FROM document WHERE seq = ?1 RETURNING sum", target)?;
    if (signature, document) == (None, None) {
        return Ok(Removed::Nothing);
    }
    batch.ledger().signatures.subtract_known(signature);
    batch.ledger().documents.subtract_known(document);
    let mut lost = [(signature, "signature"), (document, "document")].into_iter().find(|(sum, _)| sum.is_none());
    if batch.keep() != Keep::Signature {
        let payload = take_payload(batch, target)?;
        batch.ledger().payloads.subtract_known(payload);
        lost = lost.or((payload.is_none()).then_some((payload, "payload")));
    }
    Ok(lost.map_or(Removed::Whole, |(_, row)| Removed::Without(row)))
}

/// Removes the payload of a document and returns its checksum. A damaged payload stays in the file: its pages may
/// belong to another row, so they must not be freed. The payload is read through another connection, because an
/// unreadable page would end the transaction.
fn take_payload(batch: &Batch<'_>, target: Seq) -> Result<Option<u64>> {
    let read = |snapshot: &mut Snapshot<'_>| payload_of(snapshot, target, &mut |_| Ok(()), &mut |_, _| Ok(()));
    match batch.readers().read_at_once(read) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        // Other errors say nothing about the file. `Ok` is also the result for a document of this batch, which readers
        // do not see yet.
        Ok(_) | Err(_) => batch.take("DELETE FROM payload WHERE seq = ?1 RETURNING sum", target),
    }
}
