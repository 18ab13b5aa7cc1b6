//! A stretch of a collection, read again while others write: what boot and requests do not come across is looked at too.

use super::walk::walk;
use crate::store::error::{Result, StoreError};
use crate::store::read::readers::Readers;
use crate::types::{Keep, Seq};

/// What a scrub read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    pub records: u64,
    /// Bytes, about.
    pub bytes: u64,
    /// Records that are not what was written, and how it shows.
    pub damaged: Vec<(Seq, String)>,
    /// Behind which the rest begins; `None`: there is none.
    pub next: Option<Seq>,
}

/// Reads the rows of documents behind `after`, as of one moment, until it has read about `bytes_max`; a document is
/// read whole. Each row is held against its own sum and the other rows of its document.
pub(in crate::store) fn scrub(readers: &Readers, keep: Keep, after: Seq, bytes_max: u64) -> Result<Scrubbed> {
    // Its own, and anew each time: nothing comes from pages that a connection has kept.
    let connection = readers.connect()?;
    let sqlite = |error| StoreError::from_sqlite(readers.collection(), "scrubbing", error);
    let snapshot = connection.unchecked_transaction().map_err(sqlite)?;
    let mut scrubbed = Scrubbed::default();
    let broken = walk(&snapshot, keep, after, |visit| {
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
        let detail = format!("{} cannot be read behind it: {}", broken.table.as_str(), broken.detail);
        scrubbed.damaged.push((broken.behind, detail));
    }
    Ok(scrubbed)
}
