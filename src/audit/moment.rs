//! A moment as people write it: a time, a date, or how long ago.

use jiff::{SignedDuration, Timestamp};

/// The forms of a moment, for errors.
pub const MOMENT_FORMS: &str =
    "must be a time such as 2026-11-23T21:00:00Z, a date, or a time before now such as 90s, 30m, 2h or 7d";

/// Reads a time such as `2026-11-23T21:00:00Z`, a date such as `2026-11-23`, or a time before now such as `90s`, `30m`,
/// `2h` or `7d`. Returns `None` for any other text.
pub fn moment(text: &str) -> Option<Timestamp> {
    before(text, Timestamp::now())
}

fn before(text: &str, now: Timestamp) -> Option<Timestamp> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    for (unit, seconds) in units {
        if let Some(count) = text.strip_suffix(unit).and_then(|count| count.parse::<u32>().ok()) {
            return now.checked_sub(SignedDuration::from_secs(i64::from(count) * seconds)).ok();
        }
    }
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_dates_or_durations_ago() {
        let now: Timestamp = "2026-11-23T21:00:00Z".parse().unwrap();
        let read = |text| before(text, now).map(|at| at.to_string());
        assert_eq!(read("2h").as_deref(), Some("2026-11-23T19:00:00Z"));
        assert_eq!(read("1d").as_deref(), Some("2026-11-22T21:00:00Z"));
        assert_eq!(read("90s").as_deref(), Some("2026-11-23T20:58:30Z"));
        assert_eq!(read("2026-11-20").as_deref(), Some("2026-11-20T00:00:00Z"));
        assert_eq!(read("2026-11-20T10:00:00+01:00").as_deref(), Some("2026-11-20T09:00:00Z"));
        for text in ["", "h", "-2h", "2 h", "yesterday", "2026-13-01", "4294967295d"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
