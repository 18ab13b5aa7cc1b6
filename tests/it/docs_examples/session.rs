//! The folder and the server for the examples of one page.
//! In: examples. Out: the output and the exit status of each. It knows nothing of Markdown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use regex::{Captures, Regex};

use super::page::Directive;
use crate::support::{command, library};

const COMMAND_WITHIN: Duration = Duration::from_secs(120);
const SERVER_WITHIN: Duration = Duration::from_secs(60);
/// The port that pages name for the server.
const PORT: u16 = 8080;
/// The folder that pages name, in place of the temporary one.
const FOLDER: &str = "/srv/hapax";
/// The ports to choose from. Systems assign only higher ports automatically.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// The verbs that talk to a server.
const CLIENTS: &str = "import|check|export|backup|health|audit";

static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(127\.0\.0\.1|0\.0\.0\.0|localhost):(\d{2,5})\b").unwrap());

pub struct Session {
    root: library::Dir,
    server: Option<Child>,
    /// The environment variables of the page's server.
    variables: Vec<(String, String)>,
    /// The ports that the page names, and the ports that are used for them.
    ports: BTreeMap<u16, u16>,
}

/// The result of a command.
pub struct Ran {
    pub status: i32,
    /// The output. It includes stderr, in the order of writing, unless stderr was kept apart.
    pub stdout: String,
    /// The output on stderr; empty if stderr was not kept apart.
    pub stderr: String,
}

impl Session {
    pub fn new() -> Self {
        let root = library::dir();
        fs::create_dir(root.path().join("bin")).unwrap();
        fs::create_dir(root.path().join("page")).unwrap();
        let mut session = Self { root, server: None, variables: Vec::new(), ports: BTreeMap::new() };
        session.write_hapax();
        session
    }

    /// Puts a script `hapax` on the path. It adds the page's server to arguments that name no server.
    fn write_hapax(&mut self) {
        let (binary, port) = (command::binary(), self.port(PORT));
        let script = format!(
            "#!/bin/sh\nfor word; do case $word in --server|--server=*|--data-dir|--data-dir=*|--config|--listen|--help) \
             exec '{binary}' \"$@\";; esac; done\n\
             case $1 in {CLIENTS}) verb=$1; shift; exec '{binary}' $verb --server http://127.0.0.1:{port} \"$@\";; \
             collection) verb=$2; shift 2; exec '{binary}' collection $verb --server http://127.0.0.1:{port} \"$@\";; esac\n\
             exec '{binary}' \"$@\"\n"
        );
        let path = self.root.path().join("bin/hapax");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the port that is used in place of a port that the page names.
    fn port(&mut self, named: u16) -> u16 {
        *self.ports.entry(named).or_insert_with(free_port)
    }

    /// Replaces the ports and paths that pages name by those of this session.
    fn localised(&mut self, text: &str) -> String {
        let address = |found: &Captures<'_>| match found[2].parse() {
            Ok(port) => format!("{}:{}", &found[1], self.port(port)),
            Err(_) => found[0].to_owned(),
        };
        let text = ADDRESS.replace_all(text, address).into_owned();
        text.replace(FOLDER, self.folder().to_str().expect("UTF-8"))
    }

    /// Replaces the ports and paths of this session by those that pages name.
    fn published(&self, text: &str) -> String {
        let mut text = text.replace(self.folder().to_str().expect("UTF-8"), FOLDER);
        for (named, port) in &self.ports {
            text = text.replace(&format!(":{port}"), &format!(":{named}"));
        }
        text
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("page")
    }

    /// Stops, starts or restarts the server, as an example needs it.
    pub fn prepare(&mut self, directive: Option<&Directive>) -> Result<(), String> {
        match directive {
            Some(Directive::Stopped) => {
                self.stop();
                return Ok(());
            }
            Some(Directive::With(variables)) => {
                self.stop();
                self.variables = variables.clone();
            }
            None if self.server.is_some() => return Ok(()),
            None => {}
        }
        let listen = format!("127.0.0.1:{}", self.port(PORT));
        let mut variables = vec![("HAPAX__SERVER__LISTEN".to_owned(), listen)];
        for (name, value) in self.variables.clone() {
            variables.push((name, self.localised(&value)));
        }
        self.serve("exec hapax serve", &variables).map(|_| ())
    }

    /// Runs commands to their end. Stderr is part of `stdout` unless it is kept `apart`.
    pub fn run(&mut self, text: &str, apart: bool) -> Result<Ran, String> {
        let stdout = self.file("out");
        let stderr = if apart { self.file("err") } else { stdout.try_clone().unwrap() };
        let mut child = self.shell(text).stdout(stdout).stderr(stderr).spawn().expect("sh is there");
        let Some(status) = wait(&mut child, COMMAND_WITHIN) else {
            signal(&child, "-KILL");
            let _ = child.wait();
            return Err(format!("it does not end within {COMMAND_WITHIN:?}; so far:\n{}", self.printed("out")));
        };
        let stderr = if apart { self.printed("err") } else { String::new() };
        Ok(Ran { status: status.code().unwrap_or(-1), stdout: self.printed("out"), stderr })
    }

    /// Runs commands. The last one is a server, which replaces the running one. Returns its first output.
    pub fn start(&mut self, text: &str) -> Result<String, String> {
        self.stop();
        let text = text.replace("\\\n", " ");
        let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", &text));
        let last = last.replacen("hapax serve", "exec hapax serve", 1);
        let listen = format!("127.0.0.1:{}", self.port(PORT));
        self.serve(&format!("{before}\n{last}"), &[("HAPAX__SERVER__LISTEN".to_owned(), listen)])
    }

    fn serve(&mut self, text: &str, variables: &[(String, String)]) -> Result<String, String> {
        let (stdout, stderr) = (self.file("server"), self.file("log"));
        let mut command = self.shell(text);
        // On a busy machine, requests wait longer for a thread than in the examples, but this is not an overload.
        command.env("HAPAX__SERVER__QUEUE_DELAY_MAX_MS", "0").env("HAPAX__CPU__QUEUE_DELAY_MAX_MS", "0");
        command.env("HAPAX__SERVER__BATCH_DELAY_MAX_MS", "0");
        command.envs(variables.iter().cloned()).stdout(stdout).stderr(stderr);
        let mut child = command.spawn().expect("sh is there");
        let since = Instant::now();
        let told = loop {
            let printed = self.printed("server");
            if printed.contains("hapax ready on ") && printed.ends_with('\n') {
                self.server = Some(child);
                return Ok(printed);
            }
            if let Some(status) = child.try_wait().expect("the child can be waited for") {
                break format!("the server ended with {status}");
            }
            if since.elapsed() > SERVER_WITHIN {
                signal(&child, "-KILL");
                let _ = child.wait();
                break format!("the server is not ready within {SERVER_WITHIN:?}");
            }
            thread::sleep(Duration::from_millis(10));
        };
        Err(format!("{told}; its log:\n{}", self.printed("log")))
    }

    /// Ends the server and waits until it has ended.
    fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        signal(&server, "-TERM");
        if wait(&mut server, SERVER_WITHIN).is_none() {
            signal(&server, "-KILL");
            let _ = server.wait();
        }
    }

    fn shell(&mut self, text: &str) -> Command {
        let text = self.localised(text);
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAPAX")) {
            command.env_remove(name);
        }
        let path = format!("{}:{}", self.root.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        command.args(["-e", "-c", &text]).env("PATH", path).current_dir(self.folder()).stdin(Stdio::null());
        // The process has its own group, so that a signal reaches all processes that it has started.
        command.process_group(0);
        command
    }

    fn file(&self, name: &str) -> File {
        File::create(self.root.path().join(name)).unwrap();
        File::options().append(true).open(self.root.path().join(name)).unwrap()
    }

    fn printed(&self, name: &str) -> String {
        let bytes = fs::read(self.root.path().join(name)).unwrap();
        self.published(&String::from_utf8_lossy(&bytes))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

fn wait(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let since = Instant::now();
    while since.elapsed() < within {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Sends a signal to the child and to every process that it has started.
fn signal(child: &Child, signal: &str) {
    let _ = Command::new("kill").args([signal, "--", &format!("-{}", child.id())]).status();
}

fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = std::process::id() as u16;
    loop {
        let next = begin.wrapping_mul(31).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + next % (PORTS.end - PORTS.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
