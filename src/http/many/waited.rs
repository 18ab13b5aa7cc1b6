//! A future -> how long it has waited to be woken. A stream is not polled while its client reads nothing, or while an
//! earlier document waits. The client is not to blame for that time: its bytes may have arrived.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A future, and the time that it has waited.
pub(super) struct Waited<F> {
    future: F,
    woken: Arc<Woken>,
    /// When the future was last found pending.
    since: Option<Instant>,
    total: Duration,
}

/// The time at which the future was first woken since it began to wait.
#[derive(Default)]
struct Woken {
    at: Mutex<Option<Instant>>,
    waker: AtomicWaker,
}

impl<F> Waited<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future, woken: Arc::default(), since: None, total: Duration::ZERO }
    }

    pub(super) fn total(&self) -> Duration {
        self.total
    }
}

impl<F: Future + Unpin> Future for Waited<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if let Some(since) = this.since.take() {
            let until = this.woken.at.lock().take().unwrap_or_else(Instant::now);
            this.total += until.saturating_duration_since(since);
        }
        this.woken.waker.register(cx.waker());
        let waker = Waker::from(Arc::clone(&this.woken));
        let polled = Pin::new(&mut this.future).poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            this.since = Some(Instant::now());
        }
        polled
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.at.lock().get_or_insert_with(Instant::now);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_time_until_a_future_is_polled_again_does_not_count() {
        let begun = Instant::now();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut waited = Waited::new(receiver);
        assert!((&mut waited).now_or_never().is_none());
        let pause = Duration::from_millis(20);
        tokio::time::sleep(pause).await;
        sender.send(7).unwrap();
        let sent = begun.elapsed();
        tokio::time::sleep(pause).await;
        assert_eq!((&mut waited).await, Ok(7));
        assert!(waited.total() > pause / 2 && waited.total() <= sent, "{:?}", waited.total());
    }
}
