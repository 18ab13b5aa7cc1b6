//! Decides when the server gives up on answering a request: at the request's deadline, or when the sender loses the
//! right to make the request.
//! Both the body and the answer must be ready in time. A body that streams in for an hour postpones the deadline as
//! long as bytes arrive.

use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The deadline of a request. The layer that enforces the deadline shares it with the code that reads the body.
/// Arriving bytes of the body postpone the deadline.
pub struct Deadline {
    at: Mutex<Instant>,
    after: Duration,
    began: std::time::Instant,
}

/// The reason why a request is given up.
#[derive(Debug, PartialEq, Eq)]
pub enum GivenUp<R> {
    /// The deadline has passed.
    Late,
    /// The sender may no longer make the request.
    Revoked(R),
}

/// The interval at which the sender's right to make the request is checked.
const LOOK: Duration = Duration::from_secs(1);

impl Deadline {
    /// Makes a deadline at `after` from now. Postponing sets the deadline to `after` from the moment of the
    /// postponement.
    pub fn after(after: Duration) -> Self {
        let began = Instant::now();
        Self { at: Mutex::new(began + after), after, began: began.into_std() }
    }

    /// Returns the time at which the request began.
    pub fn began(&self) -> std::time::Instant {
        self.began
    }

    /// Postpones the deadline, because bytes have arrived.
    pub fn put_off(&self) {
        *self.at.lock() = Instant::now() + self.after;
    }

    /// Returns the result of `work`, if it is ready in time. Calls `revoked` once a second, and gives up when `revoked`
    /// returns a reason. Most requests are answered before the first call. The caller pins the work, because an async
    /// function that pins its own argument stores it twice.
    pub async fn hold<T, R>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
        revoked: impl Fn() -> Option<R>,
    ) -> Result<T, GivenUp<R>> {
        loop {
            let look = (*self.at.lock()).min(Instant::now() + LOOK);
            if let Ok(made) = tokio::time::timeout_at(look, &mut work).await {
                return Ok(made);
            }
            if let Some(why) = revoked() {
                return Err(GivenUp::Revoked(why));
            }
            if *self.at.lock() <= Instant::now() {
                return Err(GivenUp::Late);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    fn valid() -> Option<()> {
        None
    }

    #[tokio::test]
    async fn what_is_revoked_is_given_up_long_before_its_deadline() {
        let deadline = Deadline::after(1000 * LOOK);
        let begun = Instant::now();
        let revoked = || (begun.elapsed() > LOOK).then_some("revoked");
        assert_eq!(deadline.hold(pin!(std::future::pending::<()>()), revoked).await, Err(GivenUp::Revoked("revoked")));
    }

    #[tokio::test]
    async fn what_stands_still_is_given_up_and_what_moves_is_not() {
        let deadline = Deadline::after(20 * TICK);
        assert_eq!(deadline.hold(pin!(std::future::pending::<()>()), valid).await, Err(GivenUp::Late));
        let deadline = Deadline::after(20 * TICK);
        let moving = async {
            for _ in 0..30 {
                tokio::time::sleep(TICK).await;
                deadline.put_off();
            }
        };
        assert_eq!(deadline.hold(pin!(moving), valid).await, Ok(()));
    }
}
