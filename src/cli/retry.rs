//! Repeats a request to a server that is busy or restarts. Decides which statuses are tried again, when, and for how
//! long.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::ClientError;

/// How long a command waits for a server if no option says otherwise.
const USUAL: Duration = Duration::from_secs(60);
/// The first pause before a request is repeated. Each further pause is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause, unless the server asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The largest random part that is added to a pause, as a share of the pause. So clients that were refused at the same
/// time try again at different times.
const RANDOM_PART: f64 = 0.5;
/// How often a wait checks whether it was interrupted.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Returns whether the same request may succeed a little later.
pub(super) fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Broken { .. } => true,
        // The reason may be a quota, a proxy whose server restarts, or a full queue.
        ClientError::Refused { status, .. } | ClientError::Declined { status, .. } => {
            matches!(status, 429 | 502 | 503 | 504)
        }
        ClientError::Url { .. }
        | ClientError::KeyFile { .. }
        | ClientError::Key
        | ClientError::Trust(_)
        | ClientError::Handshake { .. } => false,
    }
}

/// Returns whether a refused line of a bulk request may succeed a little later.
pub(super) fn line_may_pass(status: u16) -> bool {
    // The reason may be a slow client, a quota, or a full queue.
    matches!(status, 408 | 429 | 503)
}

/// The pauses between requests that fail one after another, and when to give up.
pub struct Patience<'a> {
    /// The longest time that the requests and the pauses may take together.
    max: Duration,
    since: Instant,
    pause: Duration,
    interrupted: Option<&'a AtomicBool>,
}

impl<'a> Patience<'a> {
    /// A pause ends early once `interrupted` is true.
    pub(super) fn new(max: Duration, interrupted: Option<&'a AtomicBool>) -> Self {
        Self { max, since: Instant::now(), pause: PAUSE_FIRST, interrupted }
    }

    /// The patience of a command that has no option for it.
    pub(super) fn usual() -> Self {
        Self::new(USUAL, None)
    }

    /// Returns whether the patience is used up or interrupted. If so, the next attempt is the last one.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero() || self.is_interrupted()
    }

    /// Waits before the next request: for `wanted` if the server asked for that time, else for the next pause. The wait
    /// ends early when the patience is over.
    pub(super) fn wait(&mut self, wanted: Option<Duration>) {
        let mut left = self.next_pause(wanted).min(self.left());
        while !left.is_zero() && !self.is_interrupted() {
            thread::sleep(left.min(LOOK_EVERY));
            left = left.saturating_sub(LOOK_EVERY);
        }
    }

    /// Resets the time and the pause to their first values, because the server has answered.
    pub(super) fn renew(&mut self) {
        (self.since, self.pause) = (Instant::now(), PAUSE_FIRST);
    }

    fn next_pause(&mut self, wanted: Option<Duration>) -> Duration {
        let pause = wanted.unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        // The random keys of a hash table are random enough to spread the clients' requests over time.
        let random = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
        pause.saturating_add(pause.min(self.max).mul_f64(RANDOM_PART * random))
    }

    fn left(&self) -> Duration {
        self.max.saturating_sub(self.since.elapsed())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed))
    }
}

/// Returns the first success, or the first error that a repetition cannot change.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut patience = Patience::usual();
    loop {
        let last = patience.is_over();
        match ask() {
            Err(error) if may_pass(&error) && !last => {
                patience.wait(if let ClientError::Refused { retry_after, .. } = error { retry_after } else { None });
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_have_a_random_part() {
        let mut patience = Patience::new(Duration::from_secs(3600), None);
        let pauses: Vec<_> = (0..10).map(|_| patience.next_pause(None).as_millis()).collect();
        for (pause, least) in pauses.iter().zip([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]) {
            assert!((least..=least * 3 / 2).contains(pause), "{pauses:?}");
        }
        assert!(pauses.iter().any(|pause| pause % 100 != 0), "{pauses:?}");
        let wanted = Duration::from_secs(60);
        assert!((60..=90).contains(&patience.next_pause(Some(wanted)).as_secs()), "the server asks for more");
        patience.renew();
        assert!(patience.next_pause(None) < Duration::from_millis(200));
        patience.next_pause(Some(Duration::MAX));
    }

    // This test is for a bug: only the pauses counted, and not the time of the requests. So a server that accepted
    // requests but never answered cost minutes for each request.
    #[test]
    fn patience_ends_during_a_request_too() {
        let max = Duration::from_millis(50);
        let mut patience = Patience::new(max, None);
        thread::sleep(max);
        assert!(patience.is_over());
        patience.renew();
        let begun = Instant::now();
        patience.wait(Some(Duration::from_secs(3600)));
        assert!(
            patience.is_over() && begun.elapsed() < Duration::from_secs(60),
            "no pause is longer than what is left"
        );
    }

    #[test]
    fn an_interruption_ends_a_pause() {
        let interrupted = AtomicBool::new(true);
        let mut patience = Patience::new(Duration::from_secs(3600), Some(&interrupted));
        patience.wait(None);
        assert!(patience.is_over());
    }
}
