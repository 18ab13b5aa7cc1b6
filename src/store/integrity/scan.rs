//! All signatures -> one visitor, in parallel by ranges of `seq`: what boot rebuilds the index from. Verifies every row's
//! checksum, their order, all rows together against the ledger, and the index of clusters against the rows.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, OUT_OF_ORDER, integer};
use crate::store::format::ledger::Tally;
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::store::read::reader::Store;
use crate::types::Seq;
use rusqlite::Connection;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Ranges per partition: replaced and deleted documents leave gaps, so equal ranges are not equal work.
const RANGES_PER_PARTITION: u64 = 16;
/// Rows between two notes of progress.
const PROGRESS_ROWS: u64 = 4096;

/// What a scan saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTotals {
    /// Records, links among them.
    pub documents: u64,
    /// Links.
    pub linked: u64,
    /// The highest `seq` seen; 0 if there is no record.
    pub last_seq: Seq,
}

#[derive(Default)]
struct Part {
    totals: ScanTotals,
    tally: Tally,
    /// Of the documents that joined a cluster, by [`member_sum`].
    members: Tally,
}

/// A document that joined a cluster, as a number to be added up; written nowhere.
pub(in crate::store) fn member_sum(cluster: Seq, seq: Seq) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&cluster.0.to_le_bytes());
    bytes[8..].copy_from_slice(&seq.0.to_le_bytes());
    xxh3_64_with_seed(&bytes, 0)
}

/// What the index of clusters holds, in its order or with the entry that is out of it. An index whose entries are right
/// and in order finds each of them, since its inner pages hold entries too.
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

impl Store {
    /// Shows every record's signature to `visit`, from `partitions` threads at once, in order within a range only.
    /// `progress` counts rows. An error means that what was visited must not be used.
    ///
    /// Scan before the first commit: rows that come or go meanwhile do not add up with the ledger.
    pub fn scan(
        &self,
        partitions: usize,
        visit: impl Fn(SignatureRow<'_>) + Sync,
        progress: &AtomicU64,
    ) -> Result<ScanTotals> {
        let ledger = self.ledger()?;
        let (first, last) = self.bounds()?;
        let partitions = partitions.max(1);
        let step = ((last - first) as u64 / (partitions as u64 * RANGES_PER_PARTITION)).max(1024) as i64;
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let ranges = std::iter::successors(Some(first), |start| start.checked_add(step))
            .take_while(|start| *start <= last)
            .map(|start| (start, last.min(start.saturating_add(step - 1))))
            .collect::<Vec<_>>();
        let work = || {
            let part = self.scan_ranges(&ranges, &next, &failed, &visit, progress);
            failed.fetch_or(part.is_err(), Ordering::Relaxed);
            part
        };
        let (parts, index) = thread::scope(|scope| {
            let threads = (0..partitions).map(|_| scope.spawn(work)).collect::<Vec<_>>();
            let index = self.members_by_index();
            let parts = threads.into_iter().map(|thread| thread.join().expect("a visitor does not panic"));
            (parts.collect::<Vec<_>>(), index)
        });
        let mut all = Part::default();
        for part in parts {
            let part = part?;
            all.totals.documents += part.totals.documents;
            all.totals.linked += part.totals.linked;
            all.totals.last_seq = all.totals.last_seq.max(part.totals.last_seq);
            all.tally.rows += part.tally.rows;
            all.tally.sum = all.tally.sum.wrapping_add(part.tally.sum);
            all.members.rows += part.members.rows;
            all.members.sum = all.members.sum.wrapping_add(part.members.sum);
        }
        if all.tally != ledger.signatures || all.totals.last_seq > ledger.last_seq {
            return Err(StoreError::Damaged {
                collection: self.collection().to_owned(),
                record: None,
                detail: format!(
                    "it holds {} records up to {} with sum {:016x}, but its ledger says {} up to {} with sum {:016x}",
                    all.tally.rows,
                    all.totals.last_seq.0,
                    all.tally.sum,
                    ledger.signatures.rows,
                    ledger.last_seq.0,
                    ledger.signatures.sum
                ),
            });
        }
        if all.members != index? {
            return Err(StoreError::Damaged {
                collection: self.collection().to_owned(),
                record: None,
                detail: "its index of clusters does not go with its records".to_owned(),
            });
        }
        Ok(all.totals)
    }

    fn members_by_index(&self) -> Result<Tally> {
        let doing = "reading its index of clusters";
        let read = index_of_clusters(&self.connect()?);
        read.map_err(|error| StoreError::from_sqlite(self.collection(), doing, error))?.map_err(|at| {
            StoreError::Damaged {
                collection: self.collection().to_owned(),
                record: Some(at),
                detail: "its place in the index of clusters is not in order".to_owned(),
            }
        })
    }

    fn bounds(&self) -> Result<(i64, i64)> {
        let connection = self.connect()?;
        let bound = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        // Two questions, since SQLite answers `min` and `max` from the ends of the tree only where they are alone.
        let bounds = bound("SELECT min(seq) FROM signature")
            .and_then(|min| Ok((min.unwrap_or(0), bound("SELECT max(seq) FROM signature")?.unwrap_or(0))));
        let (first, last) = bounds.map_err(|error| self.scanning(error))?;
        if first < 0 || last < first {
            return Err(StoreError::Damaged {
                collection: self.collection().to_owned(),
                record: None,
                detail: format!("its records run from {first} to {last}"),
            });
        }
        Ok((first, last))
    }

    fn scan_ranges(
        &self,
        ranges: &[(i64, i64)],
        next: &AtomicUsize,
        failed: &AtomicBool,
        visit: &(impl Fn(SignatureRow<'_>) + Sync),
        progress: &AtomicU64,
    ) -> Result<Part> {
        let connection = self.connect()?;
        let mut statement = connection
            .prepare(concat!(
                "SELECT ",
                signature_columns!(),
                " FROM signature s WHERE s.seq BETWEEN ?1 AND ?2 ORDER BY s.seq"
            ))
            .map_err(|error| self.scanning(error))?;
        let mut part = Part::default();
        let mut buffer = Vec::new();
        let mut unreported = 0;
        while let Some((start, end)) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut rows = statement.query([start, end]).map_err(|error| self.scanning(error))?;
            let mut expected = *start..=*end;
            while let Some(row) = rows.next().map_err(|error| self.scanning(error))? {
                let damaged = |flaw: Flaw| StoreError::Damaged {
                    collection: self.collection().to_owned(),
                    record: row.get::<_, i64>(0).ok().map(|seq| Seq(seq as u64)),
                    detail: flaw.to_owned(),
                };
                let (signature, sum) = SignatureRow::read(row, 0, &mut buffer).map_err(damaged)?;
                // SQLite trusts the keys of a table's inner pages, which are in no row.
                if !expected.contains(&(signature.seq.0 as i64)) {
                    return Err(damaged(OUT_OF_ORDER));
                }
                expected = signature.seq.0 as i64 + 1..=*end;
                if signature.cluster != Seq(0) {
                    part.members.add(member_sum(signature.cluster, signature.seq));
                }
                part.tally.add(sum);
                part.totals.documents += 1;
                part.totals.linked += u64::from(signature.linked);
                part.totals.last_seq = part.totals.last_seq.max(signature.seq);
                visit(signature);
                unreported += 1;
                if unreported == PROGRESS_ROWS {
                    progress.fetch_add(std::mem::take(&mut unreported), Ordering::Relaxed);
                    if failed.load(Ordering::Relaxed) {
                        return Ok(part);
                    }
                }
            }
        }
        progress.fetch_add(unreported, Ordering::Relaxed);
        Ok(part)
    }

    fn scanning(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(self.collection(), "reading its signatures", error)
    }
}
