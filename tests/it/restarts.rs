//! Clients send requests all the time while the server restarts on a socket that its service manager holds. No
//! connection is refused, and every request that was sent gets an answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::{Client, lines};
use crate::support::library;
use crate::support::server::{Server, Starting};

const BODY: &str = r#"{"text":"one two three four five six seven eight nine ten"}"#;
/// A time that is longer than any start or stop of this test.
const PATIENCE: Duration = Duration::from_secs(120);
/// The number of documents of the large test.
const MANY: u64 = 1_000_000;
/// The number of documents that a client sends at once.
const PORTION: u64 = 10_000;
/// The number of clients that store documents.
const FILLERS: u64 = 2;

/// The counts of all clients.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    connections: AtomicU64,
    refused: AtomicU64,
    answered: AtomicU64,
    /// The number of answers with another status than 200.
    other: AtomicU64,
    unanswered: AtomicU64,
    /// The number of requests over HTTP/2 that the server reported as not begun. Clients send these again.
    handed_back: AtomicU64,
    /// The longest time from a request to its answer.
    longest_ms: AtomicU64,
}

impl Tally {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn answer(&self, status: u16, since: Instant) {
        Self::count(if status == 200 { &self.answered } else { &self.other });
        self.longest_ms.fetch_max(since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// Keeps connections open over HTTP/1.1, with a pause between two requests.
fn ask_over_http1(address: SocketAddr, pause: Duration, tally: &Tally) {
    while !tally.is_over() {
        let Ok(mut stream) = TcpStream::connect(address) else {
            Tally::count(&tally.refused);
            continue;
        };
        Tally::count(&tally.connections);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        while !tally.is_over() {
            std::thread::sleep(pause);
            let since = Instant::now();
            match ask(&mut stream) {
                Some((status, closes)) => {
                    tally.answer(status, since);
                    if closes {
                        break;
                    }
                }
                None => {
                    eprintln!("HTTP/1.1: no answer after {:?}, with a pause of {pause:?}", since.elapsed());
                    Tally::count(&tally.unanswered);
                    break;
                }
            }
        }
    }
}

/// Returns the status, and whether the connection ends. `None` if there is no answer.
fn ask(stream: &mut TcpStream) -> Option<(u16, bool)> {
    let head = "POST /v1/collections/default/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{BODY}", BODY.len());
    stream.write_all(request.as_bytes()).ok()?;
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).ok().filter(|&read| read > 0)?;
        seen.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&seen);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        if body.len() >= length {
            return Some((head.split(' ').nth(1)?.parse().ok()?, head.contains("connection: close")));
        }
    }
}

/// Keeps connections open over HTTP/2, with several requests at once.
async fn ask_over_http2(address: SocketAddr, tally: Arc<Tally>) {
    while !tally.is_over() {
        let Ok(stream) = tokio::net::TcpStream::connect(address).await else {
            Tally::count(&tally.refused);
            continue;
        };
        Tally::count(&tally.connections);
        let Ok((sender, connection)) = h2::client::handshake(stream).await else { continue };
        let driven = tokio::spawn(connection);
        // Each stream ends when the GOAWAY has arrived.
        let streams = (0..4).map(|_| ask_on_streams(sender.clone(), Arc::clone(&tally)));
        futures::future::join_all(streams).await;
        drop(sender);
        // The connection is closed properly, or at once if the test is over.
        let _ = tokio::time::timeout(PATIENCE, driven).await;
    }
}

async fn ask_on_streams(sender: h2::client::SendRequest<bytes::Bytes>, tally: Arc<Tally>) {
    while !tally.is_over() {
        let Ok(mut sender) = sender.clone().ready().await else { return };
        let request = ureq::http::Request::post("http://localhost/v1/collections/default/check");
        let request = request.header("content-type", "application/json").body(()).unwrap();
        let since = Instant::now();
        // If this fails, nothing was sent yet.
        let Ok((answer, mut body)) = sender.send_request(request, false) else { return };
        // If this fails, the answer gives the reason.
        let _ = body.send_data(BODY.into(), true);
        match answer.await {
            Ok(answer) => {
                let status = answer.status().as_u16();
                let mut body = answer.into_body();
                let mut whole = true;
                while let Some(data) = body.data().await {
                    whole &= data.is_ok_and(|data| body.flow_control().release_capacity(data.len()).is_ok());
                }
                if whole {
                    tally.answer(status, since);
                } else {
                    Tally::count(&tally.unanswered);
                }
            }
            // The request was still in the client's own queue when the server's GOAWAY came. The server did not begin
            // this request.
            Err(error) if error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) => {
                return Tally::count(&tally.handed_back);
            }
            Err(error) => {
                eprintln!("HTTP/2: {error}");
                return Tally::count(&tally.unanswered);
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Restarts the server `rounds` times while the clients send requests. The next process is started when the signal is
/// sent, and waits for the data directory.
fn hammer(data: &Path, rounds: u32, between: Duration) -> Arc<Tally> {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let start = || {
        let environment = [("HAPAX__SERVER__START_WAIT_MS", "120000"), ("HAPAX__DATA__LOCK_WAIT_MS", "120000")];
        Starting::spawn_listening(data, &[&socket], "http", &environment)
    };
    let mut server = start().ready();
    let tally = Arc::new(Tally::default());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let tally = &tally;
            // Some clients are idle for a while, before and after the signal.
            let pause = Duration::from_millis([0, 1, 5, 20, 50, 100, 200, 400][client]);
            scope.spawn(move || ask_over_http1(address, pause, tally));
        }
        let over_http2: Vec<_> = (0..4).map(|_| runtime.spawn(ask_over_http2(address, Arc::clone(&tally)))).collect();
        for round in 0..rounds {
            std::thread::sleep(between);
            let since = Instant::now();
            server.ask_to_stop();
            let next = start();
            let stopped = server.wait();
            let stopped_after = since.elapsed();
            server = next.ready();
            let (stopped_s, ready_s) = (stopped_after.as_secs_f64(), since.elapsed().as_secs_f64());
            eprintln!("restart {round}: stopped after {stopped_s:.2} s, ready after {ready_s:.2} s");
            assert!(stopped.success(), "{}", server.log_tail());
        }
        std::thread::sleep(between);
        tally.over.store(true, Ordering::Relaxed);
        for client in over_http2 {
            runtime.block_on(client).unwrap();
        }
    });
    assert!(server.terminate().success());
    let (answered, other) = (Tally::get(&tally.answered), Tally::get(&tally.other));
    let (connections, longest) = (Tally::get(&tally.connections), Tally::get(&tally.longest_ms));
    let (refused, unanswered) = (Tally::get(&tally.refused), Tally::get(&tally.unanswered));
    let handed_back = Tally::get(&tally.handed_back);
    eprintln!(
        "{connections} connections, {refused} refused; {answered} answers of 200, {other} others, {unanswered} requests \
         without an answer, {handed_back} handed back by GOAWAY; the longest took {longest} ms"
    );
    tally
}

fn nothing_was_lost(tally: &Tally) {
    assert_eq!((Tally::get(&tally.refused), Tally::get(&tally.unanswered)), (0, 0));
    assert_eq!(Tally::get(&tally.other), 0, "every request waited for the collection");
    assert!(Tally::get(&tally.answered) > 0 && Tally::get(&tally.connections) > 12, "the clients connected again");
}

#[test]
fn restarts_on_a_given_socket_refuse_no_connection_and_lose_no_request() {
    let dir = library::dir();
    let data = dir.path().join("data");
    assert!(Server::start(&data).terminate().success());
    nothing_was_lost(&hammer(&data, 3, Duration::from_millis(500)));
}

#[test]
#[ignore = "a million documents are for `make restarts`"]
fn restarts_with_many_documents_refuse_no_connection_and_lose_no_request() {
    let dir = library::dir();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let client = Client::new(server.url(""));
    std::thread::scope(|scope| {
        for part in 0..FILLERS {
            let client = &client;
            scope.spawn(move || (part..MANY / PORTION).step_by(FILLERS as usize).for_each(|at| store(client, at)));
        }
    });
    assert!(server.terminate().success());
    nothing_was_lost(&hammer(&data, 5, Duration::from_secs(3)));
}

/// Stores the portion of documents with this number.
fn store(client: &Client, portion: u64) {
    let answers = client.bulk("op=insert&on_duplicate=store", &lines(portion * PORTION..(portion + 1) * PORTION));
    assert_eq!(answers.last().unwrap()["summary"]["stored"], PORTION);
}
