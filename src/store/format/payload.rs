//! The shingles or the text that a collection keeps of a document, in a row of their own. Reading the other parts of a
//! document does not read this row. This file does not know the meaning of the bytes.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{Flaw, PAYLOAD_SEED, SIZE_SEED, WRONG_SUM, WRONG_TYPE, integer};
use super::ledger::Ledger;
use crate::store::error::{Result, StoreError};
use crate::store::settings::Meta;
use crate::types::{Keep, Payload, PayloadKind, Seq};

/// Returns the number that is stored for a kind.
fn number_of(kind: PayloadKind) -> u8 {
    match kind {
        PayloadKind::Shingles => 1,
        PayloadKind::Text => 2,
        PayloadKind::Grams => 3,
    }
}

pub(in crate::store) fn kind_of(number: i64) -> Result<PayloadKind, Flaw> {
    let kinds = [PayloadKind::Shingles, PayloadKind::Text, PayloadKind::Grams];
    kinds.into_iter().find(|&kind| i64::from(number_of(kind)) == number).ok_or("its payload has an unknown kind")
}

/// Computes the checksum over the whole row, and the checksum over its first columns. The second checksum verifies the
/// size without reading the bytes, which may be on other pages.
pub(in crate::store) fn sums(seq: Seq, kind: PayloadKind, shingles: u64, bytes: &[u8]) -> (u64, u64) {
    let mut buffer = Vec::with_capacity(17 + bytes.len());
    buffer.extend_from_slice(&seq.0.to_le_bytes());
    buffer.push(number_of(kind));
    buffer.extend_from_slice(&shingles.to_le_bytes());
    let size_sum = xxh3_64_with_seed(&buffer, SIZE_SEED);
    buffer.extend_from_slice(bytes);
    (xxh3_64_with_seed(&buffer, PAYLOAD_SEED), size_sum)
}

/// Verifies both checksums of a row of `seq, kind, shingles, size_sum, bytes, sum`, and returns the checksum over the
/// whole row.
pub(in crate::store) fn checked_sum(row: &Row<'_>) -> Result<u64, Flaw> {
    let (seq, kind) = (Seq(integer(row, 0)? as u64), kind_of(integer(row, 1)?)?);
    let ValueRef::Blob(bytes) = row.get_ref(4).map_err(|_| WRONG_TYPE)? else { return Err(WRONG_TYPE) };
    let told = (integer(row, 5)? as u64, integer(row, 3)? as u64);
    if sums(seq, kind, integer(row, 2)? as u64, bytes) == told { Ok(told.0) } else { Err(WRONG_SUM) }
}

/// Writes the row and returns its checksum.
pub(in crate::store) fn insert(connection: &Connection, seq: Seq, payload: &Payload) -> rusqlite::Result<u64> {
    let Payload { kind, shingles, ref bytes } = *payload;
    let (sum, size_sum) = sums(seq, kind, shingles, bytes);
    let values = params![seq.0 as i64, i64::from(number_of(kind)), shingles as i64, size_sum as i64, bytes, sum as i64];
    connection.prepare_cached("INSERT INTO payload VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(values)?;
    Ok(sum)
}

/// Verifies a row of `seq, kind, shingles, size_sum, bytes, sum`. Returns its checksum and the number of bytes of the
/// payload.
pub(in crate::store) fn read_row(row: &Row<'_>) -> Result<(u64, u64), Flaw> {
    let seq = Seq(integer(row, 0)? as u64);
    let kind = kind_of(integer(row, 1)?)?;
    let (shingles, size_sum, sum) = (integer(row, 2)?, integer(row, 3)?, integer(row, 5)?);
    let Ok(ValueRef::Blob(bytes)) = row.get_ref(4) else { return Err(WRONG_TYPE) };
    if sums(seq, kind, shingles as u64, bytes) != (sum as u64, size_sum as u64) {
        return Err(WRONG_SUM);
    }
    Ok((sum as u64, bytes.len() as u64))
}

/// Checks that there is one payload per document, or no payload if the collection keeps none.
pub(in crate::store) fn check_count(meta: &Meta, ledger: &Ledger) -> Result<()> {
    let expected = if meta.keep == Keep::Signature { 0 } else { ledger.signatures.rows };
    let payloads = ledger.payloads.rows;
    if payloads == expected {
        return Ok(());
    }
    let detail = format!("its ledger counts {payloads} payloads, but there must be {expected}");
    Err(StoreError::Damaged { collection: meta.name.as_str().to_owned(), record: None, detail })
}
