//! Real clusters of Redis or Valkey servers on 127.0.0.1, which `contrib/redis-cluster` starts.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::server::{Server, Starting};
use super::sources::root;

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Redis,
    Valkey,
}

impl Kind {
    /// Returns the server of this kind, or `None` if it is not installed. In CI it must be installed.
    pub fn server(self) -> Option<String> {
        let (server, source) = match self {
            Self::Redis => ("redis-server".to_owned(), "the package redis-server"),
            Self::Valkey => (
                std::env::var("HAPAX_VALKEY_SERVER").unwrap_or_else(|_| "valkey-server".to_owned()),
                "`make test-rust` installs it, and sets HAPAX_VALKEY_SERVER to its path",
            ),
        };
        if Command::new(&server).arg("--version").output().is_ok_and(|output| output.status.success()) {
            return Some(server);
        }
        assert!(std::env::var_os("CI").is_none(), "CI has no {server}: {source}");
        eprintln!("LEFT OUT: this test needs {server} ({source})");
        None
    }
}

/// A running cluster, with its data in its own directory. Its servers end when it is dropped.
pub struct RedisCluster {
    dir: tempfile::TempDir,
    nodes: Vec<String>,
}

impl RedisCluster {
    /// Starts three primaries and three replicas. `None` if this kind of server is not installed.
    pub fn up(kind: Kind) -> Option<Self> {
        Self::up_with(kind, &[])
    }

    /// Does the same as [`RedisCluster::up`], with more options of `redis-cluster up`.
    pub fn up_with(kind: Kind, options: &[&str]) -> Option<Self> {
        let server = kind.server()?;
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut cluster = Self { dir, nodes: Vec::new() };
        let arguments = [&["--port", "0", "--server", &server], options].concat();
        cluster.nodes = cluster.run("up", &arguments).lines().map(str::to_owned).collect();
        Some(cluster)
    }

    /// Returns the addresses of the nodes, the primaries first. A failover does not change their order.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Starts a server with collections in this cluster.
    pub fn serve(&self, data: &Path) -> Server {
        let nodes = self.nodes.join(",");
        Starting::spawn_with(data, &[], &[("HAPAX__DATA__STORE", "redis"), ("HAPAX__REDIS__NODES", &nodes)]).ready()
    }

    /// Ends a node, as a crash does. Names an index or an address, as all of the following do.
    pub fn stop(&self, node: impl Display) {
        self.run("stop", &[&node.to_string()]);
    }

    /// Starts a stopped node, and waits until it has read its data.
    pub fn start(&self, node: impl Display) {
        self.run("start", &[&node.to_string()]);
    }

    /// Pauses a node: it keeps its connections, but does not answer.
    pub fn pause(&self, node: impl Display) {
        self.run("pause", &[&node.to_string()]);
    }

    /// Lets a paused node continue.
    pub fn resume(&self, node: impl Display) {
        self.run("resume", &[&node.to_string()]);
    }

    /// Returns the directory of the cluster, which exists as long as the cluster.
    pub fn dir(&self) -> PathBuf {
        self.dir.path().join("cluster")
    }

    /// Returns a command of the script for this cluster.
    pub fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = script(&[name, "--dir"]);
        command.arg(self.dir()).args(arguments);
        command
    }

    /// Runs a command of the script for this cluster, which must succeed. Returns what it prints.
    pub fn run(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.command(name, arguments).output().expect("python3 runs");
        assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

impl Drop for RedisCluster {
    fn drop(&mut self) {
        // There is none if `up` failed.
        if self.dir().exists() {
            let ended = self.command("down", &[]).status();
            if !ended.is_ok_and(|status| status.success()) {
                eprintln!("the servers in {} may still run", self.dir().display());
            }
        }
    }
}

/// Returns the command `contrib/redis-cluster` with these arguments.
pub fn script(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg(root().join("contrib/redis-cluster")).args(arguments).stdin(Stdio::null());
    command
}
