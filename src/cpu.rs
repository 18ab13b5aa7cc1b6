//! Work for the processor that is too long for a request's own thread: a few threads of their own, and a bounded queue
//! before them.
//! In: jobs of some milliseconds. Out: what they return. First come, first served, so whoever cuts long work into jobs
//! lets everyone else in between. What can't be cut and may take a second has a thread of its own: one
//! comparison of 15.6 MB takes 10 s, and a check of 22 KB must not wait behind it.
//! Knows nothing of what is worked on. A job must not wait for anything: it would keep a thread from the others.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use metrics::Histogram;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::telemetry::names;

/// Work on more than this takes longer than short jobs may wait for it: some milliseconds.
const SHORT_BYTES_MAX: usize = 1 << 20;

/// How much is worked on at once, and how much may wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Threads; at least one. What can't be cut has one more.
    pub threads: usize,
    /// Jobs that may wait; at least one.
    pub queue_max: usize,
}

/// What to do where the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Say so: the client can come again.
    #[default]
    Refuse,
    /// Wait for a place, first come, first served: for what is part of something already begun.
    Wait,
}

/// There is no place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{queue_max} pieces of long work wait for a processor already")]
pub struct Full {
    /// How many places there are.
    pub queue_max: usize,
}

/// The threads and their queue. Cheap to clone; the threads end when the last clone is dropped.
#[derive(Clone)]
pub struct CpuPool(Arc<Handle>);

/// A place in the queue, to be used at once.
#[must_use]
pub struct QueuePlace {
    pool: CpuPool,
    asked: Instant,
    permit: OwnedSemaphorePermit,
}

struct Handle(Arc<Shared>);

struct Shared {
    /// Jobs of some milliseconds, and those that can't be cut into such.
    short: Lane,
    long: Lane,
    places: Arc<Semaphore>,
    queue_max: usize,
    wait_seconds: Histogram,
}

/// Jobs for the same threads.
#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
    /// Told when the queue has work, or is closed.
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
            std::thread::Builder::new().name(name).spawn(work).expect("the system has room for one thread more");
        }
        Self(Arc::new(Handle(shared)))
    }

    /// A place in the queue.
    pub async fn place(&self, when_full: WhenFull) -> Result<QueuePlace, Full> {
        let asked = Instant::now();
        let Shared { places, queue_max, .. } = &*self.0.0;
        let places = Arc::clone(places);
        let permit = match when_full {
            // Fails while others wait for a place, even where one is just being handed on: what is begun goes first.
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
    /// Does `work` on one of the threads. It is not begun where the future has been dropped by then; its panic goes on
    /// in whoever waits for it.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.run_uncut(0, work).await
    }

    /// The same for work on so many bytes that can't be cut: if that is long, on a thread that has no short jobs.
    pub async fn run_uncut<T: Send + 'static>(self, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Self { pool, asked, permit } = self;
        let (done, outcome) = oneshot::channel();
        let run = Box::new(move || {
            if !done.is_closed() {
                // Whoever waited may have left meanwhile.
                drop(done.send(catch_unwind(AssertUnwindSafe(work))));
            }
        });
        let shared = &pool.0.0;
        let lane = if bytes > SHORT_BYTES_MAX { &shared.long } else { &shared.short };
        lane.queue.lock().jobs.push_back(Job { asked, permit, run });
        lane.work.notify_one();
        let outcome = outcome.await.expect("a job that somebody waits for is done");
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Shared {
    fn work(&self, lane: &Lane) {
        while let Some(Job { asked, permit, run }) = lane.next() {
            self.wait_seconds.record(asked.elapsed());
            // Places are for what waits.
            drop(permit);
            run();
        }
    }
}

impl Lane {
    /// The job in front; `None` once the pool is closed.
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
    /// What is still in the queue is dropped: a job that somebody waits for keeps the pool.
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

    /// Keeps the one thread busy until what is returned is dropped.
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
