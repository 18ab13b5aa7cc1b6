//! When a document expires: a collection's `ttl` after it was last seen.

use std::time::Duration;

use super::places::TimestampMs;

/// Returns when a document expires if it was last seen at `last_seen`.
pub fn expires_at(last_seen: TimestampMs, ttl: Duration) -> TimestampMs {
    TimestampMs(last_seen.0.saturating_add(ttl.as_millis() as i64))
}

/// Returns how long ago a document that was last seen at `last_seen` expired; zero if it has not expired yet.
pub fn overdue(last_seen: TimestampMs, now: TimestampMs, ttl: Duration) -> Duration {
    Duration::from_millis(now.0.saturating_sub(expires_at(last_seen, ttl).0).max(0) as u64)
}
