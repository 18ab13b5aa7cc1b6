//! Reads a part of a collection again while documents are written. This also checks rows that neither boot nor requests
//! read.

use super::walk::{WalkRange, walk};
use crate::store::error::{Result, StoreError};
use crate::store::format::{golden, jobs, statistics};
use crate::store::read::readers::Readers;
use crate::types::{Keep, Seq};

/// The maximum number of reports of merges to check here, because all of them are read in one step. If there are more,
/// only backups and `hapax verify` check them.
const REPORTS_MAX: u64 = 200_000;

/// The result of scrubbing a part of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    pub records: u64,
    /// The approximate number of bytes read.
    pub bytes: u64,
    /// The damaged records, each with its flaw.
    pub damaged: Vec<(Seq, String)>,
    /// The flaws of the golden set, which is read with the first records.
    pub golden: Vec<String>,
    /// The flaws of the jobs, which are read with the first records, too. Up to `REPORTS_MAX` reports of merges are
    /// included.
    pub jobs: Vec<String>,
    /// The flaws of the statistics, which are read with the first records, too.
    pub statistics: Vec<String>,
    /// The record after which the next part begins; `None` at the end.
    pub next: Option<Seq>,
}

/// Reads the rows of the documents after `after`, from one snapshot, until about `bytes_max` bytes are read. It never
/// stops within a document. Each row is compared with its own checksum and with the other rows of its document.
pub(in crate::store) fn scrub(readers: &Readers, keep: Keep, after: Seq, bytes_max: u64) -> Result<Scrubbed> {
    // Each call opens a new connection, so that no page comes from the cache of an earlier connection.
    let connection = readers.connect()?;
    let sqlite = |error| StoreError::from_sqlite(readers.collection(), "scrubbing", error);
    let snapshot = connection.unchecked_transaction().map_err(sqlite)?;
    let mut scrubbed = Scrubbed::default();
    if after == Seq(0) {
        let looked = golden::look(&snapshot);
        scrubbed.bytes += looked.pairs.iter().map(|pair| pair.bytes() as u64).sum::<u64>();
        scrubbed.golden = looked.complaints(readers.collection())?;
        scrubbed.statistics = statistics::look(&snapshot).1.complaints(readers.collection())?;
        let with_reports = jobs::reports_counted(&snapshot).map_err(sqlite)? <= REPORTS_MAX;
        let (found, flawed) = jobs::look(&snapshot, with_reports);
        scrubbed.jobs = jobs::complaints((&found, flawed), readers.collection())?;
    }
    let broken = walk(&snapshot, keep, WalkRange::after(after), |visit| {
        scrubbed.records += 1;
        scrubbed.bytes += visit.bytes();
        let damaged = visit.flaws.into_iter().map(|(table, flaw)| (visit.seq, format!("{}: {flaw}", table.as_str())));
        scrubbed.damaged.extend(damaged);
        let goes_on = scrubbed.bytes < bytes_max;
        scrubbed.next = (!goes_on).then_some(visit.seq);
        goes_on
    })
    .map_err(sqlite)?;
    for broken in broken {
        let detail = format!("{} cannot be read after it: {}", broken.table.as_str(), broken.detail);
        scrubbed.damaged.push((broken.behind, detail));
    }
    Ok(scrubbed)
}
