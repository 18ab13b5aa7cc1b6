//! The thread that writes the log. It takes lines from the queue a few times a second, and keeps the files within their
//! limits. If the disk refuses lines, the thread keeps them and tries again, and the server continues to answer
//! requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::files::Files;
use super::queue::Queue;
use crate::telemetry::names;

/// A line waits for at most this time, so that several lines are written together. If the process is killed, the lines
/// of its last moments, up to this time, are missing.
const TOGETHER: Duration = Duration::from_millis(250);
/// The time between two attempts while the disk refuses lines.
const AGAIN: Duration = Duration::from_secs(1);
/// The time between two checks of the age of files.
const AGES: Duration = Duration::from_secs(1);
/// The least time between two messages about the same trouble.
const TELL: Duration = Duration::from_secs(60);
/// If a batch was larger than this, its memory is freed.
const BATCH_BYTES_KEPT: usize = 1 << 20;

pub(super) struct Writer {
    files: Files,
    queue: Arc<Queue>,
    /// Lines that were taken from the queue but are not on disk.
    batch: Vec<u8>,
    failing: bool,
    troubles: [Trouble; 2],
    aged: Instant,
}

/// A trouble that is reported, but not too often.
#[derive(Default)]
struct Trouble {
    told: Option<Instant>,
    since: u64,
}

impl Trouble {
    /// Counts the trouble. Returns how often it happened since the last report; `None` if there is nothing to report,
    /// or if the last report was less than [`TELL`] ago.
    fn count(&mut self, times: u64) -> Option<u64> {
        self.since += times;
        if self.since == 0 || self.told.is_some_and(|at| at.elapsed() < TELL) {
            return None;
        }
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.since))
    }
}

impl Writer {
    pub(super) fn new(files: Files, queue: Arc<Queue>) -> Self {
        metrics::gauge!(names::AUDIT_BYTES).set(files.bytes() as f64);
        Self { files, queue, batch: Vec::new(), failing: false, troubles: Default::default(), aged: Instant::now() }
    }

    /// Writes until the queue has ended and is empty, or until the disk refuses its last lines.
    pub(super) fn run(mut self) {
        loop {
            let waited = self.queue.wait(if self.failing { AGAIN } else { TOGETHER }, !self.failing);
            self.tell_dropped(waited.dropped);
            self.write();
            if waited.ended {
                // Writes the lines that arrived during the write above.
                self.write();
                break;
            }
            self.age();
            metrics::gauge!(names::AUDIT_QUEUE_BYTES).set(self.queue.bytes() as f64);
        }
        let mut rest = Vec::new();
        self.queue.take(&mut rest);
        let lost = lines(&self.batch) + lines(&rest);
        if lost > 0 {
            metrics::counter!(names::AUDIT_DROPPED).increment(lost);
            tracing::error!(lines = lost, "the last lines of the audit log could not be written");
        }
        self.files.close();
    }

    fn write(&mut self) {
        if self.batch.is_empty() {
            self.queue.take(&mut self.batch);
        }
        if self.batch.is_empty() {
            return;
        }
        let (written, outcome) = self.files.append(&self.batch);
        metrics::counter!(names::AUDIT_LINES).increment(lines(&self.batch[..written]));
        self.queue.written(written);
        self.batch.drain(..written);
        if self.batch.is_empty() && self.batch.capacity() > BATCH_BYTES_KEPT {
            self.batch = Vec::new();
        }
        metrics::gauge!(names::AUDIT_BYTES).set(self.files.bytes() as f64);
        self.note(outcome);
    }

    /// Ends the current file if it is old, and removes expired files.
    fn age(&mut self) {
        if self.aged.elapsed() >= AGES {
            self.aged = Instant::now();
            if let Err(error) = self.files.expire() {
                self.note(Err(error));
            }
            metrics::gauge!(names::AUDIT_BYTES).set(self.files.bytes() as f64);
        }
    }

    fn note(&mut self, outcome: std::io::Result<()>) {
        let Err(error) = outcome else {
            if std::mem::take(&mut self.failing) {
                tracing::info!("the audit log can be written again");
            }
            return;
        };
        self.failing = true;
        metrics::counter!(names::AUDIT_ERRORS).increment(1);
        let dir = self.files.dir().display();
        if let Some(errors) = self.troubles[0].count(1) {
            tracing::error!(
                %dir,
                %error,
                errors,
                "cannot write the audit log; its lines wait, and are dropped once audit.queue_bytes_max is reached"
            );
        }
    }

    fn tell_dropped(&mut self, dropped: u64) {
        if let Some(lines) = self.troubles[1].count(dropped) {
            tracing::warn!(lines, "lines of the audit log were dropped, because too many were waiting for the disk");
        }
    }
}

fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_at_once_and_then_once_in_a_while() {
        let mut trouble = Trouble::default();
        assert_eq!([0, 2, 3, 4].map(|times| trouble.count(times)), [None, Some(2), None, None]);
        trouble.told = Instant::now().checked_sub(TELL);
        assert_eq!([trouble.count(0), trouble.count(0)], [Some(7), None]);
    }
}
