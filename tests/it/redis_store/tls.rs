//! A cluster whose nodes speak TLS: a server works with it, and a server with a wrong setting ends with one line that
//! names the node, the reason and the remedy.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::http::{agent, ask};
use super::nodes::Node;
use super::refusals::{Single, assert_says, refused};
use super::{settings, start_with};
use crate::support::authority::Authority;
use crate::support::client::{DOCUMENTS, words};
use crate::support::library::dir;
use crate::support::redis::Kind;
use crate::support::until::until;

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A cluster of one node, with a port for TLS and a plain port.
struct TlsCluster {
    node: String,
    plain: String,
    _server: Single,
}

impl TlsCluster {
    /// Starts the node in `dir`, with the certificate in it.
    fn start(server: String, dir: &Path, asks_for_certificates: bool) -> Self {
        let [port, plain, bus] = [free_port(), free_port(), free_port()];
        let asks = if asks_for_certificates { "yes" } else { "no" };
        let mut command = Command::new(server);
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes", "--tls-cluster", "yes"])
            .args(["--port", &plain.to_string(), "--tls-port", &port.to_string(), "--cluster-port", &bus.to_string()])
            .args(["--cluster-config-file", &format!("nodes-{port}.conf"), "--tls-auth-clients", asks])
            .args(["--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-ca-cert-file", "ca.pem"])
            .current_dir(dir)
            .stdout(Stdio::null());
        let _server = Single(command.spawn().expect("it starts"));
        let [node, plain] = [port, plain].map(|port| format!("127.0.0.1:{port}"));
        until("it listens", || std::net::TcpStream::connect(&plain).is_ok());
        assert_eq!(Node::connect(&plain).tell("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK");
        until("the cluster is up", || Node::connect(&plain).tell("SET ready 1") == "+OK");
        Self { node, plain, _server }
    }

    fn settings(&self, more: &str) -> String {
        settings(std::slice::from_ref(&self.node), &format!("acks = 0\n{more}"))
    }
}

#[test]
fn a_server_speaks_tls_with_the_cluster() {
    let Some(server) = Kind::Redis.server() else { return };
    let (dir, authority) = (dir(), Authority::new());
    authority.sign().write(dir.path());
    let trusted = authority.write(dir.path());
    let cluster = TlsCluster::start(server, dir.path(), false);
    let tls = format!("tls = true\nca_file = {trusted:?}");

    let running = start_with(&cluster.settings(&tls), dir.path(), "trusting").ready();
    let document = json!({"id": "a", "text": words(1)});
    let answer = ask(&agent(), "POST", &running.url(DOCUMENTS), &document).expect("it answers");
    assert_eq!(answer.body["outcome"], "inserted");
    running.terminate();

    let strange = dir.path().join("strange");
    fs::create_dir(&strange).unwrap();
    let strange = Authority::new().write(&strange);
    let refused = |settings: &str| refused(settings, dir.path());
    let said = refused(&cluster.settings(&format!("tls = true\nca_file = {strange:?}")));
    assert_says(&said, &["TLS handshake", &cluster.node, "set redis.ca_file"]);
    assert_says(&refused(&cluster.settings("")), &[&cluster.node, "cannot be reached", "redis.tls"]);
    let plain = settings(std::slice::from_ref(&cluster.plain), &format!("acks = 0\n{tls}"));
    assert_says(
        &refused(&plain),
        &["TLS handshake", &cluster.plain, "check that the port speaks TLS", "redis.tls = false"],
    );
}

#[test]
fn a_node_that_asks_for_a_certificate_gets_one() {
    let Some(server) = Kind::Redis.server() else { return };
    let (dir, authority) = (dir(), Authority::new());
    let pair = authority.sign();
    pair.write(dir.path());
    let trusted = authority.write(dir.path());
    let cluster = TlsCluster::start(server, dir.path(), true);
    let tls = format!("tls = true\nca_file = {trusted:?}");
    let said = refused(&cluster.settings(&tls), dir.path());
    assert_says(&said, &["TLS handshake", &cluster.node, "alert", "redis.cert_file and redis.key_file"]);
    let files = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
    let own = format!("{tls}\ncert_file = {:?}\nkey_file = {:?}", files[0], files[1]);
    start_with(&cluster.settings(&own), dir.path(), "known").ready().terminate();
}

#[test]
fn wrong_settings_of_tls_are_refused() {
    let (dir, authority) = (dir(), Authority::new());
    authority.sign().write(dir.path());
    let trusted = authority.write(dir.path());
    let node = ["127.0.0.1:1".to_owned()];
    let key = dir.path().join("key.pem");
    for (more, words) in [
        (format!("ca_file = {trusted:?}"), &["redis.ca_file", "redis.tls must be true"][..]),
        ("tls = true\nca_file = \"/no-file\"".to_owned(), &["redis.ca_file", "/no-file", "PEM form"]),
        (format!("tls = true\nca_file = {key:?}"), &["redis.ca_file", "no certificate"]),
        (format!("tls = true\nca_file = {trusted:?}\nkey_file = {key:?}"), &["redis.key_file", "redis.cert_file must"]),
        (
            format!("tls = true\nca_file = {trusted:?}\ncert_file = {key:?}\nkey_file = {key:?}"),
            &["redis.cert_file", "no certificate"],
        ),
    ] {
        assert_says(&refused(&settings(&node, &more), dir.path()), words);
    }
}
