//! Decides when the next transaction may begin. A lone writer does not wait. The writes of many clients share a sync. A
//! transaction begins when as many writes wait for it as the recent transactions had. It also begins when a window has
//! passed since the last transaction began. Many clients therefore cause at most one sync in each window, unless that
//! many writes wait again before its end. If only writes of streams wait, and many more come in each window, the
//! transaction waits for [`PATIENCE`]: a sync costs as much for a hundred documents as for twenty.

use std::time::{Duration, Instant};

/// How long after the beginning of the last transaction one of patient writes may begin.
const PATIENCE: Duration = Duration::from_millis(4);
/// Patient writes wait for a further window if at least this many came in the last one.
const COMING_MIN: usize = 8;

#[derive(Debug)]
pub(super) struct CommitPace {
    window: Duration,
    patience: Duration,
    /// When the last transaction began.
    last: Option<Instant>,
    /// The end of the present window, and the number of writes that waited when the window began.
    end: Option<Instant>,
    waited: usize,
    /// The number of writes that shared a transaction recently. A smaller transaction reduces it by an eighth, so that
    /// a few of them do not end the sharing. A transaction of less than half the size reduces it by half, because the
    /// crowd has gone.
    crowd: usize,
}

impl CommitPace {
    /// Makes a pace at which a crowd's transactions begin at least `window` apart.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, patience: PATIENCE, last: None, end: None, waited: 0, crowd: 0 }
    }

    /// Returns how long the next transaction must still wait if this many writes wait for it; `None` if it may begin.
    pub(super) fn wait(&mut self, waiting: usize, are_patient: bool) -> Option<Duration> {
        if waiting >= self.crowd || self.window.is_zero() {
            return None;
        }
        let (last, end, now) = (self.last?, self.end?, Instant::now());
        if now < end {
            return Some(end - now);
        }
        let are_coming = waiting >= self.waited + COMING_MIN;
        let is_early = now + self.window <= last + self.patience;
        if !(are_patient && are_coming && is_early) {
            return None;
        }
        (self.end, self.waited) = (Some(now + self.window), waiting);
        Some(self.window)
    }

    /// Returns how many writes a transaction waits for.
    pub(super) fn crowd(&self) -> usize {
        self.crowd
    }

    /// Notes that a transaction begins with this many writes.
    pub(super) fn begin(&mut self, writes: usize) {
        let now = Instant::now();
        (self.last, self.end, self.waited) = (Some(now), Some(now + self.window), 0);
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
            assert_eq!(pace.wait(1, false), None);
            pace.begin(1);
        }
    }

    #[test]
    fn a_crowd_waits_for_all_of_it_or_for_the_window() {
        let mut pace = CommitPace::new(HOUR);
        pace.begin(64);
        assert!(pace.wait(63, false).is_some_and(|wait| wait <= HOUR));
        assert_eq!(pace.wait(64, false), None, "all are back");
        pace.pass(1);
        assert_eq!(pace.wait(1, false), None, "after a pause");
    }

    #[test]
    fn patient_writes_wait_while_many_come_and_not_for_long() {
        let mut pace = CommitPace { patience: 5 * HOUR, ..CommitPace::new(HOUR) };
        let after = |pace: &mut CommitPace, windows, waiting, are_patient| {
            pace.begin(1000);
            pace.pass(windows);
            pace.wait(waiting, are_patient)
        };
        assert_eq!(after(&mut pace, 1, COMING_MIN, true), Some(HOUR));
        assert_eq!(after(&mut pace, 1, COMING_MIN, false), None, "somebody waits for the answer");
        assert_eq!(after(&mut pace, 1, COMING_MIN - 1, true), None, "few come");
        assert_eq!(after(&mut pace, 3, 500, true), Some(HOUR));
        assert_eq!(after(&mut pace, 4, 500, true), None, "a window more would be too long");

        assert_eq!(after(&mut pace, 1, 50, true), Some(HOUR));
        assert!(pace.wait(60, true).is_some_and(|wait| wait <= HOUR), "in the next window");
        pace.pass(1);
        assert_eq!(pace.wait(50 + COMING_MIN - 1, true), None, "few more came in it");
    }

    #[test]
    fn a_smaller_crowd_is_learned_slowly_and_one_that_has_gone_is_soon_forgotten() {
        let mut pace = CommitPace::new(HOUR);
        pace.begin(64);
        pace.begin(40);
        assert_eq!(pace.crowd(), 56);
        pace.begin(1000);
        (0..10).for_each(|_| pace.begin(1));
        assert_eq!(pace.wait(1, false), None);
    }

    #[test]
    fn without_a_window_no_transaction_waits() {
        let mut pace = CommitPace::new(Duration::ZERO);
        pace.begin(64);
        assert_eq!(pace.wait(50, true), None);
    }

    impl CommitPace {
        /// Lets some windows pass.
        fn pass(&mut self, windows: u32) {
            self.last = self.last.map(|last| last - windows * self.window);
            self.end = self.end.map(|end| end - windows * self.window);
        }
    }
}
