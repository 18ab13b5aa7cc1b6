//! Repeats a request to a server that is busy or restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::client::ClientError;

/// How long a command waits for a server, if nothing else is said.
const USUAL: Duration = Duration::from_secs(60);
/// First pause before a request is repeated. It doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest pause, even if the server asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a pause looks whether it is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The pauses between requests that fail one after another.
pub struct Patience<'a> {
    /// How long they may be together.
    max: Duration,
    waited: Duration,
    pause: Duration,
    interrupted: Option<&'a AtomicBool>,
}

impl<'a> Patience<'a> {
    /// A pause ends early once `interrupted` is true.
    pub(super) fn new(max: Duration, interrupted: Option<&'a AtomicBool>) -> Self {
        Self { max, waited: Duration::ZERO, pause: PAUSE_FIRST, interrupted }
    }

    /// The patience of a command that has no option for it.
    pub(super) fn usual() -> Self {
        Self::new(USUAL, None)
    }

    /// Returns whether the next request is the last one.
    pub(super) fn is_over(&self) -> bool {
        self.waited >= self.max || self.is_interrupted()
    }

    /// Waits before the next request: as long as the server wants, within limits.
    pub(super) fn wait(&mut self, wanted: Option<Duration>) {
        let pause = wanted.unwrap_or(self.pause).min(PAUSE_MAX).min(self.max.saturating_sub(self.waited));
        self.waited += pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        let mut left = pause;
        while !left.is_zero() && !self.is_interrupted() {
            thread::sleep(left.min(LOOK_EVERY));
            left = left.saturating_sub(LOOK_EVERY);
        }
    }

    /// Starts from the beginning, because something was answered.
    pub(super) fn renew(&mut self) {
        (self.waited, self.pause) = (Duration::ZERO, PAUSE_FIRST);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed))
    }
}

/// Returns the first answer, or the first error that a repetition cannot change.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut patience = Patience::usual();
    loop {
        match ask() {
            Err(error) if error.is_passing() && !patience.is_over() => {
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
    fn pauses_double_and_end() {
        let mut patience = Patience::new(Duration::from_millis(350), None);
        let mut pauses = Vec::new();
        while !patience.is_over() {
            let before = patience.waited;
            patience.wait(None);
            pauses.push((patience.waited - before).as_millis());
        }
        assert_eq!(pauses, [100, 200, 50]);
        patience.renew();
        assert!(!patience.is_over());
        patience.wait(Some(Duration::from_secs(3600)));
        assert!(patience.is_over(), "no pause is longer than what is left");
    }

    #[test]
    fn an_interruption_ends_a_pause() {
        let interrupted = AtomicBool::new(true);
        let mut patience = Patience::new(Duration::from_secs(3600), Some(&interrupted));
        patience.wait(None);
        assert!(patience.is_over());
    }
}
