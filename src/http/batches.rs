//! The limit on how many batches are worked on at the same time. Further batches wait, first come, first served. A
//! batch that would wait too long is refused at once. Without this limit, a thousand batches would share the threads,
//! and all of them would be answered late.
//! In: a batch. Out: its place, or 503. Knows nothing of documents.

use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Counter;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Code, Problem};
use crate::cpu::Drain;

pub(super) struct Batches {
    places: Arc<Semaphore>,
    /// The number of batches that wait for a place, and how fast they get one.
    queue: Mutex<(usize, Drain)>,
    wait_max: Duration,
    /// Counts refusals.
    refused: Counter,
}

impl Batches {
    /// Allows several batches for each thread, so that the threads stay busy while some batches wait for the disk. A
    /// batch that would wait longer than `wait_max` is refused; if `wait_max` is zero, none is refused.
    pub(super) fn new(threads: usize, wait_max: Duration, refused: Counter) -> Self {
        let places = Arc::new(Semaphore::new(4 * threads));
        Self { places, queue: Mutex::default(), wait_max, refused }
    }

    /// Refuses a batch that would wait too long. Called before the batch's body is read.
    pub(super) fn admit(&self) -> Result<(), Problem> {
        let queue = self.queue.lock();
        if self.wait_max.is_zero() || queue.1.wait(Instant::now(), queue.0) <= self.wait_max {
            return Ok(());
        }
        drop(queue);
        self.refused.increment(1);
        Err(Problem::new(
            Code::Overloaded,
            "the server has more batches to do than it can do in time (`server.batch_delay_max_ms`); nothing was done \
             for this one; try again later",
        ))
    }

    /// Waits for a place.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        self.admit()?;
        let waiting = Waiting::of(&self.queue);
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the places are never closed");
        waiting.departs();
        Ok(place)
    }
}

/// A batch that waits. Its client may leave at any time.
struct Waiting<'a>(&'a Mutex<(usize, Drain)>);

impl<'a> Waiting<'a> {
    fn of(queue: &'a Mutex<(usize, Drain)>) -> Self {
        queue.lock().0 += 1;
        Self(queue)
    }

    fn departs(&self) {
        let (waiting, drain) = &mut *self.0.lock();
        drain.departed(Instant::now(), *waiting - 1);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().0 -= 1;
    }
}
