//! A second load at the same time, sent by its own threads.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::bench::{Bench, counted};
use crate::client::{Pace, Plan, Tally, Work, drive};
use crate::report::Setting;

/// A load that runs at the same time as another.
pub(super) struct Companion {
    thread: JoinHandle<Tally>,
    name: String,
    begun_s: f64,
    seconds: f64,
    pace: Pace,
    connections: usize,
}

impl Companion {
    /// Starts work in `runtime`. Its requests are numbered from 0.
    pub(super) fn start<W: Work>(
        bench: &Bench,
        runtime: Runtime,
        name: &str,
        work: &Arc<W>,
        (pace, seconds, connections): (Pace, f64, usize),
    ) -> Self {
        let plan = Plan {
            pace,
            duration: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(seconds - counted(seconds)),
            connections,
            first: 0,
            end: None,
        };
        let (target, work, begun_s) = (Arc::clone(&bench.target), Arc::clone(work), bench.sampler.now());
        let thread = std::thread::spawn(move || drive(&runtime, &target, &work, plan).0);
        Self { thread, name: name.to_owned(), begun_s, seconds, pace, connections }
    }

    /// Waits for the end of the load, and adds it to the report.
    pub(super) fn finish(self, bench: &mut Bench) -> Result<Tally> {
        let tally = self.thread.join().ok().context("a load that ran at the same time failed")?;
        let rate = match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed => None,
        };
        let setting = Setting {
            name: &self.name,
            begun_s: self.begun_s,
            seconds: self.seconds,
            counted_s: counted(self.seconds),
            rate,
            connections: self.connections,
        };
        bench.report.phase(setting, &tally, Vec::new())?;
        Ok(tally)
    }
}
