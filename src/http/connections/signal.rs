//! A signal to connections, which check it whenever they do something. Polling a cancellation token takes two locks, so
//! a signal has a flag in addition to its token. Knows nothing of the signal's meaning.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use tokio_util::sync::CancellationToken;

/// A signal that is given once.
#[derive(Clone, Default)]
pub(super) struct Signal {
    given: Arc<AtomicBool>,
    /// The flag of the parent signal.
    to_all: Arc<AtomicBool>,
    token: CancellationToken,
}

impl Signal {
    /// Returns a signal that can be given alone, and that is also given when its parent is given.
    pub(super) fn child(&self) -> Self {
        Self { given: Arc::default(), to_all: Arc::clone(&self.given), token: self.token.child_token() }
    }

    pub(super) fn give(&self) {
        self.given.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(super) fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire) || self.to_all.load(Ordering::Acquire)
    }

    /// Waits until the signal is given. Until then, only the first poll by a task takes locks.
    pub(super) async fn wait(&self) {
        let mut cancelled = pin!(self.token.cancelled());
        let mut registered: Option<Waker> = None;
        poll_fn(|cx| {
            let knows = registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if knows && !self.is_given() {
                return Poll::Pending;
            }
            registered = Some(cx.waker().clone());
            cancelled.as_mut().poll(cx)
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_signal_reaches_those_that_wait_for_it_and_their_children_and_no_others() {
        let all = Signal::default();
        let (one, other) = (all.child(), all.child());
        let [waits, still_waits] = [&one, &other].map(|signal| {
            let signal = signal.clone();
            tokio::spawn(async move {
                // The tasks that poll the signal have other work too.
                tokio::join!(signal.wait(), tokio::time::sleep(Duration::from_millis(5)));
            })
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        one.give();
        waits.await.unwrap();
        assert!(one.is_given() && !other.is_given() && !all.is_given());
        assert!(!still_waits.is_finished());
        all.give();
        still_waits.await.unwrap();
        assert!(other.is_given());
        all.child().wait().await;
    }

    #[tokio::test]
    async fn a_wait_goes_on_in_another_task() {
        let signal = Signal::default();
        let waiting = signal.clone();
        let mut wait = Box::pin(async move { waiting.wait().await });
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut wait).await.is_err());
        let moved = tokio::spawn(wait);
        tokio::time::sleep(Duration::from_millis(5)).await;
        signal.give();
        tokio::time::timeout(Duration::from_secs(60), moved).await.expect("it is woken").unwrap();
    }
}
