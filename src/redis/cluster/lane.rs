//! One connection to a node, and the queue before it. In: jobs. Out: the answers of the node, or the reason that there
//! are none.
//!
//! All jobs that wait in the queue are sent together, as one pipeline. In a lane whose jobs wait for replicas, the
//! pipeline ends with one `WAIT` for all of them. A `WAIT` stops all commands behind it, so such a lane sends its next
//! pipeline only after the answer. If replicas are slow, jobs wait in the queue, and are dropped there when their time is
//! over. At the node they would wait too, but it would execute them long after.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::connection::Connection;
use super::dial::Dial;
use super::error::ClusterError;
use super::judge::{Raw, Wait};
use super::packed::Packed;
use super::request::{Asks, Call};

/// Jobs in the queue of one lane. If it is full, jobs fail.
const QUEUE_MAX: usize = 1024;
/// Requests in one pipeline, unless one job has more.
const PIPELINE_REQUESTS_MAX: usize = 512;
/// Pipelines that have been sent on one connection and not answered, without those that end with a `WAIT`.
const PIPELINES_MAX: usize = 16;

/// One connection and its queue.
#[derive(Debug)]
pub(super) struct Lane {
    jobs: mpsc::Sender<Job>,
}

/// Requests that are sent in one pipeline.
#[derive(Debug)]
pub(super) struct Job {
    asks: Asks,
    /// No answer is needed after this time.
    deadline: Instant,
    reply: oneshot::Sender<Reply>,
}

/// One [`Raw`] for each request, or an error for all of them.
pub(super) type Reply = Result<Vec<Raw>, ClusterError>;

impl Lane {
    /// Starts a lane. It ends when it is dropped. `waits` says whether each pipeline ends with a `WAIT`.
    pub(super) fn start(dial: Arc<Dial>, waits: bool) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let line = Line { dial, waits, connection: Mutex::new((0, None)) };
        tokio::spawn(serve(queue, Arc::new(line)));
        Self { jobs }
    }

    /// Puts requests into the queue. Returns `None` if the queue is full.
    pub(super) fn submit(&self, asks: Asks, deadline: Instant) -> Option<oneshot::Receiver<Reply>> {
        let (reply, receiver) = oneshot::channel();
        self.jobs.try_send(Job { asks, deadline, reply }).ok()?;
        Some(receiver)
    }
}

async fn serve(mut queue: mpsc::Receiver<Job>, line: Arc<Line>) {
    let in_flight = Arc::new(Semaphore::new(PIPELINES_MAX));
    while let Some(first) = queue.recv().await {
        let permit = in_flight.clone().acquire_owned().await.expect("the semaphore is never closed");
        let connected = line.connected().await;
        let mut batch = Batch::default();
        batch.add(first);
        while batch.requests < PIPELINE_REQUESTS_MAX
            && let Ok(job) = queue.try_recv()
        {
            batch.add(job);
        }
        if batch.jobs.is_empty() {
            continue;
        }
        match connected {
            Err(error) => batch.refuse(&error),
            Ok((number, connection)) if line.waits => line.send(number, connection, batch).await,
            Ok((number, connection)) => {
                let line = line.clone();
                tokio::spawn(async move {
                    line.send(number, connection, batch).await;
                    drop(permit);
                });
            }
        }
    }
}

/// The jobs of one pipeline.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    requests: usize,
}

impl Batch {
    /// Adds a job, unless its sender has given up.
    fn add(&mut self, job: Job) {
        if !job.reply.is_closed() {
            self.requests += job.asks.asks.len();
            self.jobs.push(job);
        }
    }

    fn refuse(self, error: &ClusterError) {
        for job in self.jobs {
            let _ = job.reply.send(Err(error.clone()));
        }
    }

    /// Returns the commands of all jobs, in their order, and their number.
    fn commands(&self) -> (Vec<u8>, usize) {
        let (mut bytes, mut count) = (Vec::with_capacity(128 * self.requests), 0);
        let mut add = |command: &Packed| {
            bytes.extend_from_slice(command.bytes());
            count += 1;
        };
        for (ask, request) in self.jobs.iter().flat_map(|job| job.asks.iter()) {
            for script in request.calls.iter().filter_map(Call::script).filter(|_| ask.load) {
                add(&script.load());
            }
            for call in &request.calls {
                if ask.asking {
                    add(&Packed::new("ASKING", 0, 0));
                }
                add(call.packed());
            }
        }
        (bytes, count)
    }

    /// Gives each job its answers. `values` are the answers to [`commands`](Self::commands), and to the `WAIT` behind
    /// them.
    fn answer(self, values: Vec<Value>, waits: bool) {
        let mut values = values.into_iter();
        let wait = if waits { values.next_back().map_or(Wait::None, Wait::of) } else { Wait::None };
        let refused = |value: Option<Value>| match value {
            Some(Value::ServerError(error)) => Some(error),
            _ => None,
        };
        for job in self.jobs {
            let mut raws = Vec::with_capacity(job.asks.asks.len());
            for (ask, request) in job.asks.iter() {
                let mut raw = Raw { load: None, values: Vec::with_capacity(request.calls.len()), wait: wait.clone() };
                for _ in request.calls.iter().filter_map(Call::script).filter(|_| ask.load) {
                    raw.load = refused(values.next()).map(Box::new).or(raw.load);
                }
                for _ in &request.calls {
                    let asking = if ask.asking { refused(values.next()) } else { None };
                    let value = values.next();
                    raw.values.extend(asking.map(Value::ServerError).or(value));
                }
                raws.push(raw);
            }
            // The sender may have given up meanwhile. This is no error, here and above.
            let _ = job.reply.send(Ok(raws));
        }
    }
}

/// The connection of a lane.
struct Line {
    dial: Arc<Dial>,
    waits: bool,
    /// The number of connections until now, and the connection unless it has failed.
    connection: Mutex<(u64, Option<Connection>)>,
}

impl Line {
    /// Returns the connection with its number. Connects first, if necessary.
    async fn connected(&self) -> Result<(u64, Connection), ClusterError> {
        if let (number, Some(connection)) = &*self.connection.lock()
            && !connection.is_broken()
        {
            return Ok((*number, connection.clone()));
        }
        let connection = self.dial.connect().await?;
        let mut current = self.connection.lock();
        *current = (current.0 + 1, Some(connection.clone()));
        Ok((current.0, connection))
    }

    /// Closes a connection that has failed.
    fn close(&self, number: u64) {
        let mut current = self.connection.lock();
        if current.0 == number {
            current.1 = None;
        }
    }

    async fn send(&self, number: u64, connection: Connection, batch: Batch) {
        let timeout = self.dial.config().timeout;
        let (mut commands, mut count) = batch.commands();
        if self.waits {
            commands.extend_from_slice(wait(self.dial.config().acks, wait_limit(&batch, timeout)).bytes());
            count += 1;
        }
        let counts = self.dial.counts();
        counts.pipelines.increment(1);
        counts.commands.increment(count as u64);
        let begun = Instant::now();
        let answered = tokio::time::timeout(timeout, connection.send(commands, count)).await;
        // A connection that breaks says nothing about the speed of the node.
        if !matches!(answered, Ok(Err(_))) {
            counts.duration(self.waits).record(begun.elapsed());
        }
        match answered {
            Ok(Ok(values)) => batch.answer(values, self.waits),
            Ok(Err(reason)) => {
                self.close(number);
                batch.refuse(&self.dial.broken(reason));
            }
            Err(_) => {
                self.close(number);
                batch.refuse(&self.dial.timed_out());
            }
        }
    }
}

fn wait(acks: usize, limit: Duration) -> Packed {
    // 0 would mean without a limit.
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
    Packed::new("WAIT", 2, 0).number(acks as u64).number(limit_ms)
}

/// Returns the time limit of the `WAIT` behind these jobs. It is less than half of the whole time: so jobs that
/// have waited in the queue for one slow `WAIT` still learn the result of their own. It ends a little before the last
/// deadline, because its answer must arrive too.
fn wait_limit(batch: &Batch, timeout: Duration) -> Duration {
    let last = batch.jobs.iter().map(|job| job.deadline).max();
    let left = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(Instant::now()));
    (timeout * 2 / 5).min(left * 9 / 10)
}
