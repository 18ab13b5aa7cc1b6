//! Reads one column of a row, and adds it to the checksum of the row.

use rusqlite::Row;
use rusqlite::types::ValueRef;

// The seeds of the checksums. Each table has a seed of its own, so that a row of one table is never valid in another.

pub(super) const SIGNATURE_SEED: u64 = 1;
pub(super) const DOCUMENT_SEED: u64 = 2;
pub(super) const META_SEED: u64 = 3;
pub(super) const PAYLOAD_SEED: u64 = 4;
/// The seed for the checksum over the first columns of a payload.
pub(super) const SIZE_SEED: u64 = 5;

pub(super) const GOLDEN_SEED: u64 = 6;
pub(super) const JOB_SEED: u64 = 7;
pub(super) const DOOMED_SEED: u64 = 8;
pub(super) const MERGED_SEED: u64 = 9;
pub(super) const STATISTICS_SEED: u64 = 10;

/// The reason why a row counts as damaged.
pub type Flaw = &'static str;
pub(in crate::store) const WRONG_SUM: Flaw = "its checksum differs";
pub(in crate::store) const WRONG_TYPE: Flaw = "a column has the wrong type";
pub(in crate::store) const OUT_OF_ORDER: Flaw = "its row is out of order";

/// Appends a text. The length distinguishes `("ab", "c")` from `("a", "bc")`. The marker distinguishes `None` from the
/// empty text.
pub(super) fn push_text(buffer: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        None => buffer.push(0),
        Some(text) => {
            buffer.push(1);
            buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
            buffer.extend_from_slice(text);
        }
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Flaw> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")
}

pub(in crate::store) fn integer(row: &Row<'_>, column: usize) -> Result<i64, Flaw> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(value)) => Ok(value),
        _ => Err(WRONG_TYPE),
    }
}

pub(super) fn unsigned_byte(row: &Row<'_>, column: usize) -> Result<u8, Flaw> {
    u8::try_from(integer(row, column)?).map_err(|_| WRONG_TYPE)
}

pub(super) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Flaw> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Ok(bytes),
        _ => Err(WRONG_TYPE),
    }
}

pub(super) fn is_null(row: &Row<'_>, column: usize) -> Result<bool, Flaw> {
    row.get_ref(column).map(|value| value == ValueRef::Null).map_err(|_| WRONG_TYPE)
}
