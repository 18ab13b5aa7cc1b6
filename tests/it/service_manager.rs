//! hapax under a service manager that holds its sockets and wants to know its progress, as systemd does.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::client::{Client, Raw};
use crate::support::library;
use crate::support::server::Starting;

const SOON: Duration = Duration::from_secs(60);

/// Receives the reports of the server.
struct Manager(Receiver<String>);

impl Manager {
    fn new(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        let (sender, reports) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = socket.recv(&mut buffer)
                && sender.send(String::from_utf8_lossy(&buffer[..read]).into_owned()).is_ok()
            {}
        });
        Self(reports)
    }

    /// Waits for a report with this line, and returns it.
    fn until(&self, line: &str) -> String {
        let begun = Instant::now();
        loop {
            let report = self.0.recv_timeout(SOON).expect("the server reports");
            if report.lines().any(|told| told == line) {
                return report;
            }
            assert!(begun.elapsed() < SOON, "no {line}");
        }
    }
}

#[test]
fn the_service_manager_learns_that_the_server_is_ready_alive_and_stopping() {
    let dir = library::dir();
    let path = dir.path().join("notify");
    let manager = Manager::new(&path);
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready();
    let ready = manager.until("READY=1");
    assert!(ready.contains("STATUS=ready, 0 documents"), "{ready}");
    manager.until("WATCHDOG=1");
    manager.until("WATCHDOG=1");
    assert!(server.terminate().success());
    let stopping = manager.until("STOPPING=1");
    // The value is the default of server.drain_timeout_ms plus two minutes to close the data.
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC=140000000"), "{stopping}");
    manager.until("STATUS=stopping: closing the data");
}

/// In an earlier version, the async threads sent the reports, and a full queue of the service manager stopped these
/// threads.
#[test]
fn a_service_manager_that_reads_nothing_does_not_hold_up_the_server() {
    let dir = library::dir();
    let path = dir.path().join("notify");
    let _unread = UnixDatagram::bind(&path).unwrap();
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "2000")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready();
    let client = Client::new(server.url(""));
    let begun = Instant::now();
    // The kernel keeps 10 datagrams, and hapax keeps 64.
    while begun.elapsed() < Duration::from_secs(1) {
        client.get("/livez").ok();
    }
    assert!(server.terminate().success());
}

#[test]
fn connections_wait_in_a_given_socket_while_the_server_restarts() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let (http, admin) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (address, admin_address) = (http.local_addr().unwrap(), admin.local_addr().unwrap());
    for round in 0..3 {
        // No process accepts connections yet, but the kernel takes the connection and the request.
        let mut early = Raw::connect(address);
        early.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let server = Starting::spawn_listening(&data, &[&admin, &http], "admin:http", &[]).ready();
        assert_eq!(server.url(""), format!("http://{address}"), "not the address of --listen");
        assert_eq!(early.status(), 200, "round {round}");
        let probes = Client::new(format!("http://{admin_address}"));
        probes.get("/readyz").ok();
        let mut raw = Raw::connect(admin_address);
        raw.send("GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(raw.status(), 404, "it serves only probes");
        assert!(server.terminate().success());
    }
}

#[test]
fn a_given_socket_that_others_can_reach_needs_a_key() {
    let dir = library::dir();
    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let started = Starting::spawn_listening(&dir.path().join("data"), &[&open], "", &[]).ready_or_ended();
    let (status, log) = started.err().expect("--listen is a loopback address, but the socket is not");
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("refusing to listen on 0.0.0.0:") && log.contains("without an API key"), "{log}");
}

#[test]
fn sockets_that_hapax_cannot_use_stop_the_start() {
    let dir = library::dir();
    let [a, b] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let refused = |sockets: &[&TcpListener], names| {
        let started = Starting::spawn_listening(&dir.path().join("data"), sockets, names, &[]).ready_or_ended();
        let (status, log) = started.err().expect("the sockets are not possible");
        assert_eq!(status.code(), Some(2), "{log}");
        log
    };
    let twice = refused(&[&a, &b], "http:http");
    assert!(twice.contains("one socket called http, one called admin, or both"), "{twice}");
    assert!(!fs::exists(dir.path().join("data")).unwrap(), "refused before anything is made");
}
