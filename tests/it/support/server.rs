//! The real binary as a child process: started on a free port, stopped, or killed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::command;

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(60);

/// A server process that may not be ready yet. It is killed when this is dropped.
pub struct Starting {
    child: Child,
    log: PathBuf,
}

/// A server that has reported that it is ready. It is killed when this is dropped.
pub struct Server {
    process: Starting,
    address: Address,
    documents: u64,
}

/// The address of a server. It stays valid after the server has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Returns the address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl Starting {
    /// Runs `hapax serve` on `data_dir`, which need not exist. The log is next to this directory.
    pub fn spawn(data_dir: &Path) -> Self {
        Self::spawn_with(data_dir, &[], &[])
    }

    /// Does the same as [`spawn`](Self::spawn), with more arguments and environment variables.
    pub fn spawn_with(data_dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::spawn_by(&[], data_dir, arguments, environment)
    }

    /// Does the same as [`spawn_with`](Self::spawn_with), through a command that executes its last arguments.
    pub fn spawn_by(by: &[&str], data_dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let log = data_dir.with_extension("log");
        let log_file = OpenOptions::new().create(true).append(true).open(&log).expect("the log can be written");
        let mut command = command::by(by, &["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        let child = command
            .arg(data_dir)
            .args(arguments)
            // On a busy machine, requests wait. Only in tests of overload, a wait may be the reason for a refusal.
            .env("HAPAX__SERVER__QUEUE_DELAY_MAX_MS", "0")
            .env("HAPAX__CPU__QUEUE_DELAY_MAX_MS", "0")
            .env("HAPAX__SERVER__BATCH_DELAY_MAX_MS", "0")
            .envs(environment.iter().copied())
            .current_dir(data_dir.parent().expect("the data directory has a parent"))
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .expect("the binary starts");
        Self { child, log }
    }

    /// Runs the server with listening sockets, as a service manager that holds them does. `names` are the names of the
    /// sockets, with colons between them.
    pub fn spawn_listening(
        data_dir: &Path,
        sockets: &[&TcpListener],
        names: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        // The copies have high numbers, so that none of them is 3 or 4. Children inherit them.
        let copies: Vec<OwnedFd> = sockets.iter().map(|socket| inherited(socket)).collect();
        let moves = copies.iter().zip(3..).map(|(copy, number)| format!("{number}<&{0} {0}<&- ", copy.as_raw_fd()));
        let script = format!("LISTEN_PID=$$ LISTEN_FDS={} exec \"$@\" {}", sockets.len(), moves.collect::<String>());
        // dash, which is often sh, knows only descriptors of one digit.
        Self::spawn_by(
            &["bash", "-c", &script, "bash"],
            data_dir,
            &[],
            &[&[("LISTEN_FDNAMES", names)], environment].concat(),
        )
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the line that says that the server is ready.
    pub fn ready(self) -> Server {
        self.ready_or_ended().unwrap_or_else(|(status, log)| panic!("it ended with {status}; {log}"))
    }

    /// Waits for this line, or for the end of the process. At the end, returns the exit status and the end of the log.
    pub fn ready_or_ended(mut self) -> Result<Server, (ExitStatus, String)> {
        let stdout = self.child.stdout.take().expect("stdout is piped");
        let (send, lines) = mpsc::channel();
        // The thread reads to the end, so that the server never writes into a closed pipe.
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| _ = send.send(line))
        });
        let line = match lines.recv_timeout(READY_WITHIN) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err((self.wait(), self.log_tail())),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no ready line; {}", self.log_tail()),
        };
        let (address, documents) = parse_ready(&line).unwrap_or_else(|| panic!("not a ready line: {line}"));
        Ok(Server { process: self, address, documents })
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(mut self) {
        self.kill_and_reap();
    }

    /// Waits until the process ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => return status,
                None if since.elapsed() > STOPPED_WITHIN => panic!("it does not end; {}", self.log_tail()),
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Returns the end of the log, over all runs of the server.
    pub fn log_tail(&self) -> String {
        let lines =
            File::open(&self.log).map(|log| BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
        let lines = lines.unwrap_or_default();
        format!("its log ends:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"))
    }

    fn kill_and_reap(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub fn start(data_dir: &Path) -> Self {
        Starting::spawn(data_dir).ready()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the address of a path.
    pub fn url(&self, path: &str) -> String {
        self.address.url(path)
    }

    /// Returns the address for connections without an HTTP library.
    pub fn socket(&self) -> SocketAddr {
        let url = self.url("");
        let (_, address) = url.split_once("://").expect("a URL has a scheme");
        address.parse().expect("a server of a test listens on an IP address")
    }

    /// Returns the number of documents in the ready line.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends SIGKILL, whatever the server is doing.
    pub fn kill(self) {
        self.process.kill();
    }

    /// Sends SIGTERM, and returns the exit status.
    pub fn terminate(mut self) -> ExitStatus {
        self.ask_to_stop();
        self.wait()
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        self.send("-TERM");
    }

    /// Sends SIGHUP.
    pub fn hang_up(&self) {
        self.send("-HUP");
    }

    fn send(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status().expect("kill(1) is there");
        assert!(sent.success());
    }

    /// Waits until the process ends.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }

    /// Returns the end of its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

fn inherited(socket: &TcpListener) -> OwnedFd {
    let copy = rustix::io::fcntl_dupfd_cloexec(socket, 100).expect("a descriptor is free");
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty()).expect("a flag of a descriptor can be cleared");
    copy
}

/// `hapax ready on http://127.0.0.1:PORT (data in DIR, N documents)`
fn parse_ready(line: &str) -> Option<(Address, u64)> {
    let (base, rest) = line.strip_prefix("hapax ready on ")?.split_once(" (data in ")?;
    // If probes have a listener of their own, its address follows.
    let base = base.split(',').next()?;
    let rest = rest.strip_suffix(" documents)").or_else(|| rest.strip_suffix(" document)"))?;
    let (_, documents) = rest.rsplit_once(", ")?;
    Some((Address(base.to_owned()), documents.parse().ok()?))
}

#[test]
fn the_ready_line_is_read() {
    let line = "hapax ready on http://127.0.0.1:4711 (data in /a, b (c), 12 documents)";
    assert_eq!(parse_ready(line), Some((Address("http://127.0.0.1:4711".to_owned()), 12)));
    assert_eq!(parse_ready("hapax ready on http://127.0.0.1:4711"), None);
}
