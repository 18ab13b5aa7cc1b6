//! The thread that goes round all open collections of a data directory and has each take its next step.
//! It rests as long as it worked, so that expiry takes at most half of what one thread can make the disk do.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::super::Collection;

/// The rest where no collection has anything to do.
const IDLE: Duration = Duration::from_millis(200);
/// The least rest between two steps.
const REST_MIN: Duration = Duration::from_millis(1);

/// The sweeper of one data directory. Dropped without [`stop`](Self::stop), it ends after the step it is at.
pub(in crate::collection) struct Sweeper {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Told once.
#[derive(Default)]
pub(in crate::collection) struct Stop {
    told: Mutex<bool>,
    bell: Condvar,
}

impl Sweeper {
    /// Goes round what `collections` gives, asked anew each time; `None` ends it.
    pub(in crate::collection) fn start(
        collections: impl Fn() -> Option<Vec<Arc<Collection>>> + Send + 'static,
    ) -> Self {
        let stop = Arc::<Stop>::default();
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("hapax-expiry".into()).spawn(move || {
            while let Some(collections) = collections() {
                let started = Instant::now();
                let mut busy = false;
                for collection in collections {
                    if told.within(Duration::ZERO) {
                        return;
                    }
                    busy |= collection.sweep();
                }
                if told.within(if busy { started.elapsed().clamp(REST_MIN, IDLE) } else { IDLE }) {
                    return;
                }
            }
        });
        Self { stop, thread: Mutex::new(Some(thread.expect("the system has room for one thread more"))) }
    }

    /// Begins no further step. Call it before the collections are closed.
    pub(in crate::collection) fn stop(&self) {
        self.stop.tell();
    }

    /// Waits for the step under way; blocking. Call it once the collections are closed, so that nothing holds it up.
    pub(in crate::collection) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread that deletes what has expired panicked");
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stop {
    /// Tells it.
    pub(in crate::collection) fn tell(&self) {
        *self.told.lock() = true;
        self.bell.notify_all();
    }

    /// Whether it was told, or is within this time.
    pub(in crate::collection) fn within(&self, wait: Duration) -> bool {
        let mut told = self.told.lock();
        if !*told && !wait.is_zero() {
            self.bell.wait_for(&mut told, wait);
        }
        *told
    }
}
