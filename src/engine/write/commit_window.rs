//! Decides when the next transaction may begin. A lone writer does not wait. The writes of many clients share a sync. A
//! transaction begins when as many writes wait for it as the recent transactions had. It also begins when a window has
//! passed since the last transaction began. Many clients therefore cause at most one sync in each window, unless that
//! many writes wait again before its end.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct CommitPace {
    window: Duration,
    last: Option<Instant>,
    /// The number of writes that shared a transaction recently. A smaller transaction reduces it by an eighth, so that
    /// a few of them do not end the sharing. A transaction of less than half the size reduces it by half, because the
    /// crowd has gone.
    crowd: usize,
}

impl CommitPace {
    /// Makes a pace at which a crowd's transactions begin at least `window` apart.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, last: None, crowd: 0 }
    }

    /// Returns how long the next transaction must still wait if this many writes wait for it; `None` if it may begin.
    pub(super) fn wait(&self, waiting: usize) -> Option<Duration> {
        if waiting >= self.crowd {
            return None;
        }
        let wait = self.window.saturating_sub(self.last?.elapsed());
        (!wait.is_zero()).then_some(wait)
    }

    /// Returns how many writes a transaction waits for.
    pub(super) fn crowd(&self) -> usize {
        self.crowd
    }

    /// Notes that a transaction begins with this many writes.
    pub(super) fn begin(&mut self, writes: usize) {
        self.last = Some(Instant::now());
        let part = if 2 * writes < self.crowd { 2 } else { 8 };
        self.crowd = writes.max(self.crowd.saturating_sub((self.crowd / part).max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_lone_writer_does_not_wait() {
        let mut pace = CommitPace::new(HOUR);
        for _ in 0..10 {
            assert_eq!(pace.wait(1), None);
            pace.begin(1);
        }
    }

    #[test]
    fn a_crowd_waits_for_all_of_it_or_for_the_window() {
        let mut pace = CommitPace::new(HOUR);
        pace.begin(64);
        assert!(pace.wait(63).is_some_and(|wait| wait <= HOUR));
        assert_eq!(pace.wait(64), None, "all are back");
        pace.last = Instant::now().checked_sub(HOUR);
        assert_eq!(pace.wait(1), None, "after a pause");
    }

    #[test]
    fn a_smaller_crowd_is_learned_slowly_and_one_that_has_gone_is_soon_forgotten() {
        let mut pace = CommitPace::new(HOUR);
        pace.begin(64);
        pace.begin(40);
        assert_eq!(pace.crowd(), 56);
        pace.begin(1000);
        (0..10).for_each(|_| pace.begin(1));
        assert_eq!(pace.wait(1), None);
    }

    #[test]
    fn without_a_window_no_transaction_waits() {
        let mut pace = CommitPace::new(Duration::ZERO);
        pace.begin(64);
        assert_eq!(pace.wait(1), None);
    }
}
