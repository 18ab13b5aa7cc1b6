//! Repeats a request to a server that is busy or restarts.

use std::thread;
use std::time::Duration;

use super::client::ClientError;

/// Most attempts for one answer.
const ATTEMPTS_MAX: u32 = 10;
/// First pause before a request is repeated. It doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest pause, even if the server asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Returns the first answer, or the first error that a repetition cannot change.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..ATTEMPTS_MAX {
        match ask() {
            Err(error) if error.is_passing() => {
                let wanted = if let ClientError::Refused { retry_after, .. } = error { retry_after } else { None };
                thread::sleep(wanted.unwrap_or(pause).min(PAUSE_MAX));
                pause *= 2;
            }
            answer => return answer,
        }
    }
    ask()
}
