//! Estimates how long new work would wait in a queue: the number of those that wait, times the interval at which the
//! queue has lately let one go (after PIE, RFC 8033, which measures the rate of departures too). So work can be refused
//! at once when it comes, instead of after it has waited. In: departures. Out: an estimate.

use std::time::{Duration, Instant};

/// One new interval changes the estimate by this part.
const GAIN: f64 = 0.125;

/// The intervals between departures from a queue while it is not empty.
#[derive(Debug, Default)]
pub struct Drain {
    /// The last departure that left others behind.
    last: Option<Instant>,
    /// The mean interval, in seconds. It stays from one run to the next.
    interval: f64,
}

impl Drain {
    /// Notes that one left the queue now, and that `left` remain.
    pub fn departed(&mut self, now: Instant, left: usize) {
        if let Some(last) = self.last {
            let interval = (now - last).as_secs_f64();
            // The first interval is as good a guess as there is.
            let gain = if self.interval == 0.0 { 1.0 } else { GAIN };
            self.interval += (interval - self.interval) * gain;
        }
        self.last = (left > 0).then_some(now);
    }

    /// Returns how long one more would wait behind `waiting` others.
    pub fn wait(&self, waiting: usize) -> Duration {
        Duration::from_secs_f64(self.interval * waiting as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_the_queue_times_the_interval_of_its_departures() {
        let (mut drain, start, ms) = (Drain::default(), Instant::now(), Duration::from_millis);
        assert_eq!(drain.wait(1000), ms(0), "nothing is known yet");
        (0..100).for_each(|at| drain.departed(start + ms(10 * at), 5));
        assert!(drain.wait(8).abs_diff(ms(80)) < ms(1), "{:?}", drain.wait(8));
        // The queue was empty meanwhile, so this is no interval.
        drain.departed(start + ms(1000), 0);
        drain.departed(start + ms(60_000), 5);
        assert!(drain.wait(8).abs_diff(ms(80)) < ms(1), "{:?}", drain.wait(8));
        (1..100).for_each(|at| drain.departed(start + ms(60_000 + 30 * at), 5));
        assert!(drain.wait(8).abs_diff(ms(240)) < ms(1), "{:?}", drain.wait(8));
    }
}
