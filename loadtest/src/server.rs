//! The server under load: one that is started here on an empty directory, or one that is already running.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::Agent;

/// A server to send requests to. A server that was started here ends when this is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    own: Option<(Child, tempfile::TempDir)>,
}

impl Server {
    /// Uses a running server.
    pub(crate) fn running(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), own: None }
    }

    /// Starts `binary` on a free port and an empty directory, and waits for its ready line.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        Self::start_in(binary, &std::env::temp_dir(), &[])
    }

    /// Like [`start`](Self::start), with the server's directory in `parent`, and more settings as environment
    /// variables.
    pub(crate) fn start_in(binary: &Path, parent: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let dir = tempfile::tempdir_in(parent).context("cannot make a directory")?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"])
            .arg(dir.path().join("data"))
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().context("the server has no stdout")?;
        BufReader::new(out).read_line(&mut line).context("cannot read the server's ready line")?;
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        let server = Self { url: url.clone().unwrap_or_default(), own: Some((child, dir)) };
        if url.is_none() {
            bail!("the server did not become ready: {line:?}");
        }
        Ok(server)
    }

    /// Reads `/metrics` and returns the sum of a metric over its series.
    pub(crate) fn metric(&self, agent: &Agent, name: &str) -> Result<f64> {
        Ok(sum(&self.scrape(agent)?, name))
    }

    /// Returns the text of `/metrics`.
    pub(crate) fn scrape(&self, agent: &Agent) -> Result<String> {
        Ok(agent.get(format!("{}/metrics", self.url)).call()?.body_mut().read_to_string()?)
    }
}

/// Returns the sum of a metric over its series.
pub(crate) fn sum(scrape: &str, name: &str) -> f64 {
    let values = scrape.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        if !rest.starts_with(['{', ' ']) {
            return None;
        }
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    });
    values.sum()
}

/// Returns a histogram that has one series: upper bounds and cumulative counts, ascending.
pub(crate) fn buckets(scrape: &str, name: &str) -> Vec<(f64, f64)> {
    let bucket = |line: &str| {
        let rest = line.strip_prefix(name)?.strip_prefix("_bucket{")?;
        let (labels, count) = rest.rsplit_once("} ")?;
        let (_, bound) = labels.split_once("le=\"")?;
        let bound = bound.split('"').next()?;
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
        Some((bound, count.parse().ok()?))
    };
    scrape.lines().filter_map(bucket).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.own {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a client with one connection for each thread.
pub(crate) fn agent(threads: usize) -> Agent {
    Agent::config_builder()
        .proxy(None)
        .max_idle_connections_per_host(threads)
        .max_idle_connections(threads)
        .timeout_global(Some(Duration::from_secs(300)))
        .build()
        .new_agent()
}
