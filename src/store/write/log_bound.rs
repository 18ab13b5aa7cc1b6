//! The length of the write-ahead log -> when its thread is woken, and when the writer itself waits until the log is in the
//! database. Only counts; touches no file.

use super::checkpoint::Checkpointed;
use crate::store::format::connection::LOG_BYTES_MAX;

/// Log not yet in the database at which the thread is woken.
pub(in crate::store) const WAKE_BYTES: u64 = 4 << 20;

/// How long the log is, and at which lengths something is done about it.
#[derive(Debug)]
pub(super) struct LogBound {
    page_bytes: u64,
    log_bytes: u64,
    /// Log that is not in the database yet.
    behind_bytes: u64,
    /// Log at which the thread is woken next: as long as somebody is in its way, waking it for each commit is in vain.
    wake_at_bytes: u64,
    /// Where the log is finished next; moved on when a reader is in the way, so that one slow reader does not cost every
    /// commit a wait.
    finish_at_bytes: u64,
    /// Where it is finished next even if the thread is far behind.
    finish_last_bytes: u64,
}

impl LogBound {
    pub(super) fn new(page_bytes: u64) -> Self {
        Self {
            page_bytes,
            log_bytes: 0,
            behind_bytes: 0,
            wake_at_bytes: 0,
            finish_at_bytes: LOG_BYTES_MAX,
            finish_last_bytes: 0,
        }
    }

    /// Whether the log is to be finished before the next commit.
    pub(super) fn is_reached(&self) -> bool {
        // Whoever was in the way, a backup perhaps, is there still, or has left the thread with so much work that commits
        // would wait long for it here.
        let in_vain = self.behind_bytes > LOG_BYTES_MAX && self.log_bytes < self.finish_last_bytes;
        self.log_bytes >= self.finish_at_bytes && !in_vain
    }

    /// It was finished, or could not be because somebody was in the way.
    pub(super) fn tried(&mut self, busy: bool) {
        if busy {
            self.finish_at_bytes = self.log_bytes + LOG_BYTES_MAX / 4;
            self.finish_last_bytes = self.log_bytes + 4 * LOG_BYTES_MAX;
        } else {
            self.finish_at_bytes = LOG_BYTES_MAX;
            self.finish_last_bytes = 0;
        }
    }

    /// Notes how long the log is. True: the thread is to be woken.
    pub(super) fn note(&mut self, log: Checkpointed) -> bool {
        let log_bytes = log.frames * self.page_bytes;
        if log_bytes < self.log_bytes {
            self.wake_at_bytes = 0;
        }
        self.log_bytes = log_bytes;
        self.behind_bytes = log.frames.saturating_sub(log.checkpointed_frames) * self.page_bytes;
        let wake = self.behind_bytes >= WAKE_BYTES && log_bytes >= self.wake_at_bytes;
        if wake {
            self.wake_at_bytes = log_bytes + WAKE_BYTES / 4;
        }
        wake
    }

    #[cfg(test)]
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    #[cfg(test)]
    pub(super) fn finish_at(&mut self, log_bytes: u64) {
        self.finish_at_bytes = log_bytes;
    }
}
