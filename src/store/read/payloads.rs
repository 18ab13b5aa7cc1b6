//! Reads the shingles or the text that is stored besides a signature.

use rusqlite::OptionalExtension;
use rusqlite::types::ValueRef;

use super::snapshot::Snapshot;
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, WRONG_SUM, WRONG_TYPE, integer};
use crate::store::format::payload::{kind_of, sums};
use crate::types::{Payload, Seq};

/// The result of looking at a payload.
#[derive(Debug, PartialEq)]
pub enum Looked<T> {
    /// The document is gone.
    Gone,
    /// The result of `by_size` or `visit`.
    At(T),
}

impl<T> Looked<T> {
    pub(in crate::store) fn found(self) -> Option<T> {
        match self {
            Self::At(found) => Some(found),
            Self::Gone => None,
        }
    }
}

/// Returns how many bytes the payload of a document has; `None` if the document is gone. No checksum covers the length,
/// so use it only to limit how much is read.
pub(in crate::store) fn bytes(snapshot: &Snapshot<'_>, seq: Seq) -> Result<Option<usize>> {
    let collection = snapshot.collection();
    let bytes = snapshot
        .connection()
        .prepare_cached("SELECT length(bytes) FROM payload WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row([seq.0 as i64], |row| Ok(integer(row, 0))).optional())
        .map_err(|error| StoreError::from_sqlite(collection, "reading a payload", error).at_record(seq))?;
    let flawed = |flaw| StoreError::damaged(collection, seq, flaw);
    Ok(bytes.transpose().map_err(flawed)?.map(|bytes| bytes as usize))
}

/// Looks at the payload of a document. First it calls `by_size` with the number of shingles. If that returns `Ok`, it
/// reads the payload and calls `visit`.
pub(in crate::store) fn payload<T>(
    snapshot: &Snapshot<'_>,
    seq: Seq,
    by_size: &mut impl FnMut(u64) -> Result<(), T>,
    visit: &mut impl FnMut(Seq, Payload) -> Result<T, Flaw>,
) -> Result<Looked<T>> {
    let (connection, collection) = (snapshot.connection(), snapshot.collection());
    let reading = |error| StoreError::from_sqlite(collection, "reading a payload", error).at_record(seq);
    let flawed = |flaw| StoreError::damaged(collection, seq, flaw);
    let size = connection
        .prepare_cached("SELECT kind, shingles, size_sum FROM payload WHERE seq = ?1")
        .and_then(|mut statement| {
            statement.query_row([seq.0 as i64], |row| Ok([0, 1, 2].map(|column| integer(row, column)))).optional()
        })
        .map_err(reading)?;
    let [kind, shingles, size_sum] = match size {
        Some(size) => size,
        None if snapshot.has_signature(seq)? => return Err(flawed("its payload is gone")),
        None => return Ok(Looked::Gone),
    };
    let kind = kind.and_then(kind_of).map_err(flawed)?;
    let (shingles, size_sum) = (shingles.map_err(flawed)? as u64, size_sum.map_err(flawed)? as u64);
    if sums(seq, kind, shingles, &[]).1 != size_sum {
        return Err(flawed(WRONG_SUM));
    }
    if let Err(known) = by_size(shingles) {
        return Ok(Looked::At(known));
    }
    let read = connection
        .prepare_cached("SELECT bytes, sum FROM payload WHERE seq = ?1")
        .and_then(|mut statement| {
            statement.query_row([seq.0 as i64], |row| {
                let bytes = match row.get_ref(0)? {
                    ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
                    _ => Err(WRONG_TYPE),
                };
                Ok((bytes, integer(row, 1)))
            })
        })
        .map_err(reading)?;
    let (bytes, sum) = (read.0.map_err(flawed)?, read.1.map_err(flawed)? as u64);
    if sums(seq, kind, shingles, &bytes).0 != sum {
        return Err(flawed(WRONG_SUM));
    }
    visit(seq, Payload { kind, shingles, bytes }).map(Looked::At).map_err(flawed)
}
