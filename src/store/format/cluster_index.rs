//! Removes the index of clusters that formats 2 to 6 had. SQLite frees the pages to which the index points, so a damaged
//! index must not be removed like that: it might point to a page with documents.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::columns::{Flaw, integer};
use super::ledger::Tally;

const DAMAGED: Flaw = "its index of clusters does not match its records; `hapax verify --repair` repairs it";

/// Removes the index, if there is one. Returns a flaw, and removes nothing, if it is damaged.
pub(super) fn remove(connection: &Connection) -> rusqlite::Result<Result<(), Flaw>> {
    let index = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = 'signature_by_cluster'";
    if !connection.prepare(index)?.exists([])? {
        return Ok(Ok(()));
    }
    let rows = add_up(connection, "SELECT cluster, seq FROM signature NOT INDEXED WHERE cluster <> 0", false)?;
    let by_index = "SELECT cluster, seq FROM signature INDEXED BY signature_by_cluster WHERE cluster <> 0";
    let entries = add_up(connection, by_index, true)?;
    if rows.is_none() || rows != entries {
        return Ok(Err(DAMAGED));
    }
    connection.execute_batch("DROP INDEX signature_by_cluster").map(Ok)
}

/// Removes the index from the list of the file's indexes, without a look at the index. Its pages stay in the file, and
/// are not used again. Only for a copy whose rows are about to be copied. Open the file again afterwards.
pub(in crate::store) fn unlist(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    connection.execute_batch(
        "PRAGMA writable_schema = ON;
         DELETE FROM sqlite_schema WHERE type = 'index' AND name = 'signature_by_cluster';
         PRAGMA writable_schema = OFF;",
    )
}

/// Adds up pairs of a cluster and a document. Returns `None` if a pair has another type, or is out of order although
/// all pairs must be `in_order`. If all entries of an index are correct and in order, it points only to its own pages.
fn add_up(connection: &Connection, sql: &str, in_order: bool) -> rusqlite::Result<Option<Tally>> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let (mut tally, mut before) = (Tally::default(), (i64::MIN, i64::MIN));
    while let Some(row) = rows.next()? {
        let (Ok(cluster), Ok(seq)) = (integer(row, 0), integer(row, 1)) else { return Ok(None) };
        if in_order && (cluster, seq) <= before {
            return Ok(None);
        }
        before = (cluster, seq);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&cluster.to_le_bytes());
        bytes[8..].copy_from_slice(&seq.to_le_bytes());
        tally.add(xxh3_64_with_seed(&bytes, 0));
    }
    Ok(Some(tally))
}
