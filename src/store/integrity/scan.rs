//! Reads all signatures in parallel, by ranges of `seq`, so that boot can rebuild the index from them.
//! Verifies the checksum of every row, the order of the rows, and the sum of all rows against the ledger. Also collects
//! the documents that joined a cluster.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rusqlite::{Row, Statement};

use crate::store::error::{Result, StoreError};
use crate::store::format::columns::{Flaw, OUT_OF_ORDER};
use crate::store::format::ledger::{Ledger, Tally, read_ledger};
use crate::store::format::rows::{SignatureRow, signature_columns};
use crate::store::read::readers::Readers;
use crate::types::Seq;

/// The number of ranges per partition. Replaced and deleted documents leave gaps, so ranges of equal length can take
/// different amounts of work.
const RANGES_PER_PARTITION: u64 = 16;
/// The number of rows between two progress reports.
const PROGRESS_ROWS: u64 = 4096;

/// The totals of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTotals {
    /// The number of records, links included.
    pub documents: u64,
    pub linked: u64,
    /// The highest `seq` that was read; 0 if there is no record.
    pub last_seq: Seq,
}

/// Calls `visit` with the signature of every record, from `partitions` threads at once. Returns an error if the rows and
/// the ledger do not match, or if `visit` returns false.
pub(in crate::store) fn scan(
    readers: &Readers,
    partitions: usize,
    visit: impl Fn(SignatureRow<'_>) -> bool + Sync,
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
    let parts = thread::scope(|scope| {
        let threads = (0..partitions).map(|_| scope.spawn(|| scan.part())).collect::<Vec<_>>();
        let parts = threads.into_iter().map(|thread| thread.join().expect("a visitor does not panic"));
        parts.collect::<Vec<_>>()
    });
    let mut all = Sums::default();
    for part in parts {
        all.merge(part?);
    }
    all.against_ledger(readers.collection(), &ledger)?;
    readers.joined().set(all.joined);
    Ok(all.totals)
}

/// The results over the rows read so far.
#[derive(Default)]
struct Sums {
    totals: ScanTotals,
    tally: Tally,
    /// The documents that joined a cluster, each with the name of the cluster before it.
    joined: Vec<(Seq, Seq)>,
}

impl Sums {
    fn add(&mut self, signature: &SignatureRow<'_>, sum: u64) {
        if signature.cluster != Seq(0) {
            self.joined.push((signature.cluster, signature.seq));
        }
        self.tally.add(sum);
        self.totals.documents += 1;
        self.totals.linked += u64::from(signature.linked);
        self.totals.last_seq = self.totals.last_seq.max(signature.seq);
    }

    fn merge(&mut self, other: Self) {
        self.totals.documents += other.totals.documents;
        self.totals.linked += other.totals.linked;
        self.totals.last_seq = self.totals.last_seq.max(other.totals.last_seq);
        self.tally.merge(other.tally);
        self.joined.extend(other.joined);
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

/// A running scan, shared by its threads.
struct Scan<'a, V> {
    readers: &'a Readers,
    ranges: Vec<RangeInclusive<i64>>,
    /// The range to take next.
    next: AtomicUsize,
    /// Set when a thread meets an error, so that the other threads stop.
    failed: AtomicBool,
    visit: V,
    progress: &'a AtomicU64,
}

impl<V: Fn(SignatureRow<'_>) -> bool + Sync> Scan<'_, V> {
    /// Does the work of one thread.
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
            // SQLite trusts the keys in the inner pages of a table, and no checksum of a row covers them.
            if !expected.contains(&(signature.seq.0 as i64)) {
                return Err(damaged(OUT_OF_ORDER));
            }
            expected = signature.seq.0 as i64 + 1..=*range.end();
            sums.add(&signature, sum);
            if !(self.visit)(signature) {
                let (collection, doing) = (self.readers.collection().to_owned(), "reading its signatures");
                return Err(StoreError::Io { collection, doing, source: "it was stopped".into() });
            }
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

/// Splits the numbers into ranges of equal length. In a large collection, there are many more ranges than threads.
fn ranges((first, last): (i64, i64), partitions: usize) -> Vec<RangeInclusive<i64>> {
    let step = ((last - first) as u64 / (partitions as u64 * RANGES_PER_PARTITION)).max(1024) as i64;
    std::iter::successors(Some(first), |start| start.checked_add(step))
        .take_while(|start| *start <= last)
        .map(|start| start..=last.min(start.saturating_add(step - 1)))
        .collect()
}

/// Returns the first and the last `seq`.
fn bounds(readers: &Readers) -> Result<(i64, i64)> {
    let connection = readers.connect()?;
    let bound = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    // These are two queries, because SQLite reads `min` or `max` from an end of the tree only if the query has no other
    // result.
    let bounds = bound("SELECT min(seq) FROM signature")
        .and_then(|min| Ok((min.unwrap_or(0), bound("SELECT max(seq) FROM signature")?.unwrap_or(0))));
    let (first, last) = bounds.map_err(|error| scanning(readers, error))?;
    if first < 0 || last < first {
        let detail = format!("its first record is {first} and its last is {last}, which is not possible");
        return Err(StoreError::damaged(readers.collection(), None, detail));
    }
    Ok((first, last))
}

fn scanning(readers: &Readers, error: rusqlite::Error) -> StoreError {
    StoreError::from_sqlite(readers.collection(), "reading its signatures", error)
}
