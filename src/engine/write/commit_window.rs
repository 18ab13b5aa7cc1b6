//! Decides when the next transaction may begin. A lone writer does not wait. The writes of many clients share a sync. A
//! transaction begins when the number of waiting writes reaches the usual size of recent transactions. It also begins
//! when a window has passed since the last transaction began. Many clients therefore usually cause at most one sync in
//! each window. They cause more syncs if that number of writes waits again before the window ends. If only inserts of
//! streams (*patient* writes) wait, and many more are coming, the transaction waits for [`PATIENCE`], because a sync of
//! a hundred documents costs no more than a sync of twenty. `commit.rs` writes the transactions.

use std::time::{Duration, Instant};

/// A transaction of patient writes begins at most this long after the last transaction began.
const PATIENCE: Duration = Duration::from_millis(4);
/// Patient writes continue to wait if the number of waiting writes has grown by at least this much since `waited` was
/// set. If fewer patient writes than this wait, they are treated like writes that are not patient.
const COMING_MIN: usize = 8;

#[derive(Debug)]
pub(super) struct CommitWindow {
    window: Duration,
    patience: Duration,
    /// When the last transaction began.
    last: Option<Instant>,
    /// The time until which patient writes wait, if they continue to wait after the window has passed.
    patient_until: Option<Instant>,
    /// The number of writes that waited when `patient_until` was last set, or that remained when the last transaction
    /// began.
    waited: usize,
    /// The number of writes that shared a transaction recently. A smaller transaction reduces this number by an eighth,
    /// so that a few small transactions do not end the sharing. A transaction of less than half the size halves this
    /// number, because most of the clients have gone.
    crowd: usize,
}

/// How long the next transaction must still wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub time: Duration,
    /// The number of waiting writes that ends the wait.
    pub entries: usize,
    /// Whether the wait also ends as soon as a write arrives that is not patient.
    pub is_patient: bool,
}

impl CommitWindow {
    /// Makes the window of a collection: a crowd's transactions begin at least `window` apart.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, patience: PATIENCE, last: None, patient_until: None, waited: 0, crowd: 0 }
    }

    /// Returns how long the next transaction must still wait; `None` if it may begin. `waiting` writes wait for it, and
    /// the transaction takes at most `most` writes.
    pub(super) fn wait(&mut self, waiting: usize, most: usize, are_patient: impl FnOnce() -> bool) -> Option<Wait> {
        if waiting >= most || self.window.is_zero() {
            return None;
        }
        let (last, now) = (self.last?, Instant::now());
        // A few patient writes may be all that will come, because some streams wait for each answer before they send
        // more.
        let is_patient = waiting >= COMING_MIN && are_patient();
        if waiting >= self.crowd && !is_patient {
            return None;
        }
        let entries = if is_patient { most } else { self.crowd.min(most) };
        let of_window = (last + self.window).saturating_duration_since(now);
        if !of_window.is_zero() {
            return Some(Wait { time: of_window, entries, is_patient });
        }
        let mut until = self.patient_until.filter(|&until| now < until);
        if until.is_none() && waiting >= self.waited + COMING_MIN {
            until = Some((last + self.patience).min(now + self.window)).filter(|&until| now < until);
            self.waited = waiting;
        }
        self.patient_until = until.filter(|_| is_patient);
        self.patient_until.map(|until| Wait { time: until - now, entries, is_patient })
    }

    /// Notes that a transaction begins. `waiting` writes wait for it, and the transaction takes at most `most` writes.
    pub(super) fn begin(&mut self, waiting: usize, most: usize) {
        (self.last, self.patient_until) = (Some(Instant::now()), None);
        self.waited = waiting.saturating_sub(most);
        let part = if 2 * waiting < self.crowd { 2 } else { 8 };
        self.crowd = waiting.max(self.crowd.saturating_sub((self.crowd / part).max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const ALL: usize = usize::MAX;

    impl CommitWindow {
        /// Lets some windows pass.
        fn pass(&mut self, windows: u32) {
            let earlier = |time: Option<Instant>| time.map(|time| time - windows * self.window);
            (self.last, self.patient_until) = (earlier(self.last), earlier(self.patient_until));
        }

        fn waits(&mut self, waiting: usize, are_patient: bool) -> Option<Wait> {
            self.wait(waiting, ALL, || are_patient)
        }
    }

    #[test]
    fn a_lone_writer_does_not_wait() {
        let mut pace = CommitWindow::new(HOUR);
        for _ in 0..10 {
            assert_eq!(pace.waits(1, false), None);
            pace.begin(1, ALL);
        }
    }

    #[test]
    fn a_crowd_waits_for_all_of_it_or_for_the_window() {
        let mut pace = CommitWindow::new(HOUR);
        pace.begin(64, ALL);
        assert!(pace.waits(63, false).is_some_and(|wait| wait.time <= HOUR && !wait.is_patient));
        assert_eq!(pace.waits(64, false), None, "all are back");
        pace.pass(1);
        assert_eq!(pace.waits(1, false), None, "after a pause");
    }

    #[test]
    fn patient_writes_wait_while_many_come_and_not_for_long() {
        let mut pace = CommitWindow { patience: 4 * HOUR, ..CommitWindow::new(HOUR) };
        let patient = Some(Wait { time: HOUR, entries: ALL, is_patient: true });
        let after = |pace: &mut CommitWindow, windows, waiting, are_patient| {
            pace.begin(1000, ALL);
            pace.pass(windows);
            pace.waits(waiting, are_patient)
        };
        assert_eq!(after(&mut pace, 1, COMING_MIN, true), patient);
        assert_eq!(after(&mut pace, 1, COMING_MIN, false), None, "somebody waits for the answer");
        assert_eq!(after(&mut pace, 1, COMING_MIN - 1, true), None, "few come");
        assert_eq!(after(&mut pace, 2, 500, true), patient);
        assert_eq!(after(&mut pace, 4, 500, true), None, "that would be too long");

        assert_eq!(after(&mut pace, 1, 50, true), patient);
        assert!(pace.waits(60, true).is_some_and(|wait| wait.time <= HOUR && wait.is_patient), "woken too early");
        assert_eq!(pace.waits(61, false), None, "a write that is not patient came");
        assert_eq!(after(&mut pace, 1, 50, true), patient);
        pace.pass(1);
        assert_eq!(pace.waits(50 + COMING_MIN - 1, true), None, "few more came meanwhile");
    }

    #[test]
    fn a_stream_that_waits_for_each_answer_does_not_wait_for_others_and_one_that_flows_does() {
        let mut pace = CommitWindow::new(HOUR);
        pace.begin(COMING_MIN - 1, ALL);
        assert_eq!(pace.waits(COMING_MIN - 1, true), None);
        pace.begin(20, ALL);
        assert!(pace.waits(20, true).is_some_and(|wait| wait.entries == ALL && wait.is_patient));
        assert_eq!(pace.waits(20, false), None);
        assert!(pace.waits(19, false).is_some_and(|wait| wait.entries == 20 && !wait.is_patient));
    }

    #[test]
    fn writes_that_were_left_over_have_not_just_come() {
        let mut pace = CommitWindow { patience: 4 * HOUR, ..CommitWindow::new(HOUR) };
        pace.begin(1000, 100);
        assert_eq!(pace.wait(100, 100, || true), None, "as many as a transaction takes");
        pace.pass(1);
        assert_eq!(pace.wait(900, 2000, || true), None, "no more have come");
        assert!(pace.wait(900 + COMING_MIN, 2000, || true).is_some());
    }

    #[test]
    fn a_smaller_crowd_is_learned_slowly_and_one_that_has_gone_is_soon_forgotten() {
        let mut pace = CommitWindow::new(HOUR);
        pace.begin(64, ALL);
        pace.begin(40, ALL);
        assert_eq!(pace.crowd, 56);
        pace.begin(1000, ALL);
        (0..10).for_each(|_| pace.begin(1, ALL));
        assert_eq!(pace.waits(1, false), None);
    }

    #[test]
    fn without_a_window_no_transaction_waits() {
        let mut pace = CommitWindow::new(Duration::ZERO);
        pace.begin(64, ALL);
        assert_eq!(pace.waits(50, true), None);
    }
}
