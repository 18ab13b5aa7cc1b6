//! Lines that wait for the disk, up to a limit in bytes. A line that does not fit is dropped and counted, so that no
//! request waits for the disk of the log. Knows nothing of files.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Whole lines, one after another, and the number of lines that were dropped.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Notified when more than half of the room is taken, and when the log ends.
    due: Condvar,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// The number of bytes that were taken out but are not on disk yet.
    taken: usize,
    dropped: u64,
    ended: bool,
}

/// The state of the queue after a wait.
pub(super) struct Waited {
    /// The number of lines that were dropped since the last wait.
    pub dropped: u64,
    /// Whether no further lines will come.
    pub ended: bool,
}

impl Queue {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { state: Mutex::default(), due: Condvar::new(), bytes_max }
    }

    /// Adds a line. Returns false if the line was dropped, because there is no room or the log has ended.
    pub(super) fn push(&self, line: &[u8]) -> bool {
        let mut state = self.state.lock();
        let before = state.lines.len();
        if state.ended || before + state.taken + line.len() > self.bytes_max {
            state.dropped += 1;
            return false;
        }
        state.lines.extend_from_slice(line);
        let half = self.bytes_max / 2;
        let is_due = before <= half && state.lines.len() > half;
        drop(state);
        if is_due {
            self.due.notify_one();
        }
        true
    }

    /// Waits for `wait`, or until the log ends. With `or_due`, the wait also ends once more than half of the room is
    /// taken. While the disk refuses lines, the queue may be that full for a long time, so the writer does not set
    /// `or_due` then.
    pub(super) fn wait(&self, wait: Duration, or_due: bool) -> Waited {
        let mut state = self.state.lock();
        let until = Instant::now() + wait;
        let goes_on = |state: &mut State| !(state.ended || or_due && state.lines.len() > self.bytes_max / 2);
        self.due.wait_while_until(&mut state, goes_on, until);
        Waited { dropped: std::mem::take(&mut state.dropped), ended: state.ended }
    }

    /// Moves all lines into `batch`, which must be empty. Their bytes count until they are passed to
    /// [`written`](Self::written).
    pub(super) fn take(&self, batch: &mut Vec<u8>) {
        debug_assert!(batch.is_empty(), "its lines would be mixed with later ones");
        let mut state = self.state.lock();
        std::mem::swap(&mut state.lines, batch);
        state.taken += batch.len();
    }

    /// Frees the room of lines that are on disk.
    pub(super) fn written(&self, bytes: usize) {
        self.state.lock().taken -= bytes;
    }

    /// Returns the number of bytes of all lines that are not on disk.
    pub(super) fn bytes(&self) -> usize {
        let state = self.state.lock();
        state.lines.len() + state.taken
    }

    /// Refuses further lines, and wakes the thread that writes.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.due.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_until_they_are_written_and_what_does_not_fit_is_dropped() {
        let queue = Queue::new(10);
        assert!(queue.push(b"1234\n") && !queue.push(b"too much\n") && queue.push(b"5678\n"));
        let mut batch = Vec::new();
        queue.take(&mut batch);
        assert_eq!((&batch[..], queue.bytes()), (&b"1234\n5678\n"[..], 10));
        assert!(!queue.push(b"\n"), "the taken lines are not on disk");
        queue.written(5);
        assert!(queue.push(b"\n"));
        let waited = queue.wait(Duration::ZERO, true);
        assert_eq!((waited.dropped, waited.ended), (2, false));
        queue.end();
        assert!(!queue.push(b"\n") && queue.wait(Duration::from_secs(60), false).ended);
    }

    /// While the disk refused lines, a queue that was half full once let its writer try again without a pause.
    #[test]
    fn a_queue_that_is_half_full_wakes_its_writer_only_if_it_can_write() {
        const PAUSE: Duration = Duration::from_millis(50);
        let queue = Queue::new(10);
        assert!(queue.push(b"1234567\n"));
        let took = |or_due| {
            let begun = Instant::now();
            queue.wait(PAUSE, or_due);
            begun.elapsed()
        };
        assert!(took(false) >= PAUSE);
        let begun = Instant::now();
        queue.wait(Duration::from_secs(60), true);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
