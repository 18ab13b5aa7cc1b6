//! How long the server waits for a client that sends a body.

use std::time::Duration;

use tokio::time::Instant;

use super::decoded::broken;
use crate::http::error::{Code, Problem};

/// The time that a client may still keep the server waiting. Waiting uses this time up, and each byte restores some of
/// it, up to the initial value. So a client that sends a byte now and then runs out of time. A client that sends
/// steadily for hours does not.
pub(crate) struct Patience {
    left: Duration,
    max: Duration,
    bytes_per_second_min: u64,
}

impl Patience {
    pub(crate) fn new(max: Duration, bytes_per_second_min: u64) -> Self {
        Self { left: max, max, bytes_per_second_min }
    }

    /// Waits for bytes and returns their number.
    pub(super) async fn wait(&mut self, bytes: impl Future<Output = std::io::Result<usize>>) -> Result<usize, Problem> {
        let begun = Instant::now();
        let read = tokio::time::timeout(self.left, bytes).await;
        let read = read.map_err(|_| Problem::new(Code::RequestTimeout, self.exhausted()))?;
        let bytes = read.map_err(|error| broken(&error))?;
        self.waited(begun.elapsed(), bytes);
        Ok(bytes)
    }

    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Records that the server waited for `time` and then got this many bytes.
    pub(crate) fn waited(&mut self, time: Duration, bytes: usize) {
        let earned = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_min as f64);
        self.left = (self.left.saturating_sub(time) + earned).min(self.max);
    }

    /// Resets the time to the initial value.
    pub(crate) fn renew(&mut self) {
        self.left = self.max;
    }

    /// Returns the error text for a client that has used up its time.
    pub(crate) fn exhausted(&self) -> String {
        format!(
            "no bytes arrived for {} s, or fewer than {} bytes per second",
            self.max.as_secs_f64(),
            self.bytes_per_second_min
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn bytes_earn_patience_up_to_what_there_was() {
        let mut patience = Patience::new(SECOND, 1000);
        let after = async |pause: u64, bytes: usize| {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(bytes)
        };
        for _ in 0..10 {
            assert_eq!(patience.wait(after(20, 1000)).await, Ok(1000));
            assert_eq!(patience.left, patience.max);
        }
        assert_eq!(patience.wait(after(300, 1)).await, Ok(1));
        assert!(patience.left <= Duration::from_millis(701));
        let exhausted = patience.wait(after(60_000, 1_000_000)).await;
        assert_eq!(exhausted.map_err(|problem| problem.code), Err(Code::RequestTimeout));
    }
}
