//! Everything that a scenario uses: the server, this client's runtime, the documents and the report.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::{Method, Uri};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Answer, Connection, Latencies, Pace, Plan, Request, Tally, Target, Work, drive};
use crate::memory::Sampler;
use crate::options::Args;
use crate::pinning::{self, Split};
use crate::report::{Report, Setting};
use crate::server::{Launch, Server};
use crate::texts::Texts;

/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of clients in each step, when the capacity is measured.
const RAMP: [usize; 4] = [8, 32, 64, 128];
/// The seconds of each step; fewer in short runs.
const RAMP_STEP_S: f64 = 1.5;
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Bench {
    pub(crate) args: Args,
    /// The server. It ends when this is dropped.
    server: Server,
    pub(crate) runtime: Runtime,
    pub(crate) target: Arc<Target>,
    pub(crate) texts: Arc<Texts>,
    pub(crate) report: Report,
    pub(crate) sampler: Sampler,
    /// The number of the next request, so that no phase repeats an id of another phase.
    next: u64,
}

impl Bench {
    /// Starts a server, or uses a running one. `settings` are environment variables, which `--set` overrides.
    pub(crate) fn new(scenario: &str, args: &Args, settings: &[(&str, &str)]) -> Result<Self> {
        let split = args.pin.then(Split::half).transpose()?;
        let mut all: Vec<_> = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        all.extend(args.set.iter().cloned());
        let server = match &args.server {
            Some(url) => Server::running(url, args.pid)?,
            None => {
                let processors = split.as_ref().map_or_else(Vec::new, |split| split.server.clone());
                let (binary, parent) = (args.binary.clone(), std::env::temp_dir());
                Server::start(Launch { binary, parent, settings: all, processors })?
            }
        };
        Self::with(scenario, args, server, split.as_ref())
    }

    /// Like [`Self::new`], with the given server.
    pub(crate) fn with(scenario: &str, args: &Args, server: Server, split: Option<&Split>) -> Result<Self> {
        // The runtime and the dispatcher start their threads later, so these threads inherit this binding.
        split.map(|split| pinning::bind(&split.client)).transpose()?;
        Ok(Self {
            target: target(&server, args)?,
            sampler: Sampler::start(server.pid, SAMPLE_EVERY),
            runtime: runtime(args.threads, 0)?,
            texts: Arc::new(Texts::new(args.seed, args.bytes)),
            report: Report::new(scenario, args),
            args: args.clone(),
            server,
            next: 0,
        })
    }

    /// Starts the server again, and makes the system drop the server's files from its cache.
    pub(crate) fn restart_cold(&mut self) -> Result<()> {
        self.server.restart_cold()?;
        self.target = target(&self.server, &self.args)?;
        self.sampler = Sampler::start(self.server.pid, SAMPLE_EVERY);
        Ok(())
    }

    /// Returns the bytes that the server has read from the disk, if its process is known.
    pub(crate) fn disk_bytes_read(&self) -> Option<u64> {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", self.server.pid?)).ok()?;
        counts.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
    }

    /// Drives the work for some time, and adds the result to the report.
    pub(crate) fn phase<W: Work>(&mut self, name: &str, work: &Arc<W>, pace: Pace, seconds: f64) -> Result<Tally> {
        let connections = if matches!(pace, Pace::Closed) { self.clients() } else { self.args.connections };
        self.phase_with(name, work, pace, seconds, connections)
    }

    /// Does the same as [`Self::phase`], and requires that every answer is right.
    pub(crate) fn faultless<W: Work>(&mut self, name: &str, work: &Arc<W>, pace: Pace, seconds: f64) -> Result<Tally> {
        let tally = self.phase(name, work, pace, seconds)?;
        self.report.nothing_wrong(name, &tally);
        Ok(tally)
    }

    pub(crate) fn phase_with<W: Work>(
        &mut self,
        name: &str,
        work: &Arc<W>,
        pace: Pace,
        seconds: f64,
        connections: usize,
    ) -> Result<Tally> {
        let begun_s = self.sampler.now();
        let tally = self.drive(work, pace, seconds, connections);
        let rate = match pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed => None,
        };
        let setting = Setting { name, begun_s, seconds, counted_s: counted(seconds), rate, connections };
        self.report.phase(setting, &tally, self.sampler.since(begun_s))?;
        Ok(tally)
    }

    /// Drives the work and reports nothing.
    pub(crate) fn drive<W: Work>(&mut self, work: &Arc<W>, pace: Pace, seconds: f64, connections: usize) -> Tally {
        let warm_up = Duration::from_secs_f64(seconds - counted(seconds));
        let duration = Duration::from_secs_f64(seconds);
        let plan = Plan { pace, duration, warm_up, connections, first: self.next, end: None };
        let (tally, next) = drive(&self.runtime, &self.target, work, plan);
        self.next = next;
        tally
    }

    /// Returns the pace for requests at this rate. The options say how intervals vary.
    pub(crate) fn open(&self, rate: f64) -> Pace {
        Pace::Open { rate, arrivals: self.args.arrivals, seed: self.args.seed }
    }

    /// Returns the pace that the options name. If they name a share of the capacity, measures the capacity first.
    pub(crate) fn pace<W: Work>(&mut self, work: &Arc<W>) -> Result<Pace> {
        if self.args.clients.is_some() {
            return Ok(Pace::Closed);
        }
        match self.args.rate {
            Some(rate) => Ok(self.open(rate)),
            None => {
                let rate = self.capacity(work)? * self.args.load;
                Ok(self.open(rate))
            }
        }
    }

    /// Returns how many requests per second are answered if enough clients wait for answers.
    pub(crate) fn capacity<W: Work>(&mut self, work: &Arc<W>) -> Result<f64> {
        let (mut best, step_s) = (0.0, RAMP_STEP_S.min(self.args.seconds / 4.0).max(0.4));
        for clients in RAMP {
            let tally = self.drive(work, Pace::Closed, step_s, clients);
            if tally.wrongs() > 0 {
                let kind = tally.kinds.values().find(|kind| kind.wrongs() > 0);
                let error = kind.and_then(|kind| kind.wrong.keys().next()).cloned().unwrap_or_default();
                bail!("the capacity cannot be measured: {error}");
            }
            let rate = tally.good().len() as f64 / counted(step_s);
            let gains = rate > best * 1.03;
            best = f64::max(best, rate);
            if !gains {
                break;
            }
        }
        self.report.figure("capacity, requests/s", best)?;
        Ok(best)
    }

    fn clients(&self) -> usize {
        self.args.clients.unwrap_or(64)
    }

    /// Sends one request outside of the load, and returns its answer.
    pub(crate) fn ask(&self, request: &Request) -> Result<Answer> {
        let mut connection = Connection::new(Arc::clone(&self.target));
        self.runtime.block_on(connection.send(request))
    }

    /// Sends a request that must be answered with a success status.
    pub(crate) fn must(&self, request: &Request) -> Result<Answer> {
        let answer = self.ask(request)?;
        if !(200..300).contains(&answer.status) {
            bail!("{} {} was answered with {}: {}", request.method, request.target, answer.status, answer.excerpt());
        }
        Ok(answer)
    }

    /// Returns the text of `/metrics`.
    pub(crate) fn scrape(&self) -> Result<String> {
        let answer = self.must(&Request::bare("metrics", Method::GET, Uri::from_static("/metrics")))?;
        String::from_utf8(answer.body).context("metrics are text")
    }

    /// Requires the recall that theory predicts, at every level that was used.
    pub(crate) fn expect_recall(&mut self, recall: Vec<crate::queries::RecallAt>) {
        for level in &recall {
            let what = format!("{} at J {:.2}: found share and expected share differ by", level.group, level.jaccard);
            self.report.at_most(&what, (level.found - level.expected).abs(), level.tolerance(), false);
        }
        self.report.recall.extend(recall);
    }

    /// Requires that this quantile of the latencies is at most this many milliseconds, if the run is strict.
    pub(crate) fn expect_ms(&mut self, what: &str, latencies: &Latencies, quantile: f64, bound_ms: f64) {
        self.report.at_most(what, latencies.value_at_quantile(quantile) as f64 / 1e3, bound_ms, true);
    }
}

/// Returns the number of seconds of a phase in which latencies count: all seconds except those of the warm-up.
pub(crate) fn counted(seconds: f64) -> f64 {
    seconds - (seconds / 5.0).min(2.0)
}

/// Returns a runtime for this client's requests. A higher `nice` leaves processors to other threads.
pub(crate) fn runtime(threads: Option<usize>, nice: i32) -> Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(processors.div_ceil(2)).max(1);
    let lower = move || {
        if nice > 0 {
            // On Linux this is the priority of the thread alone. If it fails, the figures are only less precise.
            let _ = rustix::process::setpriority_process(None, nice);
        }
    };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).on_thread_start(lower).enable_all();
    builder.build().context("cannot start threads")
}

fn target(server: &Server, args: &Args) -> Result<Arc<Target>> {
    let key = args.api_key_file.as_deref().map(read_key).transpose()?;
    Target::new(server.address, key.as_deref(), TIMEOUT)
}

fn read_key(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
}
