//! The server under load: one that is started here on an empty directory, or one that is already running.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::pinning;

/// A server to send requests to. A server that was started here ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Its process, if known.
    pub(crate) pid: Option<u32>,
    own: Own,
}

/// The part of a server that ends with it.
enum Own {
    /// It was running before.
    Nothing,
    /// It was started here, with a directory of its own.
    Process(Child, tempfile::TempDir),
    /// It runs in this process.
    Threads(tokio::runtime::Runtime),
}

/// How to start a server.
pub(crate) struct Launch<'a> {
    pub(crate) binary: &'a Path,
    /// The directory in which its own is made.
    pub(crate) parent: &'a Path,
    /// Settings as environment variables.
    pub(crate) settings: &'a [(String, String)],
    /// The processors that it may use; empty: all.
    pub(crate) processors: &'a [usize],
}

impl Server {
    /// Uses a running server.
    pub(crate) fn running(url: &str, pid: Option<u32>) -> Result<Self> {
        let Some(rest) = url.trim_end_matches('/').strip_prefix("http://") else {
            bail!("{url:?} must begin with http://; this program speaks no TLS");
        };
        let with_port = if rest.contains(':') { rest.to_owned() } else { format!("{rest}:80") };
        let mut addresses = with_port.to_socket_addrs().with_context(|| format!("cannot resolve {url:?}"))?;
        let address = addresses.next().with_context(|| format!("{url:?} has no address"))?;
        Ok(Self { address, pid, own: Own::Nothing })
    }

    /// Uses a server that runs in this runtime.
    pub(crate) fn sink(address: SocketAddr, runtime: tokio::runtime::Runtime) -> Self {
        Self { address, pid: None, own: Own::Threads(runtime) }
    }

    /// Starts a server on a free port and an empty directory, and waits for its ready line.
    pub(crate) fn start(launch: &Launch<'_>) -> Result<Self> {
        let dir = tempfile::tempdir_in(launch.parent).context("cannot make a directory")?;
        let mut command = Command::new(launch.binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"])
            .arg(dir.path().join("data"))
            .env("HAPAX__BACKUP__DIR", dir.path().join("backups"))
            .envs(launch.settings.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = spawn(command, launch.processors);
        let mut child = child.with_context(|| format!("cannot start {}", launch.binary.display()))?;
        let mut line = String::new();
        let out = child.stdout.take().context("the server has no stdout")?;
        BufReader::new(out).read_line(&mut line).context("cannot read the server's ready line")?;
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        let pid = child.id();
        // From here on it is ended even if something fails.
        let mut server = Self { address: ([127, 0, 0, 1], 0).into(), pid: Some(pid), own: Own::Process(child, dir) };
        let Some(url) = url else { bail!("the server did not become ready: {line:?}") };
        server.address = Self::running(&url, None)?.address;
        Ok(server)
    }
}

/// Starts a process from a thread that is bound to the processors, because a process inherits them.
fn spawn(mut command: Command, processors: &[usize]) -> Result<Child> {
    if processors.is_empty() {
        return Ok(command.spawn()?);
    }
    let processors = processors.to_vec();
    let bound = std::thread::spawn(move || {
        pinning::bind(&processors)?;
        Ok(command.spawn()?)
    });
    bound.join().expect("the thread returns its errors")
}

impl Drop for Server {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.own, Own::Nothing) {
            Own::Nothing => {}
            Own::Process(mut child, dir) => {
                let _ = child.kill();
                let _ = child.wait();
                drop(dir);
            }
            Own::Threads(runtime) => runtime.shutdown_background(),
        }
    }
}
