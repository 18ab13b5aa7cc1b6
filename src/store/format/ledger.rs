//! The ledger of a collection: how many rows each table must have, and the sum of their checksums.

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::error::{Result, StoreError};
use crate::types::Seq;

/// The number of rows of a table and the wrapping sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Tally {
    pub(in crate::store) rows: u64,
    pub(in crate::store) sum: u64,
}

impl Tally {
    pub(in crate::store) fn add(&mut self, sum: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(sum);
    }

    /// Adds the rows of another tally.
    pub(in crate::store) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Replaces the checksum of one row.
    pub(in crate::store) fn exchange(&mut self, old: u64, new: u64) {
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }

    pub(in crate::store) fn subtract(&mut self, sum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(sum);
    }

    /// Subtracts a row. If the row was lost, its checksum is unknown and stays in the sum. A check of the file then
    /// still finds the loss.
    pub(in crate::store) fn subtract_known(&mut self, sum: Option<u64>) {
        self.subtract(sum.unwrap_or(0));
    }
}

/// For each table, the number of rows that it must have, and the sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Ledger {
    pub(in crate::store) signatures: Tally,
    pub(in crate::store) documents: Tally,
    pub(in crate::store) payloads: Tally,
    pub(in crate::store) last_seq: Seq,
}

impl Ledger {
    fn lines(&self) -> [(&'static str, Tally); 3] {
        [("signature", self.signatures), ("document", self.documents), ("payload", self.payloads)]
    }
}

/// Reads the ledger. Its lines must agree with each other.
pub(in crate::store) fn read_ledger(connection: &Connection, label: &str) -> Result<Ledger> {
    let line = |tally: &str| {
        connection
            .query_row("SELECT rows, sum, last_seq FROM ledger WHERE tally = ?1", [tally], |row| {
                let (rows, sum, last_seq): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((Tally { rows: rows as u64, sum: sum as u64 }, Seq(last_seq as u64)))
            })
            .optional()
            .map_err(|error| StoreError::from_sqlite(label, "reading its ledger", error))
    };
    let damaged = |detail: String| StoreError::Damaged { collection: label.to_owned(), record: None, detail };
    let (Some((signatures, last_seq)), Some((documents, document_last_seq)), Some((payloads, payload_last_seq))) =
        (line("signature")?, line("document")?, line("payload")?)
    else {
        return Err(damaged("a line of its ledger is missing".to_owned()));
    };
    let agree = last_seq == document_last_seq && last_seq == payload_last_seq;
    if signatures.rows != documents.rows || !agree || i64::try_from(last_seq.0).is_err() {
        return Err(damaged(format!(
            "its ledger contradicts itself: {} signatures up to {}, {} documents up to {}, {} payloads up to {}",
            signatures.rows, last_seq.0, documents.rows, document_last_seq.0, payloads.rows, payload_last_seq.0
        )));
    }
    Ok(Ledger { signatures, documents, payloads, last_seq })
}

/// Reads the last assigned position in the commit order.
pub(in crate::store) fn read_last_seq(connection: &Connection, label: &str) -> Result<Seq> {
    let last_seq = "SELECT last_seq FROM ledger WHERE tally = 'signature'";
    let last_seq =
        connection.prepare_cached(last_seq).and_then(|mut line| line.query_row([], |row| row.get::<_, i64>(0)));
    let last_seq = last_seq.map_err(|error| StoreError::from_sqlite(label, "reading its ledger", error))?;
    Ok(Seq(last_seq as u64))
}

/// Replaces the ledger `old` by `new`. Returns false if the stored ledger is not `old`, because another connection has
/// written.
pub(in crate::store) fn move_ledger(connection: &Connection, old: &Ledger, new: &Ledger) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "UPDATE ledger SET rows = ?1, sum = ?2, last_seq = ?3
         WHERE tally = ?4 AND rows = ?5 AND sum = ?6 AND last_seq = ?7",
    )?;
    for ((tally, old_tally), (_, new_tally)) in old.lines().into_iter().zip(new.lines()) {
        let moved = statement.execute(params![
            new_tally.rows as i64,
            new_tally.sum as i64,
            new.last_seq.0 as i64,
            tally,
            old_tally.rows as i64,
            old_tally.sum as i64,
            old.last_seq.0 as i64
        ])?;
        if moved != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}
