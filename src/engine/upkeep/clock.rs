//! Compares the clock of the machine with the time that has really passed. If the clock was set forward by mistake,
//! nothing is deleted for a while. In: both times. Out: whether the clock can be trusted.

use std::time::{Duration, Instant};

use crate::types::TimestampMs;

/// How long a clock is not trusted after it was set forward. If it is set back within this time, it is trusted again.
const DISTRUST: Duration = Duration::from_secs(600);

/// The last reading of the clock.
#[derive(Default)]
pub(super) struct Clock {
    last: Option<(Instant, TimestampMs)>,
    distrusted_until: Option<Instant>,
}

impl Clock {
    /// Notes that the clock shows `wall` now. Returns how far it was set forward since the last call, if that is more
    /// than `tolerated`.
    pub(super) fn note(&mut self, now: Instant, wall: TimestampMs, tolerated: Duration) -> Option<Duration> {
        let (then, before) = self.last.replace((now, wall))?;
        let passed = now.saturating_duration_since(then).as_millis() as i64;
        let (ahead, tolerated) = (wall.0 - before.0 - passed, tolerated.as_millis() as i64);
        if ahead < -tolerated {
            self.distrusted_until = None;
        }
        let ahead = u64::try_from(ahead).ok().filter(|_| ahead > tolerated)?;
        self.distrusted_until = Some(now + DISTRUST);
        Some(Duration::from_millis(ahead))
    }

    pub(super) fn is_trusted(&self, now: Instant) -> bool {
        self.distrusted_until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_forward_is_trusted_later_or_once_it_is_set_back() {
        let (start, second, minute) = (Instant::now(), Duration::from_secs(1), Duration::from_secs(60));
        let year = TimestampMs(365 * 24 * 3600 * 1000);
        let mut clock = Clock::default();
        let mut note = |after: Duration, wall: i64| {
            let now = start + after;
            (clock.note(now, TimestampMs(wall), minute), clock.is_trusted(now))
        };
        assert_eq!(note(Duration::ZERO, 1_000_000), (None, true));
        assert_eq!(note(second, 1_050_000), (None, true), "less than a minute");
        let ahead = Duration::from_millis(year.0 as u64);
        assert_eq!(note(2 * second, 1_051_000 + year.0), (Some(ahead), false));
        assert_eq!(note(3 * second, 1_052_000 + year.0), (None, false));
        assert_eq!(note(4 * second, 1_053_000), (None, true), "it was set back");
        assert_eq!(note(5 * second, 1_054_000 + year.0), (Some(ahead), false));
        assert_eq!(note(5 * second + DISTRUST, 1_054_000 + 600_000 + year.0), (None, true), "that may be the time");
    }
}
