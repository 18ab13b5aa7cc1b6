//! Estimates how long new work would wait in a queue. The estimate is the number of waiting jobs, times the recent mean
//! interval between two departures. (PIE, RFC 8033, also measures the rate of departures.) So work can be refused when
//! it arrives, and does not have to wait first. In: departures. Out: an estimate.

use std::time::{Duration, Instant};

/// The weight of one new interval in the mean.
const GAIN: f64 = 0.125;
/// The estimate is too old if no interval was measured for this many times the mean interval. Without this rule, one
/// much too long interval, for example after a pause of the machine, would cause all new work to be refused. Then no
/// other interval would ever be measured.
const OLD_INTERVALS: f64 = 4.0;
/// The shortest and the longest time after which an estimate is too old, in seconds.
const OLD_SECONDS: (f64, f64) = (1.0, 30.0);

/// The intervals between departures from a queue while it is not empty.
#[derive(Debug, Default)]
pub struct Drain {
    /// The time of the last departure after which other jobs were still waiting.
    last: Option<Instant>,
    /// The mean interval, in seconds. It stays valid for [`OLD_INTERVALS`] times its length after the last measurement,
    /// but for at least 1 and at most 30 seconds ([`OLD_SECONDS`]), even if the queue becomes empty.
    interval: f64,
    /// The time at which the last interval was measured.
    measured: Option<Instant>,
}

impl Drain {
    /// Records that a job has just left the queue, and that `left` jobs remain in it.
    pub fn departed(&mut self, now: Instant, left: usize) {
        if let Some(last) = self.last {
            let interval = (now - last).as_secs_f64();
            // Without an earlier estimate, the first interval is the best one.
            let gain = if self.is_known(now) { GAIN } else { 1.0 };
            self.interval += (interval - self.interval) * gain;
            self.measured = Some(now);
        }
        self.last = (left > 0).then_some(now);
    }

    /// Returns how long one more job would wait behind `waiting` others; zero if that is not known.
    pub fn wait(&self, now: Instant, waiting: usize) -> Duration {
        if self.is_known(now) { Duration::from_secs_f64(self.interval * waiting as f64) } else { Duration::ZERO }
    }

    fn is_known(&self, now: Instant) -> bool {
        let old = Duration::from_secs_f64((OLD_INTERVALS * self.interval).clamp(OLD_SECONDS.0, OLD_SECONDS.1));
        self.measured.is_some_and(|measured| now.saturating_duration_since(measured) <= old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_the_queue_times_the_interval_of_its_departures() {
        let (mut drain, start, ms) = (Drain::default(), Instant::now(), Duration::from_millis);
        let at = |time: u64| start + ms(time);
        assert_eq!(drain.wait(start, 1000), ms(0), "nothing is known yet");
        (0..100).for_each(|number| drain.departed(at(10 * number), 5));
        assert!(drain.wait(at(1000), 8).abs_diff(ms(80)) < ms(1), "{:?}", drain.wait(at(1000), 8));
        // The queue was empty in between, so this is not an interval.
        drain.departed(at(1000), 0);
        drain.departed(at(1500), 5);
        assert!(drain.wait(at(1500), 8).abs_diff(ms(80)) < ms(1), "{:?}", drain.wait(at(1500), 8));
        (1..100).for_each(|number| drain.departed(at(1500 + 30 * number), 5));
        assert!(drain.wait(at(5000), 8).abs_diff(ms(240)) < ms(1), "{:?}", drain.wait(at(5000), 8));
    }

    #[test]
    fn an_interval_that_was_too_long_is_forgotten() {
        let (mut drain, start, ms) = (Drain::default(), Instant::now(), Duration::from_millis);
        let at = |time: u64| start + ms(time);
        drain.departed(at(0), 1);
        drain.departed(at(2000), 0);
        assert_eq!(drain.wait(at(9000), 1), ms(2000), "that may be how slow it is");
        assert_eq!(drain.wait(at(11_000), 1), ms(0));
        [11_000, 11_010].into_iter().for_each(|time| drain.departed(at(time), 1));
        let expected = drain.wait(at(11_010), 1);
        assert!(expected < ms(2000), "{expected:?}");
        drain.departed(at(11_020), 0);
        [0, 3_600_000].into_iter().for_each(|time| drain.departed(at(20_000 + time), 1));
        assert_eq!(drain.wait(at(3_651_000), 1), ms(0), "whatever it was");
    }
}
