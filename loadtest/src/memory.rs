//! A process -> its memory over time, from `/proc/PID/status`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The memory of the server at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Memory {
    /// Seconds since the first sample.
    pub(crate) at_s: f64,
    /// Resident memory, in bytes.
    pub(crate) rss: u64,
    /// The part of the resident memory that no file backs, in bytes.
    pub(crate) anonymous: u64,
}

/// Takes samples in the background until it is dropped.
pub(crate) struct Sampler {
    samples: Arc<Mutex<Vec<Memory>>>,
    stop: Arc<AtomicBool>,
    begun: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Samples the process `pid`. If it is `None`, there are no samples.
    pub(crate) fn start(pid: Option<u32>, interval: Duration) -> Self {
        let (samples, stop, begun) = (Arc::default(), Arc::new(AtomicBool::new(false)), Instant::now());
        let thread = pid.map(|pid| {
            let (samples, stop) = (Arc::clone(&samples), Arc::clone(&stop));
            std::thread::spawn(move || sample(pid, interval, begun, &samples, &stop))
        });
        Self { samples, stop, begun, thread }
    }

    /// Returns the seconds since the first sample.
    pub(crate) fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Returns the samples since that time.
    pub(crate) fn since(&self, at_s: f64) -> Vec<Memory> {
        let samples = self.samples.lock().expect("not poisoned");
        samples.iter().filter(|sample| sample.at_s >= at_s).copied().collect()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn sample(pid: u32, interval: Duration, begun: Instant, samples: &Mutex<Vec<Memory>>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        if let Some((rss, anonymous)) = of(pid) {
            let sample = Memory { at_s: begun.elapsed().as_secs_f64(), rss, anonymous };
            samples.lock().expect("not poisoned").push(sample);
        }
        std::thread::park_timeout(interval);
    }
}

/// Returns the resident and the anonymous memory of a process, in bytes.
pub(crate) fn of(pid: u32) -> Option<(u64, u64)> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(rest.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some((field("VmRSS")?, field("RssAnon")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_figures_are_read() {
        let status = "Name:\thapax\nVmHWM:\t  9000 kB\nVmRSS:\t  2048 kB\nRssAnon:\t    1024 kB\nRssFile:\t 1 kB\n";
        assert_eq!(parse(status), Some((2 << 20, 1 << 20)));
        assert_eq!(parse("Name:\tzombie\n"), None);
    }
}
