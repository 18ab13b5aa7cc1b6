//! Measures how long a task waits for a thread. Checks run to their end on the threads that serve connections. If there
//! is too much to do, requests wait in the queues of these threads, before any place is taken or any counter rises.
//! In: a task. Out: the same task. While the task runs, [`waited`] returns how long ago the task became ready.
//! [`has_time_to_refuse`] tells whether the thread of the task has time for a refusal. Knows nothing of requests.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use hyper::rt::Executor;

/// The most time that a thread may spend on refusals without other work between them, in nanoseconds.
const CREDIT_MAX: i64 = 5_000_000;

thread_local! {
    /// The time that this thread may spend on refusals, in nanoseconds. Other work adds to this time.
    static CREDIT: Cell<i64> = const { Cell::new(CREDIT_MAX) };
    /// Whether the current task has refused a request.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    /// The time at which the current task became ready to run.
    static READY_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns the time at which the current task became ready to run; `None` outside of [`Timed`].
fn ready_since() -> Option<Instant> {
    READY_SINCE.get()
}

/// Returns how long ago the current task became ready to run. This includes the time for which it has been running.
pub(super) fn waited() -> Duration {
    ready_since().map_or(Duration::ZERO, |since| since.elapsed())
}

/// Whether this thread has time for a refusal: at most half of its time goes into refusals. Otherwise, clients that
/// immediately try again could keep the server so busy with refusals that it answers no request.
pub(super) fn has_time_to_refuse() -> bool {
    CREDIT.get() > 0
}

/// Counts the time of the current task as time spent on a refusal.
pub(super) fn refuses() {
    REFUSED.set(true);
}

/// Counts the time of a task that has just run.
fn settle(spent: Duration) {
    let spent = (spent.as_nanos() as i64).min(CREDIT_MAX);
    let gained = if REFUSED.replace(false) { -spent } else { spent };
    CREDIT.set((CREDIT.get() + gained).clamp(-CREDIT_MAX, CREDIT_MAX));
}

/// A task whose waits are timed.
pub(super) struct Timed<F> {
    work: Pin<Box<F>>,
    ready: Arc<Ready>,
    waker: Waker,
}

/// The time at which a task became ready.
struct Ready {
    made: Instant,
    /// When the task became ready: the nanoseconds after `made`, plus one. 0 means that the task is not ready.
    since: AtomicU64,
    waker: AtomicWaker,
}

impl<F> Timed<F> {
    /// Makes a task that counts as ready from the time at which the current task became ready.
    pub(super) fn new(work: F) -> Self {
        Self::ready_since(work, ready_since().unwrap_or_else(Instant::now))
    }

    pub(super) fn ready_since(work: F, made: Instant) -> Self {
        let ready = Arc::new(Ready { made, since: AtomicU64::new(1), waker: AtomicWaker::new() });
        Self { work: Box::pin(work), waker: Arc::clone(&ready).into(), ready }
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.ready.waker.register(cx.waker());
        let outer = READY_SINCE.replace(Some(self.ready.take()));
        let _restored = Restored(outer);
        let (begun, Self { work, waker, .. }) = (Instant::now(), &mut *self);
        let made = work.as_mut().poll(&mut Context::from_waker(waker));
        settle(begun.elapsed());
        made
    }
}

/// Restores the `READY_SINCE` of the outer task, even after a panic.
struct Restored(Option<Instant>);

impl Drop for Restored {
    fn drop(&mut self) {
        READY_SINCE.set(self.0);
    }
}

impl Ready {
    /// Returns the time at which the task became ready, and marks the task as not ready.
    fn take(&self) -> Instant {
        match self.since.swap(0, Ordering::AcqRel) {
            0 => Instant::now(),
            since => self.made + Duration::from_nanos(since - 1),
        }
    }
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.since.load(Ordering::Relaxed) == 0 {
            let now = self.made.elapsed().as_nanos() as u64 + 1;
            // The first of several wakes counts.
            _ = self.since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.waker.wake();
    }
}

/// Spawns [`Timed`] tasks: the requests of an HTTP/2 connection.
#[derive(Clone, Copy)]
pub(super) struct TimedExecutor;

impl<F> Executor<F> for TimedExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, work: F) {
        tokio::spawn(Timed::new(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_task_that_was_ready_knows_how_long_it_waited() {
        assert_eq!(waited(), Duration::ZERO, "outside");
        let (wake, woken) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(Timed::new(async {
            woken.await.unwrap();
            waited()
        }));
        tokio::task::yield_now().await;
        std::thread::sleep(LONG);
        // Until now, the task was not ready.
        wake.send(()).unwrap();
        let asked = Instant::now();
        std::thread::sleep(LONG);
        let waited = task.await.unwrap();
        assert!(waited >= LONG && waited <= asked.elapsed() + LONG / 2, "{waited:?}");
    }

    #[test]
    fn refusals_take_half_of_the_time_at_most() {
        // Runs on a separate thread, which begins with full credit.
        let refusals = |work: Duration, refusal: Duration| {
            (0..1000).fold((Duration::ZERO, Duration::ZERO), |(worked, refused), _| match has_time_to_refuse() {
                true => {
                    refuses();
                    settle(refusal);
                    (worked, refused + refusal)
                }
                false => {
                    settle(work);
                    (worked + work, refused)
                }
            })
        };
        let (worked, refused) = std::thread::spawn(move || refusals(LONG / 10, LONG / 100)).join().unwrap();
        assert!(refused > worked / 2 && refused < worked + LONG, "{refused:?} beside {worked:?}");
    }

    #[tokio::test]
    async fn a_task_of_a_task_has_waited_as_long_as_both() {
        let since = Instant::now().checked_sub(LONG).expect("the clock began earlier");
        let inner = Timed::ready_since(async { Timed::new(async { waited() }).await }, since).await;
        assert!(inner >= LONG);
        assert_eq!(waited(), Duration::ZERO);
    }
}
