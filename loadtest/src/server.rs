//! The server under load: started here on an empty directory, or somebody else's.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::Agent;

/// A server to send to. One that was started here ends with this value.
pub(crate) struct Server {
    /// Its URL.
    pub(crate) url: String,
    own: Option<(Child, tempfile::TempDir)>,
}

impl Server {
    /// One that runs already.
    pub(crate) fn running(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), own: None }
    }

    /// Starts `binary` on a free port and an empty directory, and waits for its ready line.
    pub(crate) fn start(binary: &Path) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"])
            .arg(dir.path().join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().context("the server has no stdout")?;
        BufReader::new(out).read_line(&mut line).context("the server's ready line")?;
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        let server = Self { url: url.clone().unwrap_or_default(), own: Some((child, dir)) };
        if url.is_none() {
            bail!("the server did not get ready: {line:?}");
        }
        Ok(server)
    }

    /// The sum of a metric over its series, from `/metrics`.
    pub(crate) fn metric(&self, agent: &Agent, name: &str) -> Result<f64> {
        let text = agent.get(format!("{}/metrics", self.url)).call()?.body_mut().read_to_string()?;
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            if !rest.starts_with(['{', ' ']) {
                return None;
            }
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        });
        Ok(values.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.own {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A client with one connection a thread.
pub(crate) fn agent(threads: usize) -> Agent {
    Agent::config_builder()
        .proxy(None)
        .max_idle_connections_per_host(threads)
        .max_idle_connections(threads)
        .timeout_global(Some(Duration::from_secs(300)))
        .build()
        .new_agent()
}
