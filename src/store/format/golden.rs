//! The golden set: labelled pairs of texts, in rows of their own. The line of the set in the ledger is written with the
//! set, never with documents.

use rusqlite::{Connection, Row, params};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{
    Flaw, GOLDEN_SEED, OUT_OF_ORDER, WRONG_SUM, WRONG_TYPE, bytes, integer, is_null, push_text, utf8,
};
use super::ledger::Tally;
use crate::store::error::{Result, StoreError};
use crate::types::GoldenPair;

/// Selects all columns, in the order of [`read_row`].
const SELECT: &str = "SELECT pair, name, a, b, duplicate, sum FROM golden ORDER BY pair";

/// Replaces the set and its line of the ledger. The caller has begun a transaction.
pub(in crate::store) fn write(connection: &Connection, pairs: &[GoldenPair]) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM golden", [])?;
    let mut tally = Tally::default();
    let mut insert = connection.prepare("INSERT INTO golden VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (number, pair) in (1i64..).zip(pairs) {
        let sum = sum_of(number, pair.name.as_deref(), (&pair.a, &pair.b), pair.duplicate);
        tally.add(sum);
        insert.execute(params![number, pair.name, pair.a, pair.b, pair.duplicate, sum as i64])?;
    }
    drop(insert);
    let sql = "INSERT OR REPLACE INTO ledger VALUES ('golden', ?1, ?2, 0)";
    connection.execute(sql, params![tally.rows as i64, tally.sum as i64]).map(drop)
}

/// Reads the set, as far as it is intact.
pub(in crate::store) fn look(connection: &Connection) -> GoldenRows {
    let mut looked = GoldenRows::default();
    looked.broken = look_at_rows(connection, &mut looked).err();
    looked
}

fn look_at_rows(connection: &Connection, looked: &mut GoldenRows) -> rusqlite::Result<()> {
    let mut found = Tally::default();
    let mut statement = connection.prepare(SELECT)?;
    let mut rows = statement.query([])?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        let number = integer(row, 0).unwrap_or_default();
        // The pages of a damaged B-tree may form a cycle.
        if number <= last {
            looked.flaws.push((number, OUT_OF_ORDER));
            break;
        }
        last = number;
        match read_row(row) {
            Ok((pair, sum)) => {
                found.add(sum);
                looked.pairs.push(pair);
            }
            Err(flaw) => looked.flaws.push((number, flaw)),
        }
    }
    let told = connection.query_row("SELECT rows, sum FROM ledger WHERE tally = 'golden'", [], |row| {
        Ok(Tally { rows: row.get::<_, i64>(0)? as u64, sum: row.get::<_, i64>(1)? as u64 })
    })?;
    looked.differs = told != found;
    Ok(())
}

/// The result of [`look`].
#[derive(Debug, Default)]
pub(in crate::store) struct GoldenRows {
    /// The intact pairs, in their order.
    pub(in crate::store) pairs: Vec<GoldenPair>,
    /// The damaged pairs, by number, each with its flaw.
    pub(in crate::store) flaws: Vec<(i64, Flaw)>,
    /// Whether the intact pairs differ from those that the ledger counts.
    differs: bool,
    /// The error that prevented reading the rest.
    broken: Option<rusqlite::Error>,
}

impl GoldenRows {
    /// Returns everything that is wrong with the set. An error that says nothing about the file is returned as an
    /// error.
    pub(in crate::store) fn complaints(self, collection: &str) -> Result<Vec<String>> {
        let mut complaints: Vec<String> =
            self.flaws.iter().map(|(pair, flaw)| format!("pair {pair}: {flaw}")).collect();
        if self.differs {
            complaints.push("the ledger does not match the intact pairs".to_owned());
        }
        match self.broken.map(|error| StoreError::from_sqlite(collection, "reading its golden set", error)) {
            None => {}
            Some(StoreError::Damaged { detail, .. } | StoreError::NotAStore { detail, .. }) => complaints.push(detail),
            Some(other) => return Err(other),
        }
        Ok(complaints)
    }
}

/// Reads the set. Damage is an error.
pub(in crate::store) fn read(connection: &Connection, collection: &str) -> Result<Vec<GoldenPair>> {
    let mut looked = look(connection);
    let pairs = std::mem::take(&mut looked.pairs);
    match looked.complaints(collection)?.first() {
        None => Ok(pairs),
        Some(first) => Err(StoreError::damaged(collection, None, format!("its golden set: {first}"))),
    }
}

/// Reads a row of [`SELECT`] and verifies its checksum. Returns the checksum too.
fn read_row(row: &Row<'_>) -> Result<(GoldenPair, u64), Flaw> {
    let name = if is_null(row, 1)? { None } else { Some(utf8(bytes(row, 1)?)?) };
    let (a, b) = (utf8(bytes(row, 2)?)?, utf8(bytes(row, 3)?)?);
    let duplicate = match integer(row, 4)? {
        0 => false,
        1 => true,
        _ => return Err(WRONG_TYPE),
    };
    let sum = sum_of(integer(row, 0)?, name, (a, b), duplicate);
    if sum as i64 != integer(row, 5)? {
        return Err(WRONG_SUM);
    }
    Ok((GoldenPair { name: name.map(str::to_owned), a: a.to_owned(), b: b.to_owned(), duplicate }, sum))
}

fn sum_of(number: i64, name: Option<&str>, (a, b): (&str, &str), duplicate: bool) -> u64 {
    let mut buffer = Vec::with_capacity(40 + a.len() + b.len());
    buffer.extend_from_slice(&number.to_le_bytes());
    buffer.push(u8::from(duplicate));
    push_text(&mut buffer, name.map(str::as_bytes));
    push_text(&mut buffer, Some(a.as_bytes()));
    push_text(&mut buffer, Some(b.as_bytes()));
    xxh3_64_with_seed(&buffer, GOLDEN_SEED)
}
