//! Runs work that would block a request's own thread for too long, on a few threads with a bounded queue.
//! In: jobs that each take a few milliseconds. Out: their results. Long work is cut into jobs. Jobs that continue work
//! run before jobs that begin new work. New work that would wait for too long is refused at once. Work that cannot be
//! cut and may take seconds has a thread of its own: one comparison of 15.6 MB takes 10 s, and a check of 22 KB must
//! not wait behind it. Work of streams has a separate queue and separate threads, which give way to all other threads.
//! This file does not know what the jobs do. A job must not wait for anything, because it would block a thread.

mod coming;
mod drain;
mod lane;
mod priority;
mod refused;

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Histogram;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use lane::{Lane, PoolWork};

pub use drain::Drain;
pub use priority::{Nice, give_way, let_others_run, run_promptly, run_without_interrupting};
pub use refused::Refused;

use crate::telemetry::names;

/// Work on more bytes than this runs on the thread for long jobs. On the threads for short jobs it would take too long:
/// a short job must wait only milliseconds.
const SHORT_BYTES_MAX: usize = 1 << 20;

/// Returns the number of processors that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The number of threads, and the length of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// The number of threads; at least one. One more thread runs work that cannot be cut.
    pub threads: usize,
    /// The number of jobs that may wait; at least one.
    pub queue_max: usize,
    /// How long new work may have to wait. Zero: no limit.
    pub queue_delay_max: Duration,
}

/// The behaviour if the queue is full, or if the wait in it would be too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Return an error, so that the client can try again.
    #[default]
    Refuse,
    /// Wait for a place, and go before new work. For parts of work that has already begun.
    Wait,
    /// Wait in a separate queue, for threads that give way to all other threads. For streams of documents.
    GiveWay,
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
    when_full: WhenFull,
}

/// Represents work that [`CpuPool::admit`] has accepted, but that is not in a queue yet.
#[must_use]
pub struct Admitted {
    pool: CpuPool,
    number: u64,
}

struct Handle(Arc<Shared>);

struct Shared {
    single: Lanes,
    streams: Lanes,
    queue_max: usize,
    queue_delay_max: Duration,
    wait_seconds: Histogram,
}

/// The queues of a class of work.
struct Lanes {
    /// For jobs that each take a few milliseconds.
    short: Lane,
    /// For work that cannot be cut into such jobs.
    long: Lane,
    places: Arc<Semaphore>,
}

impl CpuPool {
    pub fn new(config: CpuConfig) -> Self {
        let shared = Arc::new(Shared {
            single: Lanes::new(config.queue_max),
            streams: Lanes::new(config.queue_max),
            queue_max: config.queue_max,
            queue_delay_max: config.queue_delay_max,
            wait_seconds: metrics::histogram!(names::CPU_QUEUE_WAIT),
        });
        for number in 0..=config.threads {
            let (single, streams) = (Arc::clone(&shared), Arc::clone(&shared));
            let long = number == config.threads;
            let name = |class| if long { format!("hapax-{class}-long") } else { format!("hapax-{class}-{number}") };
            start(name("cpu"), move || {
                give_way(Nice::LongTexts);
                single.work(single.single.lane(long));
            });
            start(name("bulk"), move || {
                give_way(Nice::Streams);
                streams.work(streams.streams.lane(long));
            });
        }
        Self(Arc::new(Handle(shared)))
    }

    /// Takes a place in the queue.
    pub async fn place(&self, when_full: WhenFull) -> Result<QueuePlace, Refused> {
        let asked = Instant::now();
        let shared = &*self.0.0;
        let places = Arc::clone(&shared.lanes(when_full).places);
        let permit = match when_full {
            // This fails while other work waits for a place, even if a place has just become free: work that has begun
            // goes first.
            WhenFull::Refuse => {
                places.try_acquire_owned().map_err(|_| shared.refuse(Refused::Full { queue_max: shared.queue_max }))?
            }
            WhenFull::Wait | WhenFull::GiveWay => places.acquire_owned().await.expect("the places are never closed"),
        };
        Ok(QueuePlace { pool: self.clone(), asked, permit, when_full })
    }

    /// Accepts new work of at most 1 MiB whose body is still being read, unless the work would wait for too long. Until
    /// the result is dropped, the work counts like work that waits in the queue.
    pub fn admit(&self) -> Result<Admitted, Refused> {
        let shared = &*self.0.0;
        let number = shared.single.short.admit(shared.queue_delay_max).map_err(|why| shared.refuse(why))?;
        Ok(Admitted { pool: self.clone(), number })
    }

    /// Returns an error if [`CpuPool::admit`] would refuse work now. Accepts no work.
    pub fn judge(&self) -> Result<(), Refused> {
        let shared = &*self.0.0;
        shared.single.short.judge(shared.queue_delay_max).map_err(|why| shared.refuse(why))
    }

    /// Returns how many jobs wait, without those of streams.
    pub fn depth(&self) -> usize {
        let Lanes { short, long, .. } = &self.0.0.single;
        short.depth() + long.depth()
    }

    pub fn observe(&self) {
        metrics::gauge!(names::CPU_QUEUE_DEPTH).set(self.depth() as f64);
        metrics::gauge!(names::CPU_QUEUE_MAX).set(self.0.0.queue_max as f64);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.pool.0.0.single.short.came(self.number);
    }
}

impl QueuePlace {
    /// Runs `work` on one of the threads. If the future is dropped before the job begins, the job does not run. If the
    /// job panics, the panic continues in the caller. If the job is new work and would wait too long, it is refused.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
        self.run_uncut(0, work).await
    }

    /// Like [`Self::run`], for work that cannot be cut into pieces. `bytes` is the number of bytes that it works on. If
    /// `bytes` is large, the work runs on a separate thread.
    pub async fn run_uncut<T: Send + 'static>(
        self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let Self { pool, asked, permit, when_full } = self;
        let (done, outcome) = oneshot::channel();
        let given = Given(Arc::new(Mutex::new(Some(work))));
        let taken = Arc::clone(&given.0);
        let run = Box::new(move || {
            let work = taken.lock().take();
            if let Some(work) = work {
                // The caller may have been dropped meanwhile.
                drop(done.send(catch_unwind(AssertUnwindSafe(work))));
            }
        });
        let (shared, long) = (&pool.0.0, bytes > SHORT_BYTES_MAX);
        let wait_max = match when_full {
            WhenFull::Refuse if !long => shared.queue_delay_max,
            // A single job can take seconds on the thread for long jobs. So a long wait there does not mean overload.
            WhenFull::Refuse | WhenFull::Wait | WhenFull::GiveWay => Duration::ZERO,
        };
        let job = PoolWork { asked, permit, begun: when_full == WhenFull::Wait, run };
        shared.lanes(when_full).lane(long).push(job, wait_max).map_err(|why| shared.refuse(why))?;
        let outcome = outcome.await.expect("a job that is waited for gets done");
        Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Work that waits for a thread. It is dropped together with its caller, because the caller owns the reservation for
/// the document's memory.
struct Given<W>(Arc<Mutex<Option<W>>>);

impl<W> Drop for Given<W> {
    fn drop(&mut self) {
        let work = self.0.lock().take();
        // Dropped after the lock is released, because dropping may run other code.
        drop(work);
    }
}

impl Shared {
    fn work(&self, lane: &Lane) {
        while let Some(PoolWork { asked, permit, run, .. }) = lane.next() {
            self.wait_seconds.record(asked.elapsed());
            // Free the place: places are only for jobs that wait.
            drop(permit);
            run();
        }
    }

    fn lanes(&self, when_full: WhenFull) -> &Lanes {
        match when_full {
            WhenFull::Refuse | WhenFull::Wait => &self.single,
            WhenFull::GiveWay => &self.streams,
        }
    }

    fn refuse(&self, why: Refused) -> Refused {
        metrics::counter!(names::CPU_REFUSED).increment(1);
        why
    }
}

impl Lanes {
    fn new(queue_max: usize) -> Self {
        Self { short: Lane::default(), long: Lane::default(), places: Arc::new(Semaphore::new(queue_max)) }
    }

    fn lane(&self, long: bool) -> &Lane {
        if long { &self.long } else { &self.short }
    }
}

fn start(name: String, work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name).spawn(work).expect("the system can start one more thread");
}

impl Drop for Handle {
    /// Jobs still in the queue are dropped. Nothing waits for them, because a waiting caller keeps the pool alive.
    fn drop(&mut self) {
        for Lanes { short, long, .. } in [&self.0.single, &self.0.streams] {
            for lane in [short, long] {
                lane.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool(queue_max: usize) -> CpuPool {
        CpuPool::new(CpuConfig { threads: 1, queue_max, queue_delay_max: Duration::ZERO })
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
            assert_eq!(pool.place(WhenFull::Refuse).await.unwrap().run(move || number * 2).await, Ok(number * 2));
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
        assert_eq!(pool.place(WhenFull::Refuse).await.err(), Some(Refused::Full { queue_max: 1 }));
        let waiting = pool.clone();
        let second = tokio::spawn(async move { waiting.place(WhenFull::Wait).await.unwrap().run(|| 2).await });
        drop(release);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(1), Ok(2)));
        assert_eq!(pool.depth(), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_cut_keeps_nobody_waiting_but_its_like() {
        let pool = pool(4);
        let (release, released) = mpsc::channel::<()>();
        let long = |work: Box<dyn FnOnce() + Send>| {
            let pool = pool.clone();
            tokio::spawn(async move {
                pool.place(WhenFull::Refuse).await.unwrap().run_uncut(SHORT_BYTES_MAX + 1, work).await.unwrap();
            })
        };
        let first = long(Box::new(move || _ = released.recv()));
        let second = long(Box::new(|| ()));
        assert_eq!(pool.place(WhenFull::Wait).await.unwrap().run(|| 7).await, Ok(7));
        assert_eq!(pool.place(WhenFull::Wait).await.unwrap().run_uncut(SHORT_BYTES_MAX, || 8).await, Ok(8));
        assert!(!first.is_finished() && !second.is_finished());
        drop(release);
        first.await.unwrap();
        second.await.unwrap();
    }

    #[tokio::test]
    async fn what_waits_is_dropped_with_its_caller() {
        let pool = pool(4);
        let release = occupy(&pool).await;
        let document = Arc::new(());
        let held = Arc::clone(&document);
        let waiting = tokio::spawn(pool.place(WhenFull::Refuse).await.unwrap().run(move || drop(held)));
        while pool.depth() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Arc::strong_count(&document), 2);
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!((Arc::strong_count(&document), pool.depth()), (1, 1), "its place is kept, and nothing else");
        drop(release);
    }

    #[tokio::test]
    async fn a_panic_reaches_its_own_caller_and_nobody_else() {
        let pool = pool(4);
        let broken = tokio::spawn(pool.place(WhenFull::Refuse).await.unwrap().run(|| panic!("broken")));
        assert!(broken.await.unwrap_err().is_panic());
        assert_eq!(pool.place(WhenFull::Refuse).await.unwrap().run(|| 7).await, Ok(7));
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
        pool.place(WhenFull::Wait).await.unwrap().run(|| ()).await.unwrap();
        assert!(runs.recv().is_err(), "dropped without having run");
    }

    #[tokio::test]
    async fn new_work_that_would_wait_too_long_is_refused_at_once_and_work_that_has_begun_is_not() {
        let queue_delay_max = Duration::from_nanos(1);
        let pool = CpuPool::new(CpuConfig { threads: 1, queue_max: 8, queue_delay_max });
        let spawn = |when_full, bytes| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.place(when_full).await.unwrap().run_uncut(bytes, || 7).await })
        };
        let fill = async || {
            let release = occupy(&pool).await;
            let waiting = spawn(WhenFull::Refuse, 0);
            while pool.depth() == 0 {
                tokio::task::yield_now().await;
            }
            (release, waiting)
        };
        // It is not known yet how fast the queue drains, so nothing is refused.
        let (release, first) = fill().await;
        let second = spawn(WhenFull::Refuse, 0);
        while pool.depth() < 2 {
            tokio::task::yield_now().await;
        }
        drop(release);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(7), Ok(7)));
        assert!(pool.judge().is_ok() && pool.admit().is_ok(), "the queue is empty");

        let (release, first) = fill().await;
        assert_eq!((pool.judge(), pool.admit().err()), (Err(Refused::Late), Some(Refused::Late)));
        assert_eq!(spawn(WhenFull::Refuse, 0).await.unwrap(), Err(Refused::Late));
        let others = [(WhenFull::Wait, 0), (WhenFull::GiveWay, 0), (WhenFull::Refuse, SHORT_BYTES_MAX + 1)];
        let others = others.map(|(when_full, bytes)| spawn(when_full, bytes));
        drop(release);
        assert_eq!(first.await.unwrap(), Ok(7));
        for other in others {
            assert_eq!(other.await.unwrap(), Ok(7));
        }
    }

    #[tokio::test]
    async fn work_of_streams_takes_neither_places_nor_threads_of_other_work() {
        let pool = pool(1);
        let (release, released) = mpsc::channel::<()>();
        let streams = pool.clone();
        let first = tokio::spawn(async move {
            streams.place(WhenFull::GiveWay).await.unwrap().run(move || _ = released.recv()).await
        });
        let (streams, (begun, begins)) = (pool.clone(), oneshot::channel());
        let second = tokio::spawn(async move {
            let place = streams.place(WhenFull::GiveWay).await.unwrap();
            begun.send(()).unwrap();
            place.run(|| ()).await
        });
        begins.await.unwrap();
        assert_eq!(pool.place(WhenFull::Refuse).await.unwrap().run(|| 7).await, Ok(7));
        assert_eq!(pool.depth(), 0);
        drop(release);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));
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
