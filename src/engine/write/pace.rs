//! Decides when the next transaction may begin, so that the writes of many clients share a sync, and the number of
//! syncs per second is limited. The interval runs from start to start, so a write that comes after a pause does not
//! wait.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct CommitPace {
    window: Duration,
    last: Option<Instant>,
}

impl CommitPace {
    /// Makes a pace at which transactions begin at least `window` apart.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, last: None }
    }

    /// Returns how long the next transaction still has to wait; `None` if it may begin.
    pub(super) fn wait(&self) -> Option<Duration> {
        let wait = self.window.saturating_sub(self.last?.elapsed());
        (!wait.is_zero()).then_some(wait)
    }

    pub(super) fn begin(&mut self) {
        self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_closely_waits() {
        let mut pace = CommitPace::new(Duration::from_secs(3600));
        assert_eq!(pace.wait(), None, "the first one");
        pace.begin();
        assert!(pace.wait().is_some_and(|wait| wait <= Duration::from_secs(3600)));
        pace.last = Instant::now().checked_sub(Duration::from_secs(3600));
        assert_eq!(pace.wait(), None, "after a pause");
    }

    #[test]
    fn without_a_window_no_transaction_waits() {
        let mut pace = CommitPace::new(Duration::ZERO);
        pace.begin();
        assert_eq!(pace.wait(), None);
    }
}
