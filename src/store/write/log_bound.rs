//! Decides by the length of the write-ahead log when to wake the checkpoint thread, and when the writer itself must
//! finish a checkpoint. The code here only counts bytes. `writer.rs` finishes the checkpoint before a commit.

use super::checkpoint::Checkpointed;
use crate::store::format::connection::LOG_BYTES_MAX;

/// The thread is woken when this many bytes of the log are not in the database yet.
pub(in crate::store) const WAKE_BYTES: u64 = 4 << 20;

/// The length of the log, and the lengths at which the thread or the writer must act.
#[derive(Debug)]
pub(super) struct LogBound {
    page_bytes: u64,
    log_bytes: u64,
    /// The part of the log that is not in the database yet.
    behind_bytes: u64,
    /// The length at which the thread is woken next. While a reader delays checkpoints, waking the thread for each
    /// commit would be useless.
    wake_at_bytes: u64,
    /// The length at which the writer next finishes the log, that is, moves all of it into the database. The length is
    /// raised if a reader prevents this, so that one slow reader does not make every commit wait.
    finish_at_bytes: u64,
    /// The length at which the writer finishes the log even if the thread is far behind.
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

    /// Returns whether the writer must finish the log before the next commit.
    pub(super) fn is_reached(&self) -> bool {
        // If `in_vain`, an attempt would fail or take long. The reader that prevented the last attempt, perhaps a
        // backup, may still be reading. Or the thread still has so much work that a commit would wait long here.
        let in_vain = self.behind_bytes > LOG_BYTES_MAX && self.log_bytes < self.finish_last_bytes;
        self.log_bytes >= self.finish_at_bytes && !in_vain
    }

    /// Notes the result of an attempt to finish the log. If `busy`, a reader prevented it.
    pub(super) fn tried(&mut self, busy: bool) {
        if busy {
            self.finish_at_bytes = self.log_bytes + LOG_BYTES_MAX / 4;
            self.finish_last_bytes = self.log_bytes + 4 * LOG_BYTES_MAX;
        } else {
            self.finish_at_bytes = LOG_BYTES_MAX;
            self.finish_last_bytes = 0;
        }
    }

    /// Notes the length of the log. Returns whether the thread must be woken.
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
