//! All signatures -> one visitor, in parallel by ranges of `seq`: what boot rebuilds the index from. Verifies every row's
//! checksum, their order, all rows together against the ledger, and the index of clusters against the rows.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rusqlite::{Row, Statement};

use super::cluster_index::{index_of_clusters, member_sum};
use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, OUT_OF_ORDER};
use crate::store::format::ledger::{Ledger, Tally, read_ledger};
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::store::read::readers::Readers;
use crate::types::Seq;

/// Ranges per partition: replaced and deleted documents leave gaps, so equal ranges are not equal work.
const RANGES_PER_PARTITION: u64 = 16;
/// Rows between two notes of progress.
const PROGRESS_ROWS: u64 = 4096;

/// What a scan saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTotals {
    /// Records, links among them.
    pub documents: u64,
    pub linked: u64,
    /// The highest `seq` seen; 0 if there is no record.
    pub last_seq: Seq,
}

/// Shows every record's signature to `visit`, from `partitions` threads at once. An error: the rows, the ledger and the
/// index of clusters do not go together.
pub(in crate::store) fn scan(
    readers: &Readers,
    partitions: usize,
    visit: impl Fn(SignatureRow<'_>) + Sync,
    progress: &AtomicU64,
) -> Result<ScanTotals> {
    let ledger = readers.read(|snapshot| read_ledger(snapshot.connection(), snapshot.collection()))?;
    let partitions = partitions.max(1);
    let scan = Scan {
        readers,
        ranges: ranges(bounds(readers)?, partitions),
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        visit,
        progress,
    };
    let (parts, index) = thread::scope(|scope| {
        let threads = (0..partitions).map(|_| scope.spawn(|| scan.part())).collect::<Vec<_>>();
        let index = members_by_index(readers);
        let parts = threads.into_iter().map(|thread| thread.join().expect("a visitor does not panic"));
        (parts.collect::<Vec<_>>(), index)
    });
    let mut all = Sums::default();
    for part in parts {
        all.merge(&part?);
    }
    all.against_ledger(readers.collection(), &ledger)?;
    if all.members != index? {
        let detail = "its index of clusters does not go with its records";
        return Err(StoreError::damaged(readers.collection(), None, detail));
    }
    Ok(all.totals)
}

/// What was seen, added up.
#[derive(Default)]
struct Sums {
    totals: ScanTotals,
    tally: Tally,
    /// Of the documents that joined a cluster, by [`member_sum`].
    members: Tally,
}

impl Sums {
    fn add(&mut self, signature: &SignatureRow<'_>, sum: u64) {
        if signature.cluster != Seq(0) {
            self.members.add(member_sum(signature.cluster, signature.seq));
        }
        self.tally.add(sum);
        self.totals.documents += 1;
        self.totals.linked += u64::from(signature.linked);
        self.totals.last_seq = self.totals.last_seq.max(signature.seq);
    }

    fn merge(&mut self, other: &Self) {
        self.totals.documents += other.totals.documents;
        self.totals.linked += other.totals.linked;
        self.totals.last_seq = self.totals.last_seq.max(other.totals.last_seq);
        self.tally.merge(other.tally);
        self.members.merge(other.members);
    }

    fn against_ledger(&self, collection: &str, ledger: &Ledger) -> Result<()> {
        if self.tally == ledger.signatures && self.totals.last_seq <= ledger.last_seq {
            return Ok(());
        }
        let detail = format!(
            "it holds {} records up to {} with sum {:016x}, but its ledger says {} up to {} with sum {:016x}",
            self.tally.rows,
            self.totals.last_seq.0,
            self.tally.sum,
            ledger.signatures.rows,
            ledger.last_seq.0,
            ledger.signatures.sum
        );
        Err(StoreError::damaged(collection, None, detail))
    }
}

/// A scan under way, shared by its threads.
struct Scan<'a, V> {
    readers: &'a Readers,
    ranges: Vec<RangeInclusive<i64>>,
    /// The range to be taken next.
    next: AtomicUsize,
    /// One of the threads met an error: the others need not go on.
    failed: AtomicBool,
    visit: V,
    progress: &'a AtomicU64,
}

impl<V: Fn(SignatureRow<'_>) + Sync> Scan<'_, V> {
    /// What one thread does.
    fn part(&self) -> Result<Sums> {
        let sums = self.scan_ranges();
        self.failed.fetch_or(sums.is_err(), Ordering::Relaxed);
        sums
    }

    fn scan_ranges(&self) -> Result<Sums> {
        let connection = self.readers.connect()?;
        let mut statement = connection
            .prepare(concat!(
                "SELECT ",
                signature_columns!(),
                " FROM signature s WHERE s.seq BETWEEN ?1 AND ?2 ORDER BY s.seq"
            ))
            .map_err(|error| scanning(self.readers, error))?;
        let mut sums = Sums::default();
        let mut buffer = Vec::new();
        let mut unreported = 0;
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.scan_range(&mut statement, range, &mut sums, &mut buffer, &mut unreported)?;
            if self.failed.load(Ordering::Relaxed) {
                break;
            }
        }
        self.progress.fetch_add(unreported, Ordering::Relaxed);
        Ok(sums)
    }

    fn scan_range(
        &self,
        statement: &mut Statement<'_>,
        range: &RangeInclusive<i64>,
        sums: &mut Sums,
        buffer: &mut Vec<u8>,
        unreported: &mut u64,
    ) -> Result<()> {
        let scanning = |error| scanning(self.readers, error);
        let mut rows = statement.query([range.start(), range.end()]).map_err(scanning)?;
        let mut expected = range.clone();
        while let Some(row) = rows.next().map_err(scanning)? {
            let damaged = |flaw| self.damaged(row, flaw);
            let (signature, sum) = SignatureRow::read(row, 0, buffer).map_err(damaged)?;
            // SQLite trusts the keys of a table's inner pages, which are in no row.
            if !expected.contains(&(signature.seq.0 as i64)) {
                return Err(damaged(OUT_OF_ORDER));
            }
            expected = signature.seq.0 as i64 + 1..=*range.end();
            sums.add(&signature, sum);
            (self.visit)(signature);
            *unreported += 1;
            if *unreported == PROGRESS_ROWS {
                self.progress.fetch_add(std::mem::take(unreported), Ordering::Relaxed);
                if self.failed.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn damaged(&self, row: &Row<'_>, flaw: Flaw) -> StoreError {
        let record = row.get::<_, i64>(0).ok().map(|seq| Seq(seq as u64));
        StoreError::damaged(self.readers.collection(), record, flaw)
    }
}

/// Pieces of work of about the same size, many more than there are threads.
fn ranges((first, last): (i64, i64), partitions: usize) -> Vec<RangeInclusive<i64>> {
    let step = ((last - first) as u64 / (partitions as u64 * RANGES_PER_PARTITION)).max(1024) as i64;
    std::iter::successors(Some(first), |start| start.checked_add(step))
        .take_while(|start| *start <= last)
        .map(|start| start..=last.min(start.saturating_add(step - 1)))
        .collect()
}

/// The first and the last `seq`.
fn bounds(readers: &Readers) -> Result<(i64, i64)> {
    let connection = readers.connect()?;
    let bound = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    // Two questions, since SQLite answers `min` and `max` from the ends of the tree only where they are alone.
    let bounds = bound("SELECT min(seq) FROM signature")
        .and_then(|min| Ok((min.unwrap_or(0), bound("SELECT max(seq) FROM signature")?.unwrap_or(0))));
    let (first, last) = bounds.map_err(|error| scanning(readers, error))?;
    if first < 0 || last < first {
        let detail = format!("its records run from {first} to {last}");
        return Err(StoreError::damaged(readers.collection(), None, detail));
    }
    Ok((first, last))
}

fn members_by_index(readers: &Readers) -> Result<Tally> {
    let doing = "reading its index of clusters";
    let read = index_of_clusters(&readers.connect()?);
    read.map_err(|error| StoreError::from_sqlite(readers.collection(), doing, error))?.map_err(|at| {
        StoreError::damaged(readers.collection(), at, "its place in the index of clusters is not in order")
    })
}

fn scanning(readers: &Readers, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(readers.collection(), "reading its signatures", error)
}
