//! Single values on the wire.

use serde_json::value::RawValue;

use crate::types::{Metadata, TimestampMs};

/// RFC 3339, UTC.
pub(super) fn timestamp(at: TimestampMs) -> String {
    // Out of jiff's ±9999 years is no time a server has seen; the epoch is a visible sign of it.
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// A ratio with at most six decimals: more would pretend a precision that no estimate has.
pub fn ratio(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Metadata as it was given: already JSON.
pub(super) fn metadata(metadata: Metadata) -> Box<RawValue> {
    // Only compact() makes metadata from outside, and it takes nothing but JSON.
    RawValue::from_string(metadata.as_str().to_owned()).expect("stored metadata is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc3339_in_utc() {
        assert_eq!(timestamp(TimestampMs(1_795_168_800_000)), "2026-11-20T10:00:00Z");
        assert_eq!(timestamp(TimestampMs(1_795_168_800_250)), "2026-11-20T10:00:00.25Z");
    }

    #[test]
    fn ratios_have_six_decimals() {
        assert_eq!(ratio(0.914_062_499), 0.914_062);
        assert_eq!(ratio(1.0), 1.0);
    }
}
