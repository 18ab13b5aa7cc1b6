//! Waits for a condition that becomes true in the background.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(5);

/// Waits for at most a minute until `holds` is true.
pub fn until(claim: &str, holds: impl FnMut() -> bool) {
    until_within(Duration::from_secs(60), claim, holds);
}

/// Waits for at most `patience` until `holds` is true. `holds` is called again and again. Returns how long that took.
pub fn until_within(patience: Duration, claim: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience, "not within {patience:?}: {claim}");
        std::thread::sleep(PAUSE);
    }
    begun.elapsed()
}
