//! Real nodes for the tests. The environment variable HAPAX_REDIS_SERVER names their server, such as a path of
//! valkey-server.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue as _, Value};
use tempfile::TempDir;

use super::super::{Cluster, ClusterConfig};
use crate::types::Password;

pub(super) const PASSWORD: &str = "correct horse";
pub(super) const TIMEOUT: Duration = Duration::from_millis(1000);

/// A cluster of three primaries and three replicas. Its nodes end with it.
pub(super) struct Nodes {
    dir: TempDir,
    pub(super) addresses: Vec<String>,
}

impl Nodes {
    pub(super) fn up() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let password = dir.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        let mut nodes = Self { dir, addresses: Vec::new() };
        let mut args = vec!["--port", "0", "--node-timeout-ms", "1000", "--password-file", password.to_str().unwrap()];
        let server = std::env::var("HAPAX_REDIS_SERVER").ok();
        args.extend(server.iter().flat_map(|server| ["--server", server]));
        nodes.addresses = nodes.command("up", &args).lines().map(str::to_owned).collect();
        nodes
    }

    /// Runs a command of `contrib/redis-cluster`, and returns its output.
    pub(super) fn command(&self, name: &str, args: &[&str]) -> String {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/redis-cluster");
        let mut command = Command::new(program);
        command.arg(name).arg("--dir").arg(self.dir.path().join("cluster")).args(args);
        let output = tokio::task::block_in_place(|| command.output().unwrap());
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn config(&self) -> ClusterConfig {
        ClusterConfig {
            nodes: self.addresses[..2].to_vec(),
            username: None,
            password: Some(Password::new(PASSWORD)),
            tls: None,
            timeout: TIMEOUT,
            acks: 1,
        }
    }

    pub(super) async fn client(&self) -> Cluster {
        Cluster::connect(self.config()).await.unwrap()
    }

    /// Connects to one node, without the client.
    pub(super) async fn direct(&self, node: usize) -> Direct {
        let url = format!("redis://:{}@{}/", PASSWORD.replace(' ', "%20"), self.addresses[node]);
        Direct(redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap())
    }

    pub(super) fn port(&self, node: usize) -> &str {
        self.addresses[node].rsplit_once(':').unwrap().1
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.command("down", &[]);
    }
}

pub(super) struct Direct(pub(super) MultiplexedConnection);

impl Direct {
    pub(super) async fn ask(&mut self, words: &str) -> Value {
        command(words).query_async(&mut self.0).await.unwrap()
    }

    pub(super) async fn text(&mut self, words: &str) -> String {
        String::from_redis_value(self.ask(words).await).unwrap()
    }
}

/// A cluster of one node, which accepts only TLS. It is always redis-server: others may be built without TLS.
pub(super) struct TlsNode {
    server: Child,
    pub(super) port: u16,
    pub(super) trust: Arc<rustls::ClientConfig>,
    _dir: TempDir,
}

impl TlsNode {
    pub(super) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(dir.path().join("cert.pem"), certificate.pem()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let trust = Arc::new(trust.with_root_certificates(roots).with_no_client_auth());
        // Another process may take a port before the node does.
        let (server, port) = (0..10).find_map(|_| serving(dir.path())).expect("a node starts");
        Self { server, port, trust, _dir: dir }
    }
}

/// Starts a node on a port that was free. `None`: it has ended, because one of its ports is taken.
fn serving(dir: &Path) -> Option<(Child, u16)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &port.to_string(), "--cluster-enabled", "yes"])
        // The second port, for other nodes, is not used.
        .args(["--cluster-port", &(port ^ 1).to_string(), "--tls-auth-clients", "no", "--tls-cluster", "yes"])
        .args(["--save", "", "--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem"])
        .args(["--tls-ca-cert-file", "cert.pem"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // If the port is taken, somebody else may answer there before the node ends.
    let mut has_answered = false;
    while server.try_wait().unwrap().is_none() {
        if has_answered {
            return Some((server, port));
        }
        std::thread::sleep(Duration::from_millis(100));
        has_answered = std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}

impl Drop for TlsNode {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

pub(super) fn command(words: &str) -> Cmd {
    let mut words = words.split(' ');
    let mut cmd = redis::cmd(words.next().unwrap());
    words.for_each(|word| _ = cmd.arg(word));
    cmd
}
