//! The audit log of a server. In: decisions. The log never makes a request wait. When the log is closed, it writes all
//! lines that still wait.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::decision::Decision;
use super::error::AuditError;
use super::files::Files;
use super::queue::Queue;
use super::settings::AuditSettings;
use super::writer::Writer;
use crate::telemetry::names;

/// The longest time that closing the log waits for decisions that are made but have no line yet.
const OPEN_WAIT: Duration = Duration::from_secs(2);
const OPEN_LOOK: Duration = Duration::from_millis(5);

thread_local! {
    /// The line that this thread is making.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The log. Its lines are kept in memory until [`start`](Self::start).
pub struct AuditLog {
    settings: AuditSettings,
    queue: Arc<Queue>,
    /// The number of decisions that are made but have no line yet.
    open: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A decision that is made but has no line yet. Closing the log waits for it.
pub struct OpenDecision(Arc<AtomicUsize>);

impl Drop for OpenDecision {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AuditLog {
    pub fn new(settings: AuditSettings) -> Arc<Self> {
        let queue = Arc::new(Queue::new(settings.queue_bytes_max));
        Arc::new(Self { settings, queue, open: Arc::default(), thread: Mutex::default() })
    }

    /// Takes the directory and begins to write. If another process uses the directory, waits at most `wait` until that
    /// process leaves it.
    pub fn start(&self, wait: Duration) -> Result<(), AuditError> {
        let writer = Writer::new(Files::take(&self.settings, wait)?, Arc::clone(&self.queue));
        let thread = thread::Builder::new().name("hapax-audit".into()).spawn(move || writer.run());
        *self.thread.lock() = Some(thread.map_err(AuditError::Thread)?);
        Ok(())
    }

    /// The directory of the files.
    pub fn dir(&self) -> &Path {
        &self.settings.dir
    }

    /// Whether checks are logged too.
    pub fn has_checks(&self) -> bool {
        self.settings.checks
    }

    /// Adds a line. If too many lines wait for the disk, this line is dropped and counted.
    pub fn record(&self, decision: &Decision<'_>) {
        let added = LINE.with_borrow_mut(|line| {
            line.clear();
            decision.write(line);
            self.queue.push(line)
        });
        if !added {
            metrics::counter!(names::AUDIT_DROPPED).increment(1);
        }
    }

    /// Records a decision whose line will be added later.
    pub fn open(&self) -> OpenDecision {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenDecision(Arc::clone(&self.open))
    }

    /// Writes all lines, and releases the directory. Blocks the thread until that is done. Later lines are dropped.
    pub fn close(&self) {
        let since = Instant::now();
        while self.open.load(Ordering::Acquire) > 0 && since.elapsed() < OPEN_WAIT {
            thread::sleep(OPEN_LOOK);
        }
        self.queue.end();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the audit log panicked");
        }
    }
}
