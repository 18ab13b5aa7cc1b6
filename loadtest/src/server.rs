//! The server under load: one that this program starts on an empty directory, or one that is already running.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::pinning;

/// A server to send requests to. A server that this program started ends when this value is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The process id of the server, if it is known.
    pub(crate) pid: Option<u32>,
    own: Own,
}

/// The parts of a server that end when it is dropped.
enum Own {
    /// The server was already running.
    Nothing,
    /// This program started the server, with its own directory.
    Process(Box<Started>),
    /// The server runs in this process.
    Threads(tokio::runtime::Runtime),
}

/// How to start a server.
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    /// The directory in which the server's own directory is made.
    pub(crate) parent: PathBuf,
    /// Settings as environment variables.
    pub(crate) settings: Vec<(String, String)>,
    /// The processors that the server may use. If the list is empty, it may use all.
    pub(crate) processors: Vec<usize>,
}

struct Started {
    child: Child,
    dir: tempfile::TempDir,
    launch: Launch,
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
    pub(crate) fn start(launch: Launch) -> Result<Self> {
        let dir = tempfile::tempdir_in(&launch.parent).context("cannot make a directory")?;
        // `Started` ends the process when it is dropped, and therefore also if a later step fails.
        let mut started = Started { child: launch.start(dir.path())?, dir, launch };
        let (address, pid) = (started.address()?, Some(started.child.id()));
        Ok(Self { address, pid, own: Own::Process(Box::new(started)) })
    }

    /// Ends the server, and starts it again on its directory. Afterwards only its index is in memory: neither the
    /// server nor the system has the contents of its files in a cache.
    pub(crate) fn restart_cold(&mut self) -> Result<()> {
        let Own::Process(started) = &mut self.own else {
            bail!("this scenario starts its server again, so it cannot use a running one");
        };
        let pid = rustix::process::Pid::from_child(&started.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("cannot end the server")?;
        started.child.wait().context("cannot wait for the end of the server")?;
        started.child = started.launch.start(started.dir.path())?;
        (self.address, self.pid) = (started.address()?, Some(started.child.id()));
        forget_pages(&started.dir.path().join("data"))
    }
}

impl Started {
    /// Waits for the line that the server writes when it is ready, and returns the address in it.
    fn address(&mut self) -> Result<SocketAddr> {
        let mut line = String::new();
        let out = self.child.stdout.take().context("the server has no stdout")?;
        BufReader::new(out).read_line(&mut line).context("cannot read the server's ready line")?;
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let Some(url) = url else { bail!("the server did not become ready: {line:?}") };
        Ok(Server::running(url, None)?.address)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Launch {
    fn start(&self, dir: &Path) -> Result<Child> {
        let mut command = Command::new(&self.binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"])
            .arg(dir.join("data"))
            .env("HAPAX__BACKUP__DIR", dir.join("backups"))
            .envs(self.settings.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        spawn(command, &self.processors).with_context(|| format!("cannot start {}", self.binary.display()))
    }
}

/// Writes all files in the directory to the disk, and makes the system drop their contents from its cache.
fn forget_pages(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            forget_pages(&path)?;
            continue;
        }
        let forget = || -> std::io::Result<()> {
            let file = File::open(&path)?;
            file.sync_all()?;
            Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
        };
        forget().with_context(|| format!("cannot clear the cache of {}", path.display()))?;
    }
    Ok(())
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
        if let Own::Threads(runtime) = std::mem::replace(&mut self.own, Own::Nothing) {
            runtime.shutdown_background();
        }
    }
}
