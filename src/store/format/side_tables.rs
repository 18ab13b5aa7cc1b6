//! The tables that are not about single documents. Each has a line of its own in the ledger. This line changes together
//! with the rows of the table, and never with documents.

use rusqlite::{Connection, Row, params};

use super::columns::{Flaw, OUT_OF_ORDER, integer};
use super::ledger::Tally;
use crate::store::error::{Result, StoreError};

pub(super) fn tally_of(connection: &Connection, table: &str) -> rusqlite::Result<Tally> {
    let mut told = connection.prepare_cached("SELECT rows, sum FROM ledger WHERE tally = ?1")?;
    told.query_row([table], |row| Ok(Tally { rows: row.get::<_, i64>(0)? as u64, sum: row.get::<_, i64>(1)? as u64 }))
}

pub(super) fn set_tally(connection: &Connection, table: &str, tally: Tally) -> rusqlite::Result<()> {
    let mut set = connection.prepare_cached("UPDATE ledger SET rows = ?2, sum = ?3 WHERE tally = ?1")?;
    set.execute(params![table, tally.rows as i64, tally.sum as i64]).map(drop)
}

/// Everything that is wrong with the tables that were looked at.
#[derive(Debug, Default)]
pub(in crate::store) struct Flawed {
    /// The damaged rows: table, key and flaw.
    rows: Vec<(&'static str, i64, Flaw)>,
    /// The tables whose intact rows differ from those that the ledger counts.
    differing: Vec<&'static str>,
    /// The errors that prevented reading the rest of a table.
    broken: Vec<rusqlite::Error>,
}

impl Flawed {
    /// Checks each row of a table, in the order of its first column. The values of this column must increase. `read`
    /// returns the checksum of an intact row.
    pub(super) fn look(
        mut self,
        connection: &Connection,
        (table, select): (&'static str, &str),
        read: impl FnMut(&Row<'_>) -> Result<u64, Flaw>,
    ) -> Self {
        let broken = self.look_at_rows(connection, (table, select), read).err();
        self.broken.extend(broken);
        self
    }

    /// Returns the damaged rows: table, key and flaw.
    pub(in crate::store) fn rows(&self) -> &[(&'static str, i64, Flaw)] {
        &self.rows
    }

    /// Returns the number of damaged rows and tables.
    pub(in crate::store) fn count(&self) -> u64 {
        (self.rows.len() + self.differing.len() + self.broken.len()) as u64
    }

    fn look_at_rows(
        &mut self,
        connection: &Connection,
        (table, select): (&'static str, &str),
        mut read: impl FnMut(&Row<'_>) -> Result<u64, Flaw>,
    ) -> rusqlite::Result<()> {
        let mut found = Tally::default();
        let mut statement = connection.prepare(select)?;
        let mut rows = statement.query([])?;
        let mut last = 0;
        while let Some(row) = rows.next()? {
            let key = integer(row, 0).unwrap_or_default();
            // The pages of a damaged B-tree may form a cycle.
            if key <= last {
                self.rows.push((table, key, OUT_OF_ORDER));
                break;
            }
            last = key;
            match read(row) {
                Ok(sum) => found.add(sum),
                Err(flaw) => self.rows.push((table, key, flaw)),
            }
        }
        if tally_of(connection, table)? != found {
            self.differing.push(table);
        }
        Ok(())
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.rows.is_empty() && self.differing.is_empty() && self.broken.is_empty()
    }

    /// Returns a sentence for each flaw. An error that says nothing about the file is returned as an error.
    pub(in crate::store) fn complaints(self, collection: &str) -> Result<Vec<String>> {
        let named = |(table, key, flaw): &(&str, i64, Flaw)| format!("row {key} of `{table}`: {flaw}");
        let mut complaints: Vec<String> = self.rows.iter().map(named).collect();
        let differs = |table: &&str| format!("the intact rows of `{table}` are not those that the ledger counts");
        complaints.extend(self.differing.iter().map(differs));
        for error in self.broken {
            match StoreError::from_sqlite(collection, "reading it", error) {
                StoreError::Damaged { detail, .. } | StoreError::NotAStore { detail, .. } => complaints.push(detail),
                other => return Err(other),
            }
        }
        Ok(complaints)
    }
}
