//! A batch of changes that become durable together: an open transaction, and the ledger and the clusters as they will be
//! after the commit. This file knows how a row is written and what an error means, but not the content of a row.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::store::error::{Result, StoreError};
use crate::store::format::columns::integer;
use crate::store::format::ledger::{Ledger, move_ledger};
use crate::store::read::joined::Moves;
use crate::store::read::readers::Readers;
use crate::types::{Keep, Seq};

/// A batch that is being written.
pub(in crate::store) struct Batch<'a> {
    connection: &'a Connection,
    readers: &'a Readers,
    keep: Keep,
    ledger: Ledger,
    moves: Moves,
    buffer: &'a mut Vec<u8>,
}

impl<'a> Batch<'a> {
    /// Wraps `connection`, which must have an open transaction. `ledger` is the ledger in the file.
    pub(in crate::store) fn new(
        connection: &'a Connection,
        readers: &'a Readers,
        keep: Keep,
        ledger: Ledger,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        Self { connection, readers, keep, ledger, moves: Moves::default(), buffer }
    }

    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }

    pub(super) fn collection(&self) -> &'a str {
        self.readers.collection()
    }

    /// Returns connections that see the file without this batch.
    pub(super) fn readers(&self) -> &'a Readers {
        self.readers
    }

    /// Returns whether documents have payloads, and of which kind.
    pub(super) fn keep(&self) -> Keep {
        self.keep
    }

    pub(in crate::store) fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    pub(super) fn moves(&mut self) -> &mut Moves {
        &mut self.moves
    }

    /// Returns a buffer for computing the checksums of rows.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer
    }

    /// Replaces the ledger `old` in the file with the ledger of this batch, and returns the new ledger. Also returns the
    /// documents that join or leave a cluster.
    pub(in crate::store) fn finish(mut self, old: &Ledger, last_seq: Seq) -> Result<(Ledger, Moves)> {
        self.ledger.last_seq = last_seq;
        match move_ledger(self.connection, old, &self.ledger) {
            Ok(true) => Ok((self.ledger, self.moves)),
            Ok(false) => Err(StoreError::Busy {
                collection: self.collection().to_owned(),
                detail: "its ledger changed since this writer's last commit".to_owned(),
            }),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Writes a row as part of the change at `seq`.
    pub(super) fn run(&self, seq: Seq, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        let executed = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        self.executed(seq, executed).map(drop)
    }

    /// Turns a failure to write into an error of the change at `seq`.
    pub(super) fn executed<T>(&self, seq: Seq, executed: rusqlite::Result<T>) -> Result<T> {
        executed.map_err(|error| match is_about_a_row(&error) {
            true => self.out_of_order(seq, error.to_string()),
            false => self.failed(error),
        })
    }

    /// Runs a statement that removes one row and returns integers of it. An integer is `None` if damage has given it
    /// another type. All are `None` if that row does not exist.
    pub(super) fn take<const N: usize>(&self, sql: &str, target: Seq) -> Result<[Option<u64>; N]> {
        let statement = self.connection.prepare_cached(sql);
        let of = |row: &Row<'_>| Ok(std::array::from_fn(|at| integer(row, at).ok().map(|value| value as u64)));
        let taken = statement.and_then(|mut statement| statement.query_row([target.0 as i64], of).optional());
        taken.map(|taken| taken.unwrap_or([None; N])).map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, error: rusqlite::Error) -> StoreError {
        committing(self.collection(), error)
    }

    pub(super) fn out_of_order(&self, seq: Seq, detail: String) -> StoreError {
        out_of_order(self.collection(), seq, detail)
    }
}

/// Returns whether an error says something about the row that was written. SQLite then undoes this one statement.
/// Other errors may have ended the transaction.
pub(super) fn is_about_a_row(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, TooBig};
    matches!(error.sqlite_error_code(), Some(ConstraintViolation | TooBig))
}

pub(super) fn committing(collection: &str, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(collection, "committing", error)
}

pub(super) fn out_of_order(collection: &str, seq: Seq, detail: String) -> StoreError {
    StoreError::OutOfOrder { collection: collection.to_owned(), seq, detail }
}
