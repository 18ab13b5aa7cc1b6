//! An argument such as `60s` -> a duration.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a whole number with its unit, such as 500ms, 60s or 30d.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, unit_ms)| *unit_ms);
    let ms = number.parse::<u64>().ok().zip(unit_ms).and_then(|(number, unit_ms)| number.checked_mul(unit_ms));
    let wanted = || "must be a whole number with ms, s, m, h or d, such as 60s".to_owned();
    ms.map(Duration::from_millis).ok_or_else(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, seconds) in [("500ms", 0.5), ("60s", 60.0), ("5m", 300.0), ("2h", 7200.0), ("30d", 2_592_000.0)] {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds);
        }
        for text in ["", "5", "s", "5 s", "-1s", "1.5s", "5w", "99999999999999999999s", "9999999999999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
