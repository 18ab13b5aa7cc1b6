//! A background thread that visits all open collections of a data directory again and again, for example for expiry
//! (`expiry.rs`) or for the scrub (`scrub.rs`). Threads that serve requests have priority over it.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::cpu::{Nice, give_way};

/// The thread. If it is dropped without [`stop`](Self::stop), it ends after its current step.
pub(crate) struct Rounds {
    name: &'static str,
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
pub(crate) struct Stop {
    told: Mutex<bool>,
    bell: Condvar,
}

impl Rounds {
    /// Starts the thread. In each round, it gets parts of the open collections from `open`, calls `round` with them,
    /// and pauses for the time that `round` returns. It ends when `open` returns `None`.
    pub(super) fn start<P>(
        name: &'static str,
        open: impl Fn() -> Option<Vec<P>> + Send + 'static,
        mut round: impl FnMut(Vec<P>, &Stop) -> Duration + Send + 'static,
    ) -> Self {
        let stop = Arc::<Stop>::default();
        let told = Arc::clone(&stop);
        let run = move || {
            give_way(Nice::Streams);
            while let Some(collections) = open() {
                let rest = round(collections, &told);
                if told.within(rest) {
                    return;
                }
            }
        };
        let thread = Builder::new().name(name.into()).spawn(run).expect("the system can start one more thread");
        Self { name, stop, thread: Mutex::new(Some(thread)) }
    }

    /// Prevents further steps of the thread.
    pub(crate) fn stop(&self) {
        self.stop.tell();
    }

    /// Waits for the end of the current step. Blocks the calling thread.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!(thread = self.name, "a background thread panicked");
        }
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stop {
    fn tell(&self) {
        *self.told.lock() = true;
        self.bell.notify_all();
    }

    /// Waits for `wait` at most, and returns whether the thread has been told to stop.
    pub(crate) fn within(&self, wait: Duration) -> bool {
        let mut told = self.told.lock();
        if !*told && !wait.is_zero() {
            self.bell.wait_for(&mut told, wait);
        }
        *told
    }
}
