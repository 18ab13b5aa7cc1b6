//! Runs work that would block a request's own thread for too long: a few threads with a bounded queue.
//! In: jobs of some milliseconds. Out: their results. The queue is first come, first served, so if long work is cut
//! into jobs, other work runs in between. Work that cannot be cut and may take seconds has a thread of its own: one
//! comparison of 15.6 MB takes 10 s, and a check of 22 KB must not wait behind it.
//! This file does not know what the jobs do. A job must not wait for anything, because it would block a thread.

mod delay_limit;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use metrics::Histogram;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub use delay_limit::DelayLimit;

use crate::telemetry::names;

/// Work on more bytes than this takes too long for the threads of short jobs, which must wait only for milliseconds.
const SHORT_BYTES_MAX: usize = 1 << 20;

/// The number of threads, and the length of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// The number of threads; at least one. Work that cannot be cut has one more.
    pub threads: usize,
    /// The number of jobs that may wait; at least one.
    pub queue_max: usize,
}

/// The choice if the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Return an error, so that the client can try again.
    #[default]
    Refuse,
    /// Wait for a place, first come, first served. For parts of work that has already begun.
    Wait,
}

/// The error that all places in the queue are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue for long work is full: {queue_max} jobs wait for a processor; try again later")]
pub struct Full {
    /// The number of places.
    pub queue_max: usize,
}

/// The threads and their queue. Cheap to clone. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct CpuPool(Arc<Handle>);

/// A place in the queue. Use it at once.
#[must_use]
pub struct QueuePlace {
    pool: CpuPool,
    asked: Instant,
    permit: OwnedSemaphorePermit,
}

struct Handle(Arc<Shared>);

struct Shared {
    /// One lane for jobs of some milliseconds, and one for jobs that cannot be cut into such.
    short: Lane,
    long: Lane,
    places: Arc<Semaphore>,
    queue_max: usize,
    wait_seconds: Histogram,
}

/// A queue with its own threads.
#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
    /// Notified when the queue gets a job or is closed.
    work: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

struct Job {
    asked: Instant,
    permit: OwnedSemaphorePermit,
    run: Box<dyn FnOnce() + Send>,
}

impl CpuPool {
    pub fn new(config: CpuConfig) -> Self {
        let shared = Arc::new(Shared {
            short: Lane::default(),
            long: Lane::default(),
            places: Arc::new(Semaphore::new(config.queue_max)),
            queue_max: config.queue_max,
            wait_seconds: metrics::histogram!(names::CPU_QUEUE_WAIT),
        });
        for number in 0..=config.threads {
            let shared = Arc::clone(&shared);
            let long = number == config.threads;
            let name = if long { "hapax-cpu-long".to_owned() } else { format!("hapax-cpu-{number}") };
            let work = move || shared.work(if long { &shared.long } else { &shared.short });
            std::thread::Builder::new().name(name).spawn(work).expect("the system can start one more thread");
        }
        Self(Arc::new(Handle(shared)))
    }

    /// Takes a place in the queue.
    pub async fn place(&self, when_full: WhenFull) -> Result<QueuePlace, Full> {
        let asked = Instant::now();
        let Shared { places, queue_max, .. } = &*self.0.0;
        let places = Arc::clone(places);
        let permit = match when_full {
            // This fails while others wait for a place, even if one is just being passed on: work that has begun goes
            // first.
            WhenFull::Refuse => places.try_acquire_owned().map_err(|_| Full { queue_max: *queue_max })?,
            WhenFull::Wait => places.acquire_owned().await.expect("the places are never closed"),
        };
        Ok(QueuePlace { pool: self.clone(), asked, permit })
    }

    pub fn depth(&self) -> usize {
        let Shared { short, long, .. } = &*self.0.0;
        short.queue.lock().jobs.len() + long.queue.lock().jobs.len()
    }

    pub fn observe(&self) {
        metrics::gauge!(names::CPU_QUEUE_DEPTH).set(self.depth() as f64);
        metrics::gauge!(names::CPU_QUEUE_MAX).set(self.0.0.queue_max as f64);
    }
}

impl QueuePlace {
    /// Runs `work` on one of the threads. If the future is dropped before the job begins, the job does not run. If the
    /// job panics, the panic continues in the caller.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.run_uncut(0, work).await
    }

    /// Does the same for work on `bytes` bytes that cannot be cut. If `bytes` is large, the work runs on a separate
    /// thread.
    pub async fn run_uncut<T: Send + 'static>(self, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Self { pool, asked, permit } = self;
        let (done, outcome) = oneshot::channel();
        let run = Box::new(move || {
            if !done.is_closed() {
                // The caller may have left meanwhile.
                drop(done.send(catch_unwind(AssertUnwindSafe(work))));
            }
        });
        let shared = &pool.0.0;
        let lane = if bytes > SHORT_BYTES_MAX { &shared.long } else { &shared.short };
        lane.queue.lock().jobs.push_back(Job { asked, permit, run });
        lane.work.notify_one();
        let outcome = outcome.await.expect("a job that is waited for gets done");
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Shared {
    fn work(&self, lane: &Lane) {
        while let Some(Job { asked, permit, run }) = lane.next() {
            self.wait_seconds.record(asked.elapsed());
            // Free the place: places are only for jobs that wait.
            drop(permit);
            run();
        }
    }
}

impl Lane {
    /// Takes the first job. Returns `None` once the pool is closed.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            self.work.wait(&mut queue);
        }
    }
}

impl Drop for Handle {
    /// Jobs still in the queue are dropped. Nothing waits for them, because a waiting caller keeps the pool alive.
    fn drop(&mut self) {
        for lane in [&self.0.short, &self.0.long] {
            lane.queue.lock().closed = true;
            lane.work.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool(queue_max: usize) -> CpuPool {
        CpuPool::new(CpuConfig { threads: 1, queue_max })
    }

    /// Keeps the only thread busy until the returned sender is dropped.
    async fn occupy(pool: &CpuPool) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let (begun, begins) = oneshot::channel();
        let place = pool.place(WhenFull::Wait).await.unwrap();
        tokio::spawn(place.run(move || {
            begun.send(()).unwrap();
            _ = released.recv();
        }));
        begins.await.unwrap();
        release
    }

    #[tokio::test]
    async fn jobs_return_what_they_make() {
        let pool = pool(1);
        for number in 0..100 {
            assert_eq!(pool.place(WhenFull::Refuse).await.unwrap().run(move || number * 2).await, number * 2);
        }
    }

    #[tokio::test]
    async fn a_full_queue_refuses_the_new_and_lets_the_begun_wait() {
        let pool = pool(1);
        let release = occupy(&pool).await;
        let first = tokio::spawn(pool.place(WhenFull::Refuse).await.unwrap().run(|| 1));
        while pool.depth() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.place(WhenFull::Refuse).await.err(), Some(Full { queue_max: 1 }));
        let waiting = pool.clone();
        let second = tokio::spawn(async move { waiting.place(WhenFull::Wait).await.unwrap().run(|| 2).await });
        drop(release);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 2));
        assert_eq!(pool.depth(), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_cut_keeps_nobody_waiting_but_its_like() {
        let pool = pool(4);
        let (release, released) = mpsc::channel::<()>();
        let long = |work: Box<dyn FnOnce() + Send>| {
            let pool = pool.clone();
            tokio::spawn(async move {
                pool.place(WhenFull::Refuse).await.unwrap().run_uncut(SHORT_BYTES_MAX + 1, work).await;
            })
        };
        let first = long(Box::new(move || _ = released.recv()));
        let second = long(Box::new(|| ()));
        assert_eq!(pool.place(WhenFull::Wait).await.unwrap().run(|| 7).await, 7);
        assert_eq!(pool.place(WhenFull::Wait).await.unwrap().run_uncut(SHORT_BYTES_MAX, || 8).await, 8);
        assert!(!first.is_finished() && !second.is_finished());
        drop(release);
        first.await.unwrap();
        second.await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_reaches_its_own_caller_and_nobody_else() {
        let pool = pool(4);
        let broken = tokio::spawn(pool.place(WhenFull::Refuse).await.unwrap().run(|| panic!("broken")));
        assert!(broken.await.unwrap_err().is_panic());
        assert_eq!(pool.place(WhenFull::Refuse).await.unwrap().run(|| 7).await, 7);
    }

    #[tokio::test]
    async fn a_job_that_nobody_waits_for_is_not_begun() {
        let pool = pool(4);
        let release = occupy(&pool).await;
        let (ran, runs) = mpsc::channel();
        let left = tokio::spawn(pool.place(WhenFull::Refuse).await.unwrap().run(move || ran.send(())));
        while pool.depth() == 0 {
            tokio::task::yield_now().await;
        }
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        drop(release);
        pool.place(WhenFull::Wait).await.unwrap().run(|| ()).await;
        assert!(runs.recv().is_err(), "dropped without having run");
    }

    #[tokio::test]
    async fn threads_end_with_the_last_handle() {
        let pool = pool(4);
        let shared = Arc::downgrade(&pool.0.0);
        drop(pool);
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
