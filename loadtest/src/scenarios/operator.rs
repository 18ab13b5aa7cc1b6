//! The repeated work of an operator: other bandings, another threshold, backups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hyper::{Method, Uri};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Connection, Request, Target};

const POLL_EVERY: Duration = Duration::from_millis(200);
/// The number of backups that are kept.
const KEEP: u32 = 2;

/// An operator at work, until it is asked to stop.
pub(super) struct Operator {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Work>>,
}

/// The operations that succeeded.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    pub(super) rebandings: u64,
    pub(super) backups: u64,
    /// The longest duration of each operation, in seconds.
    pub(super) rebanding_s: f64,
    pub(super) backup_s: f64,
}

impl Operator {
    /// Begins a round of work every `cycle`. Both collections must exist.
    pub(super) fn start(target: &Arc<Target>, expiring: &'static str, cycle: Duration) -> Self {
        let (target, stop) = (Arc::clone(target), Arc::new(AtomicBool::new(false)));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || work(target, expiring, cycle, &stopping));
        Self { stop, thread }
    }

    /// Makes one backup after the other.
    pub(super) fn back_up(target: &Arc<Target>) -> Self {
        let (target, stop) = (Arc::clone(target), Arc::new(AtomicBool::new(false)));
        let stopping = Arc::clone(&stop);
        let work = move || {
            let mut desk = Desk::new(target)?;
            let mut done = Work::default();
            while !stopping.load(Ordering::Relaxed) {
                let started = Instant::now();
                desk.back_up()?;
                done.backups += 1;
                done.backup_s = done.backup_s.max(started.elapsed().as_secs_f64());
            }
            Ok(done)
        };
        Self { stop, thread: std::thread::spawn(work) }
    }

    /// Waits for the operation in progress. Returns an error if an operation failed.
    pub(super) fn finish(self) -> Result<Work> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the operator failed")?
    }
}

fn work(target: Arc<Target>, expiring: &str, cycle: Duration, stop: &AtomicBool) -> Result<Work> {
    let mut desk = Desk::new(target)?;
    let mut done = Work::default();
    let begun = Instant::now();
    for quarter in 0u32.. {
        while begun.elapsed() < cycle * quarter / 4 {
            if stop.load(Ordering::Relaxed) {
                return Ok(done);
            }
            std::thread::sleep(POLL_EVERY.min(cycle / 20));
        }
        let started = Instant::now();
        match quarter % 4 {
            0 => desk.patch("default", r#"{"banding": {"bands": 32, "rows": 7}}"#)?,
            1 => {
                desk.patch(expiring, if quarter % 8 == 1 { r#"{"threshold": 0.75}"# } else { r#"{"threshold": 0.8}"# })?
            }
            2 => desk.back_up()?,
            _ => desk.patch("default", r#"{"banding_by_hand": false}"#)?,
        }
        let seconds = started.elapsed().as_secs_f64();
        if quarter % 4 == 2 {
            done.backups += 1;
            done.backup_s = done.backup_s.max(seconds);
        } else {
            done.rebandings += 1;
            done.rebanding_s = done.rebanding_s.max(seconds);
        }
    }
    Ok(done)
}

struct Desk {
    runtime: Runtime,
    connection: Connection,
}

impl Desk {
    fn new(target: Arc<Target>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("cannot start a thread")?;
        Ok(Self { runtime, connection: Connection::new(target) })
    }

    fn must(&mut self, request: &Request) -> Result<serde_json::Value> {
        let answer = self.runtime.block_on(self.connection.send(request))?;
        if !(200..300).contains(&answer.status) {
            bail!("{} {} was answered with {}: {}", request.method, request.target, answer.status, answer.excerpt());
        }
        serde_json::from_slice(&answer.body).context("the answer is not JSON")
    }

    /// Changes a collection's settings. The answer comes when a new banding is complete.
    fn patch(&mut self, collection: &str, settings: &'static str) -> Result<()> {
        let to: Uri = format!("/v1/collections/{collection}").parse()?;
        self.must(&Request::json("patch", Method::PATCH, &to, settings))?;
        Ok(())
    }

    /// Makes a backup and waits until it is complete.
    fn back_up(&mut self) -> Result<()> {
        let backups = Uri::from_static("/v1/backups");
        let body = format!(r#"{{"name": "soak", "keep": {KEEP}}}"#);
        self.must(&Request::post("backup", &backups, body))?;
        loop {
            std::thread::sleep(POLL_EVERY);
            let state = self.must(&Request::bare("backup", Method::GET, backups.clone()))?;
            match state["latest"]["state"].as_str() {
                Some("running") => {}
                Some("done") => return Ok(()),
                _ => bail!("a backup failed: {state}"),
            }
        }
    }
}
