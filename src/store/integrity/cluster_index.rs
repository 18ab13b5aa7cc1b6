//! Adds up the entries of the index of clusters. The index must have one entry for each document that joined a cluster.

use rusqlite::Connection;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::store::format::columns::integer;
use crate::store::format::ledger::Tally;
use crate::types::Seq;

/// Returns a checksum for a document that joined a cluster. This checksum is only added up, never stored.
pub(in crate::store) fn member_sum(cluster: Seq, seq: Seq) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&cluster.0.to_le_bytes());
    bytes[8..].copy_from_slice(&seq.0.to_le_bytes());
    xxh3_64_with_seed(&bytes, 0)
}

/// Adds up the entries of the index, or returns the first entry that is out of order. If all entries are correct and in
/// order, SQLite can find each of them: the inner pages of the index consist of entries, too.
pub(in crate::store) fn index_of_clusters(connection: &Connection) -> rusqlite::Result<Result<Tally, Seq>> {
    let mut statement =
        connection.prepare("SELECT cluster, seq FROM signature INDEXED BY signature_by_cluster WHERE cluster <> 0")?;
    let mut rows = statement.query([])?;
    let (mut tally, mut before) = (Tally::default(), (i64::MIN, i64::MIN));
    while let Some(row) = rows.next()? {
        let (Ok(cluster), Ok(seq)) = (integer(row, 0), integer(row, 1)) else { return Ok(Err(Seq(0))) };
        if (cluster, seq) <= before {
            return Ok(Err(Seq(seq as u64)));
        }
        before = (cluster, seq);
        tally.add(member_sum(Seq(cluster as u64), Seq(seq as u64)));
    }
    Ok(Ok(tally))
}
