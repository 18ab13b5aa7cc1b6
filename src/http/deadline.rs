//! When a request's answer is given up.
//! A body that comes in one piece has its time, and so has the answer; one that streams in for an hour puts the moment
//! off for as long as it moves on.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The moment, shared between the layer that keeps to it and the body that puts it off.
#[derive(Clone)]
pub struct Deadline {
    at: Arc<Mutex<Instant>>,
    after: Duration,
}

/// The moment has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed;

impl Deadline {
    /// In this long from now, and from each time it is put off.
    pub fn after(after: Duration) -> Self {
        Self { at: Arc::new(Mutex::new(Instant::now() + after)), after }
    }

    /// Something has moved on.
    pub fn put_off(&self) {
        *self.at.lock() = Instant::now() + self.after;
    }

    /// What `work` makes, if it does so in time.
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
