//! A rate -> whether work may begin now; if not, how long to wait.
//!
//! A bucket gains `rate` units a second, and can hold the units of one second, which is at least one unit. Work may
//! begin if the bucket has a unit. The work takes as many units as it needs, even more than the bucket has. The bucket
//! is then in debt, and later work waits until the debt is paid. So at 100 documents a second, a batch of 1,000
//! documents begins at once, and its debt is paid in 10 s.
//!
//! The crate `governor` has no debt. It always refuses a batch that is larger than its burst, and cannot count bytes
//! after they have arrived. So this file has the same algorithm (GCRA), with debt. The state is one number, the time at
//! which the bucket was last empty, so no lock is needed.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
/// The value of the clock at its first reading. It is so large that no earlier time is negative.
const CLOCK_BEGINS: u64 = 10 * SECOND;
/// The longest debt, in nanoseconds. The bound keeps sums from overflowing.
const DEBT_MAX: u64 = 10 * 365 * 86_400 * SECOND;

/// Nanoseconds of a clock that begins with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Nanos(u64);

impl Nanos {
    pub(super) fn now() -> Self {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self(CLOCK_BEGINS + BEGUN.elapsed().as_nanos() as u64)
    }
}

/// The bucket of one rate.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Units a second; 0: no limit.
    rate: AtomicU64,
    /// The time at which the bucket was last empty. It is in the future while the bucket is in debt.
    empty_at: AtomicU64,
}

impl Bucket {
    /// Sets the rate; `None`: no limit. If there is a debt, the time until it is paid does not change.
    pub(super) fn set_rate(&self, rate: Option<u64>) {
        let rate = rate.unwrap_or(0);
        // Only a change is written, so that processors do not have to pass the cache line around.
        if self.rate.load(Ordering::Relaxed) != rate {
            self.rate.store(rate, Ordering::Relaxed);
        }
    }

    /// Returns the rate in units a second; `None`: no limit.
    pub(super) fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|&rate| rate > 0)
    }

    /// Returns the time in which the bucket gains `units`, in nanoseconds.
    fn time(&self, units: u64) -> u64 {
        let Some(rate) = self.rate() else { return 0 };
        let time = u128::from(units) * u128::from(SECOND) / u128::from(rate);
        u64::try_from(time).unwrap_or(DEBT_MAX).min(DEBT_MAX)
    }

    /// Returns the time at which the bucket was last empty, without counting units that overflowed.
    fn empty_at(&self, now: Nanos) -> u64 {
        self.empty_at.load(Ordering::Relaxed).max(now.0 - SECOND)
    }

    /// Returns how long it takes until there is a unit; zero if there is one.
    pub(super) fn wait(&self, now: Nanos) -> Duration {
        if self.rate().is_none() {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.empty_at(now) + self.time(1)).saturating_sub(now.0))
    }

    /// Returns the number of whole units that are left.
    pub(super) fn left(&self, now: Nanos) -> u64 {
        let since = now.0.saturating_sub(self.empty_at(now));
        (u128::from(since) * u128::from(self.rate().unwrap_or(0)) / u128::from(SECOND)) as u64
    }

    /// Whether the bucket is full, because all units that were taken have come back.
    pub(super) fn is_full(&self, now: Nanos) -> bool {
        self.empty_at.load(Ordering::Relaxed) <= now.0 - SECOND
    }

    /// Takes `units` if there is at least one. Otherwise takes nothing, and returns how long to wait.
    pub(super) fn take(&self, units: u64, now: Nanos) -> Result<(), Duration> {
        if self.rate().is_none() {
            return Ok(());
        }
        let wait = self.wait(now);
        if !wait.is_zero() {
            return Err(wait);
        }
        let taken = self.empty_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |empty_at| {
            let empty_at = empty_at.max(now.0 - SECOND);
            (empty_at + self.time(1) <= now.0).then(|| self.later(empty_at, units, now))
        });
        taken.map(drop).map_err(|_| self.wait(now).max(Duration::from_nanos(1)))
    }

    /// Takes `units`, even if there are fewer.
    pub(super) fn charge(&self, units: u64, now: Nanos) {
        let charge = |empty_at: u64| Some(self.later(empty_at.max(now.0 - SECOND), units, now));
        let _ = self.empty_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charge);
    }

    fn later(&self, empty_at: u64, units: u64, now: Nanos) -> u64 {
        empty_at.saturating_add(self.time(units)).min(now.0 + DEBT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = SECOND / 1000;

    fn at(ms: u64) -> Nanos {
        Nanos(CLOCK_BEGINS + ms * MS)
    }

    fn of_rate(rate: u64) -> Bucket {
        Bucket { rate: rate.into(), empty_at: 0.into() }
    }

    #[test]
    fn a_second_of_requests_is_there_at_once_and_then_one_after_another() {
        let bucket = of_rate(10);
        assert_eq!((0..20).filter(|_| bucket.take(1, at(0)).is_ok()).count(), 10);
        assert_eq!(bucket.take(1, at(0)), Err(Duration::from_millis(100)));
        assert!(bucket.take(1, at(99)).is_err() && bucket.take(1, at(100)).is_ok() && bucket.take(1, at(199)).is_err());
        assert_eq!((0..20).filter(|_| bucket.take(1, at(3_600_000)).is_ok()).count(), 10, "no more than a second's");
    }

    #[test]
    fn a_batch_is_taken_whole_and_paid_off() {
        let bucket = of_rate(100);
        assert!(bucket.take(1000, at(0)).is_ok());
        assert_eq!((bucket.left(at(0)), bucket.wait(at(0))), (0, Duration::from_millis(9010)));
        assert!(bucket.take(1, at(9009)).is_err());
        assert!(bucket.take(1000, at(9010)).is_ok(), "the next batch");
        assert!(bucket.take(1, at(19_009)).is_err() && bucket.take(1, at(19_010)).is_ok());
    }

    /// In the long run, a client gets exactly the rate if it always takes units as soon as possible. The size of its
    /// pieces does not matter.
    #[test]
    fn the_long_run_has_the_rate() {
        for (rate, piece) in [(1, 1), (3, 7), (100, 1000), (1000, 1), (5_000_000, 300_000), (1 << 40, 1 << 30)] {
            let (bucket, mut taken) = (of_rate(rate), 0);
            for ms in 0..60_000 {
                // The rate of one millisecond limits the number of attempts. Otherwise the loop would not end.
                for _ in 0..=rate / 1000 / piece {
                    taken += bucket.take(piece, at(ms)).map_or(0, |()| piece);
                }
            }
            let most = 61 * rate + piece;
            assert!(taken <= most && taken >= 59 * rate, "{taken} of {most} at {rate} in pieces of {piece}");
        }
    }

    #[test]
    fn threads_share_it() {
        let bucket = of_rate(1000);
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..1000).filter(|_| bucket.take(1, at(0)).is_ok()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }

    #[test]
    fn debts_have_an_end_and_outlive_a_change_of_the_rate() {
        let bucket = of_rate(1);
        for _ in 0..10 {
            bucket.charge(u64::MAX, at(5));
        }
        assert!(bucket.wait(at(5)) <= Duration::from_nanos(DEBT_MAX + SECOND));
        let bucket = of_rate(10);
        bucket.charge(110, at(0));
        assert_eq!(bucket.wait(at(0)), Duration::from_millis(10_100));
        bucket.set_rate(Some(1000));
        assert_eq!(bucket.wait(at(0)), Duration::from_millis(10_001));
        bucket.set_rate(None);
        assert!(bucket.take(u64::MAX, at(0)).is_ok() && bucket.take(1, at(0)).is_ok());
    }
}
