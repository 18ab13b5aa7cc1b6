//! When the server gives up on answering a request.
//! The body must arrive in time, and so must the answer. A body that streams in for an hour postpones the deadline as
//! long as bytes arrive.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The deadline. The layer that enforces it shares it with the body that postpones it.
#[derive(Clone)]
pub struct Deadline {
    at: Arc<Mutex<Instant>>,
    after: Duration,
}

/// The deadline has passed.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed;

impl Deadline {
    /// A deadline `after` from now. Postponing it sets it to `after` from that moment.
    pub fn after(after: Duration) -> Self {
        Self { at: Arc::new(Mutex::new(Instant::now() + after)), after }
    }

    /// Postpones the deadline, because bytes have arrived.
    pub fn put_off(&self) {
        *self.at.lock() = Instant::now() + self.after;
    }

    /// Returns the result of `work`, if it is ready in time.
    pub async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<T, Passed> {
        let mut work = std::pin::pin!(work);
        loop {
            let at = *self.at.lock();
            match tokio::time::timeout_at(at, &mut work).await {
                Ok(made) => return Ok(made),
                Err(_) if *self.at.lock() > at => {}
                Err(_) => return Err(Passed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn what_stands_still_is_given_up_and_what_moves_is_not() {
        let deadline = Deadline::after(20 * TICK);
        assert_eq!(deadline.hold(std::future::pending::<()>()).await, Err(Passed));
        let deadline = Deadline::after(20 * TICK);
        let moving = async {
            for _ in 0..30 {
                tokio::time::sleep(TICK).await;
                deadline.put_off();
            }
        };
        assert_eq!(deadline.hold(moving).await, Ok(()));
    }
}
