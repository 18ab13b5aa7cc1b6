//! Sends requests when they are due, over many connections, and tallies their outcomes.
//!
//! A separate thread watches the clock and hands out due times, because the timers of an async runtime are imprecise by
//! up to a millisecond. If the server is slow, requests wait for a free connection. Their latency still counts from the
//! time when they were due (no coordinated omission).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::connection::{Connection, Target};
use super::request::{Answer, Fate, Request};
use super::tally::{Entry, Tally};
use crate::schedule::{Arrivals, Schedule};

/// The number of parts of a tally that are written separately, so that connections seldom wait for the same lock.
const SHARDS: usize = 8;
/// How long due requests may still wait for a connection after the end of a phase; less in short phases.
const GRACE_MAX: Duration = Duration::from_secs(5);
/// The shortest sleep of the dispatcher. With it, a high rate does not use a whole processor.
const NAP: Duration = Duration::from_micros(50);

/// The requests of a scenario, and the judgement of their answers.
pub(crate) trait Work: Send + Sync + 'static {
    /// The facts to remember about a request until its answer comes.
    type Note: Send;

    /// Makes request `n`. It may be sent a little later than requests with higher numbers.
    fn request(&self, n: u64) -> (Request, Self::Note);

    /// Judges an answer that is not a refusal.
    fn judge(&self, note: Self::Note, answer: &Answer) -> Fate;

    /// Is called if a request was refused, and therefore changed nothing.
    fn refused(&self, _: Self::Note) {}
}

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Requests are sent at this rate per second, however long answers take.
    Open { rate: f64, arrivals: Arrivals, seed: u64 },
    /// Each connection sends the next request when it has received its answer.
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) pace: Pace,
    pub(crate) duration: Duration,
    /// The time at the beginning in which latencies do not count.
    pub(crate) warm_up: Duration,
    pub(crate) connections: usize,
    /// The number of the first request.
    pub(crate) first: u64,
    /// The number of the request at which the work ends early, if any.
    pub(crate) end: Option<u64>,
}

/// The due times that no connection has taken yet.
struct Turnstile {
    dues: Mutex<VecDeque<Duration>>,
    waiting: Semaphore,
    ended: AtomicBool,
}

struct Shared<W> {
    work: Arc<W>,
    plan: Plan,
    turnstile: Turnstile,
    next: AtomicU64,
    begun: Instant,
    tallies: Vec<Mutex<Tally>>,
}

/// Drives the work in this runtime, and returns the tally and the number of the next request.
pub(crate) fn drive<W: Work>(runtime: &Runtime, target: &Arc<Target>, work: &Arc<W>, plan: Plan) -> (Tally, u64) {
    let turnstile = Turnstile { dues: Mutex::default(), waiting: Semaphore::new(0), ended: AtomicBool::new(false) };
    let shared = Arc::new(Shared {
        work: Arc::clone(work),
        plan,
        turnstile,
        next: AtomicU64::new(plan.first),
        begun: Instant::now(),
        tallies: (0..SHARDS).map(|_| Mutex::default()).collect(),
    });
    let workers: Vec<_> = (0..plan.connections)
        .map(|n| {
            let (shared, connection) = (Arc::clone(&shared), Connection::new(Arc::clone(target)));
            runtime.spawn(work_through(shared, connection, n % SHARDS))
        })
        .collect();
    if let Pace::Open { rate, arrivals, seed } = plan.pace {
        dispatch(&shared.turnstile, shared.begun, plan.duration, Schedule::new(arrivals, rate, seed));
    }
    runtime.block_on(async {
        for worker in workers {
            worker.await.expect("a connection's task does not panic");
        }
    });
    let mut all = Tally::default();
    shared.tallies.iter().for_each(|tally| all.add(&tally.lock().expect("not poisoned")));
    all.unsent = shared.turnstile.dues.lock().expect("not poisoned").len() as u64;
    (all, shared.next.load(Ordering::Relaxed))
}

/// Hands out due times until the end, then waits a little until the remaining ones are taken.
fn dispatch(turnstile: &Turnstile, begun: Instant, duration: Duration, schedule: Schedule) {
    let mut schedule = schedule.take_while(|due| *due < duration).peekable();
    while let Some(&next) = schedule.peek() {
        let wait = next.saturating_sub(begun.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait.max(NAP));
        }
        let now = begun.elapsed();
        let mut dues = turnstile.dues.lock().expect("not poisoned");
        let before = dues.len();
        while let Some(due) = schedule.next_if(|due| *due <= now) {
            dues.push_back(due);
        }
        let added = dues.len() - before;
        drop(dues);
        turnstile.waiting.add_permits(added);
    }
    std::thread::sleep(duration.saturating_sub(begun.elapsed()));
    let end = Instant::now() + GRACE_MAX.min(duration);
    while Instant::now() < end && !turnstile.dues.lock().expect("not poisoned").is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    turnstile.ended.store(true, Ordering::Relaxed);
    turnstile.waiting.close();
}

impl Turnstile {
    /// Waits for the next due time; `None` at the end.
    async fn take(&self) -> Option<Duration> {
        self.waiting.acquire().await.ok()?.forget();
        if self.ended.load(Ordering::Relaxed) {
            return None;
        }
        self.dues.lock().expect("not poisoned").pop_front()
    }
}

async fn work_through<W: Work>(shared: Arc<Shared<W>>, mut connection: Connection, shard: usize) {
    let Shared { work, plan, turnstile, next, begun, tallies } = &*shared;
    loop {
        // The request is made before it is due, because this client's own work must not count as latency.
        let n = next.fetch_add(1, Ordering::Relaxed);
        if plan.end.is_some_and(|end| n >= end) {
            break;
        }
        let (request, note) = work.request(n);
        let due = match plan.pace {
            Pace::Open { .. } => turnstile.take().await,
            Pace::Closed => Some(begun.elapsed()).filter(|now| *now < plan.duration),
        };
        let Some(due) = due else { break };
        let sent = begun.elapsed();
        let answer = connection.send(&request).await;
        let done = begun.elapsed();
        let fate = match answer {
            Ok(answer) if answer.is_refusal() => {
                work.refused(note);
                Fate::Refused
            }
            Ok(answer) => work.judge(note, &answer),
            Err(error) => Fate::Wrong(format!("{error:#}")),
        };
        let failed_to_connect = matches!(&fate, Fate::Wrong(error) if error.starts_with("cannot connect"));
        let counts = due >= plan.warm_up;
        let entry = Entry { kind: request.kind, due, sent, done, counts };
        tallies[shard].lock().expect("not poisoned").enter(&entry, fate);
        if failed_to_connect {
            // Without this pause, the client would try to connect a hundred thousand times per second after the server
            // has ended.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    tallies[shard].lock().expect("not poisoned").opened += connection.opened;
}
