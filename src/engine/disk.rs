//! Watches whether the data directory accepts writes, and how much room its disk has. In: commits that the disk
//! refused. Out: the error for a document if the disk is full (507), `"writable"` in `/readyz`, and
//! `hapax_data_free_bytes`. After a refusal, or while the disk is nearly full, a test file is written every few
//! seconds. This file shows whether there is room again, so that no request has to try first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::reserve::Reserve;
use crate::telemetry::names;
use crate::verdicts::{CollectionError, Result, WriteFailure};

/// The size of the test file: a transaction and its log may need this many bytes.
const TRIAL_BYTES: usize = 1 << 20;
/// The name of the test file in the data directory.
const TRIAL_NAME: &str = "trial.tmp";

/// The disk that holds a data directory.
#[derive(Debug)]
pub(crate) struct DataDisk {
    dir: PathBuf,
    /// Set when a write is refused. Cleared once a test file could be written and no collection refuses writes.
    refused: AtomicBool,
    free_bytes: AtomicU64,
    /// Room for deletes.
    reserve: Reserve,
}

impl DataDisk {
    /// Measures the free space for the first time, and keeps `reserve_bytes` of it for deletes.
    pub(crate) fn new(dir: &Path, reserve_bytes: u64) -> Arc<Self> {
        let (refused, free_bytes, reserve) =
            (AtomicBool::new(false), AtomicU64::new(0), Reserve::new(dir, reserve_bytes));
        let disk = Self { dir: dir.to_owned(), refused, free_bytes, reserve };
        disk.reserve.keep(|| disk.free());
        disk.free_bytes.store(disk.free().unwrap_or(0), Ordering::Relaxed);
        Arc::new(disk)
    }

    /// Records that the disk refused a write.
    pub(crate) fn note_refusal(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Makes room for a write that the full disk refused. Returns whether the write may succeed now.
    pub(crate) fn make_room(&self) -> bool {
        self.reserve.give_up()
    }

    /// Returns an error if the remaining room is only for deletes, so that no document may be stored.
    pub(crate) fn admit(&self) -> Result<()> {
        if !self.reserve.is_spent() {
            return Ok(());
        }
        let detail = format!(
            "the disk is full, and the room that is left on it is for deletes; documents are stored again once {} bytes \
             are free",
            self.reserve.needed()
        );
        Err(CollectionError::WriteFailed { detail, why: WriteFailure::DiskFull })
    }

    /// Returns whether the next document is likely to be stored.
    pub(crate) fn is_writable(&self) -> bool {
        !self.refused.load(Ordering::Relaxed) && !self.reserve.is_spent()
    }

    pub(crate) fn observe(&self) {
        metrics::gauge!(names::DATA_FREE).set(self.free_bytes.load(Ordering::Relaxed) as f64);
        metrics::gauge!(names::DATA_WRITABLE).set(f64::from(u8::from(self.is_writable())));
        self.reserve.observe();
    }

    /// Checks whether the disk accepts writes, and how much room it has.
    pub(crate) fn look(&self, a_collection_refuses: bool) {
        self.reserve.keep(|| self.free());
        let free = self.free();
        self.free_bytes.store(free.unwrap_or(0), Ordering::Relaxed);
        let doubtful = free.is_none_or(|free| free < TRIAL_BYTES as u64) || self.refused.load(Ordering::Relaxed);
        let trial = if doubtful { self.trial() } else { Ok(()) };
        let refused = a_collection_refuses || trial.is_err();
        let before = self.refused.swap(refused, Ordering::Relaxed);
        match trial {
            Err(error) if !before => tracing::error!(%error, "the data directory refuses writes; reads still work"),
            Ok(()) if before && !refused => tracing::info!("the data directory accepts writes again"),
            _ => {}
        }
    }

    fn free(&self) -> Option<u64> {
        let stats = rustix::fs::statvfs(&self.dir).ok()?;
        Some(stats.f_bavail.saturating_mul(stats.f_frsize))
    }

    fn trial(&self) -> io::Result<()> {
        let path = self.dir.join(TRIAL_NAME);
        let written = write_trial(&path);
        let removed = fs::remove_file(&path);
        written.and(removed)
    }
}

fn write_trial(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    // The bytes are not all zero, because some file systems store zeros without using space.
    let block: Vec<u8> = (0..TRIAL_BYTES).map(|at| (at % 251) as u8).collect();
    file.write_all(&block)?;
    file.sync_all()
}
