//! Inserts and removes a document with all of its rows.

use std::sync::LazyLock;

use rusqlite::{CachedStatement, ToSql};

use super::batch::{Batch, is_about_a_row};
use crate::store::error::{Result, StoreError};
use crate::store::format::rows::{DocumentRow, SignatureRow};
use crate::store::format::{payload, verdict};
use crate::store::read::payloads::payload as payload_of;
use crate::store::read::snapshot::Snapshot;
use crate::store::record::Record;
use crate::types::{CaptureDate, Keep, PayloadDigest, Seq};

/// The number of rows that one statement stores in `signature` or `document`. If fewer documents are left, each is
/// stored with a statement of its own. With more rows per statement, the prepared statements of a collection would take
/// much memory.
const GROUP: usize = 16;

/// Stores a document, at its own `seq`.
pub(in crate::store) fn insert(batch: &mut Batch<'_>, record: &Record) -> Result<()> {
    insert_group(batch, &[record])
}

/// Stores documents, each at its own `seq`.
pub(in crate::store) fn insert_all(batch: &mut Batch<'_>, records: &[&Record]) -> Result<()> {
    let groups = records.chunks_exact(GROUP);
    let rest = groups.remainder().chunks(1);
    groups.chain(rest).try_for_each(|group| insert_group(batch, group))
}

fn insert_group(batch: &mut Batch<'_>, records: &[&Record]) -> Result<()> {
    insert_rows(batch, records, insert_signatures)?;
    insert_rows(batch, records, insert_documents)?;
    records.iter().try_for_each(|record| insert_payload(batch, record))
}

/// Stores the rows of one table with `insert`.
fn insert_rows(
    batch: &mut Batch<'_>,
    records: &[&Record],
    insert: fn(&mut Batch<'_>, &[&Record]) -> rusqlite::Result<()>,
) -> Result<()> {
    let [first, others @ ..] = records else { return Ok(()) };
    let inserted = insert(batch, records);
    if !others.is_empty() && inserted.as_ref().is_err_and(is_about_a_row) {
        // The error does not say which document it is about, so each is stored alone. The batch fails in any case.
        for &record in records {
            let alone = insert(batch, &[record]);
            batch.executed(record.seq, alone)?;
        }
    }
    batch.executed(first.seq, inserted)
}

/// Stores the rows of `signature`.
fn insert_signatures(batch: &mut Batch<'_>, records: &[&Record]) -> rusqlite::Result<()> {
    static INTO: LazyLock<Insertion> = LazyLock::new(|| {
        Insertion::new(
            "INSERT INTO signature (seq, id_fingerprint, content_prefix, flags, bytes, cluster, seen_ms, labels, sum)",
        )
    });
    let mut statement = INTO.statement(batch, records.len())?;
    let mut values = Values { statement: &mut statement, bound: 0 };
    for record in records {
        let row = SignatureRow::of(record);
        let sum = row.sum(batch.buffer());
        batch.ledger().signatures.add(sum);
        batch.moves().stored(row.cluster, row.seq);
        values.add(row.seq.0 as i64)?;
        values.add(row.id_fingerprint as i64)?;
        values.add(row.content_prefix as i64)?;
        values.add(row.flags())?;
        values.add(row.bytes)?;
        values.add(row.cluster.0 as i64)?;
        values.add(row.seen.0)?;
        values.add(row.labels)?;
        values.add(sum as i64)?;
    }
    statement.raw_execute().map(drop)
}

/// Stores the rows of `document`.
fn insert_documents(batch: &mut Batch<'_>, records: &[&Record]) -> rusqlite::Result<()> {
    static INTO: LazyLock<Insertion> = LazyLock::new(|| {
        Insertion::new(
            "INSERT INTO document
             (seq, id, metadata, content_hash, flags, first_seen_ms, shingles, verdict, id_first_seen_ms, page_hash,
              extractor, capture_date, payload_digest, sum)",
        )
    });
    let mut statement = INTO.statement(batch, records.len())?;
    let mut values = Values { statement: &mut statement, bound: 0 };
    // Most verdicts equal the verdict before them, because they have no candidates.
    let (mut judged, mut verdict) = (None, String::new());
    for record in records {
        if judged != Some(&record.verdict) {
            verdict = verdict::to_json(&record.verdict);
            judged = Some(&record.verdict);
        }
        let row = DocumentRow::of(record, &verdict);
        let sum = row.sum(batch.buffer());
        batch.ledger().documents.add(sum);
        values.add(row.seq.0 as i64)?;
        values.add(record.id.as_str())?;
        values.add(record.metadata.as_ref().map(|metadata| metadata.as_str()))?;
        values.add(row.content)?;
        values.add(row.flags)?;
        values.add(row.first_seen_ms)?;
        values.add(row.shingles.map(|shingles| shingles as i64))?;
        values.add(verdict.as_str())?;
        values.add(row.id_first_seen_ms)?;
        values.add(row.page.map(|page| page.hash.to_be_bytes()))?;
        values.add(row.page.map(|page| page.extractor))?;
        values.add(record.capture.date.as_ref().map(CaptureDate::as_str))?;
        values.add(record.capture.digest.as_ref().map(PayloadDigest::as_str))?;
        values.add(sum as i64)?;
    }
    statement.raw_execute().map(drop)
}

fn insert_payload(batch: &mut Batch<'_>, record: &Record) -> Result<()> {
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

/// The statements that store one row of a table, and a group of rows.
struct Insertion {
    one: String,
    group: String,
}

impl Insertion {
    /// `insert` is the beginning of the statement, up to the names of the columns.
    fn new(insert: &str) -> Self {
        let columns = insert.matches(',').count() + 1;
        let row = ["(", &vec!["?"; columns].join(", "), ")"].concat();
        let of = |rows| [insert, " VALUES ", &vec![row.as_str(); rows].join(", ")].concat();
        Self { one: of(1), group: of(GROUP) }
    }

    fn statement<'a>(&self, batch: &Batch<'a>, rows: usize) -> rusqlite::Result<CachedStatement<'a>> {
        batch.connection().prepare_cached(if rows == 1 { &self.one } else { &self.group })
    }
}

/// Binds the values of a statement, one after the other.
struct Values<'a, 'c> {
    statement: &'a mut CachedStatement<'c>,
    bound: usize,
}

impl Values<'_, '_> {
    fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.bound += 1;
        self.statement.raw_bind_parameter(self.bound, value)
    }
}

/// Tells which rows of a removed document the file had.
enum Removed {
    Whole,
    /// The row of this table was missing, and perhaps the rows of other tables, too.
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

/// Removes the remaining rows of a document that may have lost a row because of damage. Returns whether a row was
/// missing. Skips a document without any row.
pub(super) fn remove_what_is_left(batch: &mut Batch<'_>, target: Seq) -> Result<bool> {
    Ok(matches!(remove_rows(batch, target)?, Removed::Without(_)))
}

fn remove_rows(batch: &mut Batch<'_>, target: Seq) -> Result<Removed> {
    let of_signature = batch.take("DELETE FROM signature WHERE seq = ?1 RETURNING seq, sum, cluster", target)?;
    let of_document = batch.take("DELETE FROM document WHERE seq = ?1 RETURNING seq, sum", target)?;
    let ([has_signature, signature, cluster], [has_document, document]) = (of_signature, of_document);
    if has_signature.or(has_document).is_none() {
        return Ok(Removed::Nothing);
    }
    batch.moves().removed(cluster.map(Seq), target);
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
        Ok(_) | Err(_) => {
            let [sum] = batch.take("DELETE FROM payload WHERE seq = ?1 RETURNING sum", target)?;
            Ok(sum)
        }
    }
}
