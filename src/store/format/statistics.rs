//! The statistics of a collection, and of each label, in rows of their own.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{Flaw, STATISTICS_SEED, WRONG_SUM, bytes, integer, push_text, utf8};
use super::side_tables::{Flawed, set_tally, tally_of};
use crate::store::error::{Result, StoreError};
use crate::types::Statistics;

const TABLE: &str = "statistics";
const SELECT: &str = "SELECT place, label, counts, sum FROM statistics ORDER BY place";

/// The statistics of the documents with a label, or of all documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStatistics {
    /// The number of the row, from 1.
    pub place: i64,
    /// `None` for all documents.
    pub label: Option<String>,
    pub counts: Statistics,
}

#[derive(Serialize, Deserialize)]
struct Json {
    documents: u64,
    unique: u64,
    near_duplicates: u64,
    exact_duplicates: u64,
    empty: u64,
    unchanged: u64,
    bytes: u64,
    bytes_saved: u64,
}

/// Stores rows, and replaces earlier rows with the same numbers. The caller has begun a transaction.
pub(in crate::store) fn put(connection: &Connection, rows: &[StoredStatistics]) -> rusqlite::Result<()> {
    let mut tally = tally_of(connection, TABLE)?;
    let mut take = connection.prepare_cached("DELETE FROM statistics WHERE place = ?1 RETURNING sum")?;
    let mut insert = connection.prepare_cached("INSERT INTO statistics VALUES (?1, ?2, ?3, ?4)")?;
    for StoredStatistics { place, label, counts } in rows {
        if let Some(sum) = take.query_row([place], |row| row.get::<_, i64>(0)).optional()? {
            tally.subtract(sum as u64);
        }
        let (label, json) = (label.as_deref().unwrap_or_default(), to_json(counts));
        let sum = sum_of(*place, label, &json);
        insert.execute(params![place, label, json, sum as i64])?;
        tally.add(sum);
    }
    set_tally(connection, TABLE, tally)
}

/// Reads the intact statistics, and returns the flaws of the other rows.
pub(in crate::store) fn look(connection: &Connection) -> (Vec<StoredStatistics>, Flawed) {
    let mut intact = Vec::new();
    let flawed = Flawed::default().look(connection, (TABLE, SELECT), |row| {
        let (read, sum) = read_row(row)?;
        intact.push(read);
        Ok(sum)
    });
    (intact, flawed)
}

/// Reads the statistics. Damage is an error.
pub(in crate::store) fn read(connection: &Connection, collection: &str) -> Result<Vec<StoredStatistics>> {
    let (intact, flawed) = look(connection);
    match flawed.complaints(collection)?.first() {
        None => Ok(intact),
        Some(first) => Err(StoreError::damaged(collection, None, format!("its statistics: {first}"))),
    }
}

fn read_row(row: &Row<'_>) -> Result<(StoredStatistics, u64), Flaw> {
    let (place, label, json) = (integer(row, 0)?, utf8(bytes(row, 1)?)?, utf8(bytes(row, 2)?)?);
    let sum = sum_of(place, label, json);
    if sum as i64 != integer(row, 3)? {
        return Err(WRONG_SUM);
    }
    let counts = from_json(json).ok_or("its counts cannot be read")?;
    let label = Some(label).filter(|label| !label.is_empty()).map(str::to_owned);
    Ok((StoredStatistics { place, label, counts }, sum))
}

fn to_json(counts: &Statistics) -> String {
    let &Statistics { documents, unique, near_duplicates, exact_duplicates, .. } = counts;
    let &Statistics { empty, unchanged, bytes, bytes_saved, .. } = counts;
    let json = Json { documents, unique, near_duplicates, exact_duplicates, empty, unchanged, bytes, bytes_saved };
    serde_json::to_string(&json).expect("numbers always serialise")
}

fn from_json(text: &str) -> Option<Statistics> {
    let Json { documents, unique, near_duplicates, exact_duplicates, empty, unchanged, bytes, bytes_saved } =
        serde_json::from_str(text).ok()?;
    Some(Statistics { documents, unique, near_duplicates, exact_duplicates, empty, unchanged, bytes, bytes_saved })
}

fn sum_of(place: i64, label: &str, json: &str) -> u64 {
    let mut buffer = place.to_le_bytes().to_vec();
    push_text(&mut buffer, Some(label.as_bytes()));
    push_text(&mut buffer, Some(json.as_bytes()));
    xxh3_64_with_seed(&buffer, STATISTICS_SEED)
}
