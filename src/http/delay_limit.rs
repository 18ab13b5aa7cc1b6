//! Decides when work has waited too long for a processor, so that a server with too much to do refuses work instead of
//! doing all of it late. In: how long each piece of work has waited. Out: whether to refuse it.
//!
//! A short burst also makes work wait, but it is over soon. So work is refused only after the waits have been too long
//! for some time without a break. The idea is from CoDel (RFC 8289), which looks at the shortest wait of an interval.
//! The shortest wait is no use here: work arrives in rounds, and the first piece of each round never waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work is refused once a run of long waits has lasted for the limit multiplied by this number.
const BURST: u32 = 3;

/// The longest allowed wait, and for how long it has been exceeded.
#[derive(Debug)]
pub(super) struct DelayLimit {
    max: Duration,
    made: Instant,
    /// When the current run of long waits began, in microseconds since `made`.
    since: AtomicU64,
    /// When the last long wait ended; 0 if there was none.
    last: AtomicU64,
}

impl DelayLimit {
    /// A limit of zero refuses nothing.
    pub(super) fn new(max: Duration) -> Self {
        Self { max, made: Instant::now(), since: AtomicU64::new(0), last: AtomicU64::new(0) }
    }

    /// Returns whether work that begins now and has waited this long is refused. Costs one comparison if the wait was
    /// short.
    pub(super) fn refuses(&self, waited: Duration) -> bool {
        !self.max.is_zero() && waited > self.max && self.lasts(self.made.elapsed(), waited)
    }

    /// Records a long wait that ends now, and returns whether the run of long waits has lasted long enough to refuse
    /// work. A long wait belongs to the same run if it began soon after the end of the previous long wait.
    fn lasts(&self, now: Duration, waited: Duration) -> bool {
        let micros = |time: Duration| time.as_micros() as u64;
        let (began, now, patience) = (micros(now.saturating_sub(waited)), micros(now) + 1, micros(BURST * self.max));
        let last = self.last.swap(now, Ordering::Relaxed);
        if last == 0 || began > last + patience {
            self.since.store(now, Ordering::Relaxed);
        }
        now.saturating_sub(self.since.load(Ordering::Relaxed)) >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(10);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_not_refused_and_lasting_waits_are() {
        let limit = DelayLimit::new(LIMIT);
        assert!((100..130).all(|at| !limit.lasts(ms(at), Duration::ZERO)), "a burst");
        assert!((130..200).all(|at| limit.lasts(ms(at), Duration::ZERO)), "that does not end");
    }

    #[test]
    fn a_pause_without_long_waits_ends_it() {
        let limit = DelayLimit::new(LIMIT);
        assert_eq!((0..50).filter(|&at| limit.lasts(ms(at), Duration::ZERO)).count(), 20);
        assert!(limit.lasts(ms(79), Duration::ZERO), "30 ms are not a pause");
        assert!((110..140).all(|at| !limit.lasts(ms(at), Duration::ZERO)), "it begins again");
        assert!(limit.lasts(ms(140), Duration::ZERO));
    }

    #[test]
    fn a_wait_that_began_soon_after_another_ended_belongs_to_it() {
        let limit = DelayLimit::new(LIMIT);
        assert!(!limit.lasts(ms(100), ms(50)));
        assert!(limit.lasts(ms(200), ms(90)));
        assert!(!limit.lasts(ms(300), ms(50)), "ready at 250, a pause of 50 ms");
    }

    #[test]
    fn only_long_waits_count_and_zero_is_no_limit() {
        let limit = DelayLimit::new(Duration::from_nanos(1));
        while !limit.refuses(ms(1)) {}
        assert!(!limit.refuses(Duration::ZERO));
        let off = DelayLimit::new(Duration::ZERO);
        assert!((0..1000).all(|_| !off.refuses(ms(1000))));
    }
}
