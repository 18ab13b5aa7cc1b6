//! Copies one snapshot of a collection's file, at a bounded rate, while its writer works. `VACUUM INTO` reads the whole
//! file in one read transaction. (SQLite's backup API starts again after each commit of another connection, so a
//! throttled backup would never end while a writer works.) As long as the transaction lasts, the writer's log cannot
//! restart, so it grows. If the log has grown by more than half of `log_bytes_max`, the copy no longer pauses. If it
//! has grown by more than `log_bytes_max`, the copy fails.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::error::{BackupError, Result};
use super::progress::Stage;
use crate::store::data_dir::files;
use crate::store::data_dir::files::name_of;
use crate::store::error::StoreError;
use crate::store::format::connection::{Role, connect};
use crate::store::format::version::check_format;

/// The number of steps of SQLite's virtual machine between two checks, about 20 rows.
const STEPS: i32 = 100;
const CACHE_KIB: i64 = 256;
/// The shortest time between two checks of the log and of a cancellation. Also the longest pause without such a check.
const LOOK: Duration = Duration::from_millis(10);
/// After this many bytes the copy is synced. A single sync at the end would delay the writer's own fsync.
const SYNC_BYTES: u64 = 8 << 20;

/// The highest rate of a copy, and the growth of the log at which the copy fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyLimits {
    /// Bytes of the copy per second. `None` means as fast as the disk.
    pub bytes_per_second_max: Option<u64>,
    /// By how much the write-ahead log may grow during the copy. `None` if there is no writer.
    pub log_bytes_max: Option<u64>,
}

/// The reason why a copy ended early.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Cancelled,
    Gone,
    LogGrew { grown: u64, max: u64 },
}

type Gone = Box<dyn Fn() -> bool + Send>;

/// Makes the copy. Returns false if `gone` returned true, because the collection was dropped. A part of `target` may
/// then exist.
pub(super) fn copy(source: &Path, target: &Path, limits: CopyLimits, gone: Gone, stage: &Stage) -> Result<bool> {
    let label = name_of(source);
    let Some(name) = target.to_str() else {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is not UTF-8");
        return Err(BackupError::Io { path: target.to_owned(), doing: "copying to it", source });
    };
    let stopped = Arc::new(OnceLock::new());
    let mut watch = Watch::new(source, target, limits, gone, stage, Arc::clone(&stopped));
    let mut connection = connect(source, Role::Reader)?;
    let copying = |error| StoreError::from_sqlite(&label, "copying it", error);
    check_format(&connection, source)?;
    // Keep the cache small: the rate is measured by the size of the file, which does not include unwritten data in the
    // cache.
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(copying)?;
    connection.progress_handler(STEPS, Some(move || watch.step())).map_err(copying)?;
    let copied = connection.execute("VACUUM main INTO ?1", [name]);
    match (stopped.get(), copied) {
        (Some(Stop::Cancelled), _) => Err(BackupError::Cancelled),
        (Some(Stop::Gone), _) => Ok(false),
        (Some(&Stop::LogGrew { grown, max }), _) => Err(BackupError::LogGrew { collection: label, grown, max }),
        (None, Ok(_)) => Ok(true),
        (None, Err(error)) => Err(copying(error).into()),
    }
}

/// Controls a copy while it runs: SQLite calls it every few rows to find out whether to continue.
struct Watch {
    target: PathBuf,
    file: Option<File>,
    log: PathBuf,
    log_began: u64,
    limits: CopyLimits,
    gone: Gone,
    stage: Stage,
    stopped: Arc<OnceLock<Stop>>,
    began: Instant,
    looked: Instant,
    hurried: bool,
    synced: u64,
}

impl Watch {
    fn new(
        source: &Path,
        target: &Path,
        limits: CopyLimits,
        gone: Gone,
        stage: &Stage,
        stopped: Arc<OnceLock<Stop>>,
    ) -> Self {
        let log = files::log(source);
        let now = Instant::now();
        Self {
            target: target.to_owned(),
            file: None,
            log_began: length(&log),
            log,
            limits,
            gone,
            stage: stage.clone(),
            stopped,
            began: now,
            looked: now,
            hurried: false,
            synced: 0,
        }
    }

    /// Pauses if the copy is too fast. Returns true to stop the copy.
    fn step(&mut self) -> bool {
        let written = length(&self.target);
        self.stage.at(written as f64 / self.stage.units().max(1) as f64);
        if written >= self.synced + SYNC_BYTES {
            self.sync();
            self.synced = written;
        }
        if self.looked.elapsed() >= LOOK && self.look() {
            return true;
        }
        let Some(rate) = self.limits.bytes_per_second_max else { return false };
        let due = self.began + Duration::from_secs_f64(written as f64 / rate as f64);
        while !self.hurried {
            let rest = due.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(LOOK));
            if self.look() {
                return true;
            }
        }
        false
    }

    fn look(&mut self) -> bool {
        self.looked = Instant::now();
        let grown = length(&self.log).saturating_sub(self.log_began);
        let max = self.limits.log_bytes_max.unwrap_or(u64::MAX);
        self.hurried |= grown > max / 2;
        let stop = if self.stage.is_cancelled() {
            Stop::Cancelled
        } else if (self.gone)() {
            Stop::Gone
        } else if grown > max {
            Stop::LogGrew { grown, max }
        } else {
            return false;
        };
        let _ = self.stopped.set(stop);
        true
    }

    /// Syncs early. An error is ignored here, because the last sync reports it again.
    fn sync(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.target).ok();
        }
        if let Some(file) = &self.file {
            let _ = file.sync_data();
        }
    }
}

/// Returns the length of a file; 0 if it does not exist.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
