//! Limits the reading of a finished copy to the rate of the backup, and stops the reading if the backup is cancelled.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::BackupError;
use super::progress::Progress;

/// The longest pause without a check for a cancellation.
const LOOK: Duration = Duration::from_millis(10);
/// The bytes that may be read between two pauses.
const PIECE_BYTES: u64 = 1 << 20;

/// The rate limit for reading one copy.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second_max: Option<u64>,
    progress: Arc<Progress>,
    read: Mutex<Read>,
}

/// The number of bytes that were read since the rate was last checked.
#[derive(Debug)]
struct Read {
    since: Instant,
    bytes: u64,
}

impl Pace {
    pub(super) fn new(bytes_per_second_max: Option<u64>, progress: Arc<Progress>) -> Self {
        Self { bytes_per_second_max, progress, read: Mutex::new(Read { since: Instant::now(), bytes: 0 }) }
    }

    /// Notes that `bytes` were read, and pauses if the reading was too fast. The error says that the backup was
    /// cancelled.
    pub(super) fn read(&self, bytes: u64) -> io::Result<()> {
        let mut read = self.read.lock();
        read.bytes += bytes;
        if read.bytes >= PIECE_BYTES.min(self.bytes_per_second_max.unwrap_or(PIECE_BYTES) / 16) {
            self.pause(&read);
            // Unused time is not saved for later reads.
            *read = Read { since: Instant::now(), bytes: 0 };
        }
        drop(read);
        if self.progress.is_cancelled() { Err(io::Error::other(BackupError::Cancelled)) } else { Ok(()) }
    }

    fn pause(&self, read: &Read) {
        let Some(rate) = self.bytes_per_second_max else { return };
        let due = read.since + Duration::from_secs_f64(read.bytes as f64 / rate as f64);
        while !self.progress.is_cancelled() {
            match due.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return,
                rest => std::thread::sleep(rest.min(LOOK)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_keeps_to_the_rate_until_it_is_cancelled() {
        let progress = Arc::<Progress>::default();
        let pace = Pace::new(Some(1 << 20), progress.clone());
        let began = Instant::now();
        (0..64).try_for_each(|_| pace.read(8 << 10)).unwrap();
        assert!(began.elapsed() > Duration::from_millis(450));
        progress.cancel();
        let began = Instant::now();
        pace.read(1 << 40).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(60));
        Pace::new(None, Arc::default()).read(1 << 40).unwrap();
    }
}
