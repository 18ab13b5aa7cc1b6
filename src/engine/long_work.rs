//! Runs long work off the threads that serve requests.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore, oneshot};

use crate::cpu::{Nice, give_way};
use crate::types::retry_after;
use crate::verdicts::{CollectionError, Result};

/// The maximum number of requests that wait for their turn.
const WAITING_MAX: usize = 4;

/// Turns for the long work of one collection. Only a few requests may wait for a turn, because each waiting request
/// occupies one of the places for concurrent requests.
pub(crate) struct Turns {
    turn: Arc<Mutex<()>>,
    waiting: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turn: Arc::default(), waiting: Semaphore::new(WAITING_MAX) }
    }
}

impl Turns {
    /// Waits for a turn. Fails if too many requests already wait.
    pub(crate) async fn take(&self) -> Result<OwnedMutexGuard<()>> {
        let _waiting = self.waiting.try_acquire().map_err(|_| CollectionError::Overloaded {
            detail: "too many requests wait to read all of this collection; try again later".into(),
            retry_after: retry_after::SOON,
        })?;
        Ok(Arc::clone(&self.turn).lock_owned().await)
    }
}

/// Runs work on a new thread, because the work may take long and the few blocking threads must stay free for requests.
/// The threads that serve connections have priority over the new thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (done, outcome) = oneshot::channel();
    let thread = std::thread::Builder::new().name("hapax-long".into()).spawn(move || {
        give_way(Nice::Streams);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // The receiver is gone if the request was cancelled.
        drop(done.send(caught));
    });
    thread.map_err(|error| CollectionError::Store(format!("cannot start a thread for long work: {error}")))?;
    let outcome = outcome.await.expect("the thread sends before it ends, even when it panics");
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the result of a task. If the task panicked, the panic continues on the waiting task.
pub(crate) fn finished<T>(joined: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    joined.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic()))
}

/// Runs work on a blocking thread, because the work reads the disk.
pub(crate) async fn beside<P, T>(part: &Arc<P>, work: impl FnOnce(&P) -> Result<T> + Send + 'static) -> Result<T>
where
    P: Send + Sync + 'static,
    T: Send + 'static,
{
    let part = Arc::clone(part);
    finished(tokio::task::spawn_blocking(move || work(&part)).await)
}
