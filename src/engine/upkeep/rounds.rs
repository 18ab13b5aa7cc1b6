//! A thread that goes round all open collections of a data directory for as long as it is open: what expires
//! (`expiry.rs`), what is read again (`scrub.rs`).

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The thread. Dropped without [`stop`](Self::stop), it ends after the step it is at.
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
    /// Has `round` do some of its work for the parts of open collections that `open` gives, asked again each time, and
    /// rest for the time that it answers. Ends with `open`'s `None`.
    pub(super) fn start<P>(
        name: &'static str,
        open: impl Fn() -> Option<Vec<P>> + Send + 'static,
        mut round: impl FnMut(Vec<P>, &Stop) -> Duration + Send + 'static,
    ) -> Self {
        let stop = Arc::<Stop>::default();
        let told = Arc::clone(&stop);
        let run = move || {
            while let Some(collections) = open() {
                let rest = round(collections, &told);
                if told.within(rest) {
                    return;
                }
            }
        };
        let thread = Builder::new().name(name.into()).spawn(run).expect("the system has room for one thread more");
        Self { name, stop, thread: Mutex::new(Some(thread)) }
    }

    /// Begins no further step.
    pub(crate) fn stop(&self) {
        self.stop.tell();
    }

    /// Waits for the step under way; blocking.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!(thread = self.name, "a thread in the background panicked");
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

    /// Whether it was told, or is within this time.
    pub(crate) fn within(&self, wait: Duration) -> bool {
        let mut told = self.told.lock();
        if !*told && !wait.is_zero() {
            self.bell.wait_for(&mut told, wait);
        }
        *told
    }
}
