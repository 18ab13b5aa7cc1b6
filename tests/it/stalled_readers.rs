//! Clients that do not read their answers hold no memory. In an earlier version, an HTTP/2 client that granted no
//! window held as many answers as it requested: 200 of 16 MB each were 3.2 GB, held by one socket for as long as it
//! stayed open.

use std::io::Read;
use std::time::Duration;

use serde_json::json;

use crate::support::client::{CHECK, Client, Raw};
use crate::support::http2::{PREFACE, frame, post_head};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::until::until;

/// The largest number of requests that a test sends on one connection. It is less than the limit of a connection.
const STREAMS_MAX: u32 = 200;

fn copy(number: usize) -> String {
    let word = |at: usize| if at == number % 300 { format!("only{number}") } else { format!("word{at}") };
    (0..300).map(word).collect::<Vec<_>>().join(" ")
}

fn fill(client: &Client) {
    let line = |number: usize| {
        json!({ "id": format!("d{number}"), "text": copy(number), "metadata": { "fill": "x".repeat(15_000) } })
            .to_string()
    };
    let lines: Vec<_> = (0..60).map(line).collect();
    let answers = client.bulk("op=insert&on_duplicate=store", &lines.join("\n"));
    assert_eq!(answers.last().unwrap()["summary"]["stored"], 60);
}

/// Opens a connection that may open streams, and on which no answer's body can be sent.
fn without_window(server: &Local) -> Raw {
    let mut raw = Raw::connect(server.address);
    raw.send(PREFACE);
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    raw.send(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    raw
}

fn ask(raw: &mut Raw, stream: u32, target: &str, content_type: &str, body: &[u8]) {
    raw.send(post_head(stream, target, &[("content-type", content_type)]));
    raw.send(frame(0, 1, stream, body));
}

#[test]
fn answers_that_cannot_be_sent_are_counted_and_then_dropped() {
    let dir = dir();
    let limits = |limits: &mut hapax::config::HttpLimits| {
        limits.answers_bytes_max = 16 << 20;
        limits.answer_bytes_max = 4 << 20;
        // The time is long enough to open all streams, even on a busy machine.
        limits.write_timeout = Duration::from_secs(10);
    };
    let server = Setup::new(&dir).limits(limits).start();
    let client = Client::of(&server);
    fill(&client);
    let text = json!({ "text": copy(1000) });
    let (mut stalled, mut streams) = (vec![without_window(&server)], (1..).step_by(2));
    let mut refused = None;
    until("the memory for answers is used up", || {
        // The server reserves much memory while it makes an answer, and releases most of this memory when the answer
        // is ready. Only two answers are requested at a time, so that these reservations do not use up the memory.
        for stream in streams.by_ref().take(2) {
            let target = format!("{CHECK}?limit=1000&with=metadata");
            ask(stalled.last_mut().unwrap(), stream, &target, "application/json", text.to_string().as_bytes());
        }
        if streams.clone().next() > Some(2 * STREAMS_MAX) {
            stalled.push(without_window(&server));
            streams = (1..).step_by(2);
        }
        let answer = client.post(&format!("{CHECK}?limit=1000"), &text);
        refused = (answer.status == 503).then_some(answer);
        refused.is_some()
    });
    refused.unwrap().problem(503, "overloaded");
    client.post(CHECK, &text).ok();
    let insert =
        client.post("/v1/collections/default/documents", &json!({ "id": "new", "text": "five words are enough here" }));
    assert!(insert.status == 503 || insert.status == 200);
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 60 + u64::from(insert.status == 200));
    until("the answers are given up", || client.post(&format!("{CHECK}?limit=1000"), &text).status == 200);
    until("all of them are", || {
        let answer = client.post(&format!("{CHECK}?limit=1000&with=metadata"), &text);
        answer.status == 200 && answer.ok().get("omitted").is_none()
    });
    // The server also ends the connections, although their clients do not.
    for mut raw in stalled {
        let _ = raw.0.read_to_end(&mut Vec::new());
    }
}

#[test]
fn clients_that_read_nothing_keep_no_place_that_another_wants() {
    let dir = dir();
    // The timeout is longer than the test may take, so in effect it never ends.
    let limits = |limits: &mut hapax::config::HttpLimits| {
        (limits.connections_max, limits.write_timeout) = (3, Duration::from_secs(600));
    };
    let server = Setup::new(&dir).limits(limits).start();
    let hold = || {
        let mut raw = without_window(&server);
        ask(&mut raw, 1, CHECK, "text/plain", b"five words are enough here");
        raw
    };
    let mut held = [hold(), hold(), hold()];
    for _ in 0..3 {
        let client = Client::of(&server);
        client.text(CHECK, b"five words are enough here").ok();
    }
    for raw in &mut held {
        raw.0.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    }
    until("one made room", || held.iter_mut().any(|raw| matches!(raw.0.read(&mut [0; 64]), Ok(0))));
}

#[test]
fn one_connection_does_not_take_all_places_for_streams() {
    let dir = dir();
    let limits = |limits: &mut hapax::config::HttpLimits| {
        (limits.connections_max, limits.write_timeout) = (32, Duration::from_secs(600));
    };
    let server = Setup::new(&dir).limits(limits).start();
    // Counts the frames RST_STREAM with the code REFUSED_STREAM. Such a frame has 13 bytes.
    let refused = |raw: &mut Raw| {
        raw.0.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut seen = Vec::new();
        let _ = raw.0.read_to_end(&mut seen);
        seen.windows(13).filter(|frame| frame[..5] == [0, 0, 4, 3, 0] && frame[9..] == [0, 0, 0, 7]).count()
    };
    let hold = || {
        let mut raw = without_window(&server);
        (1..80).step_by(2).for_each(|stream| ask(&mut raw, stream, CHECK, "text/plain", b"five words are enough"));
        let refused = refused(&mut raw);
        (raw, refused)
    };
    let (_first, refused_first) = hold();
    assert!((20..30).contains(&refused_first), "{refused_first} of 40: it leaves as many as it has");
    let (_second, refused_second) = hold();
    assert!(refused_second < 39, "the second has some, too");
}

#[test]
fn the_encoders_of_unread_answers_take_no_more_memory_than_answers_may() {
    let dir = dir();
    let limits = |limits: &mut hapax::config::HttpLimits| {
        limits.answers_bytes_max = 16 << 20;
        limits.answer_bytes_max = 4 << 20;
        limits.write_timeout = Duration::from_secs(600);
    };
    let server = Setup::new(&dir).limits(limits).start();
    let client = Client::of(&server);
    fill(&client);
    let (mut raw, mut streams) = (without_window(&server), (1..2 * STREAMS_MAX).step_by(2));
    let text = json!({ "text": copy(1000) }).to_string();
    let encoded = |target: &str| {
        let answer = client.send("GET", target, &[("accept-encoding", "zstd")], b"");
        assert_eq!(answer.status, 200, "{target}");
        answer.headers.get("content-encoding").is_some()
    };
    until("the memory is used up, and an answer is sent as it is", || {
        let headers = [("content-type", "application/json"), ("accept-encoding", "zstd")];
        let stream = streams.next().expect("a few are enough");
        raw.send(post_head(stream, &format!("{CHECK}?limit=50"), &headers));
        raw.send(frame(0, 1, stream, text.as_bytes()));
        !encoded("/openapi.yaml")
    });
    drop(raw);
    until("the memory is free again", || encoded("/openapi.yaml"));
    assert!(!encoded("/readyz"), "too short");
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.write_timeout = Duration::from_secs(1)).start();
    let client = Client::of(&server);
    fill(&client);
    let body = json!({ "op": "check", "documents": vec![json!({ "text": copy(1000) }); 40] }).to_string();
    let mut raw = Raw::connect(server.address);
    raw.send("POST /v1/collections/default/batch?limit=1000&with=metadata HTTP/1.1\r\nHost: localhost\r\n");
    raw.send(format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    // After this time, the kernel's buffers are full, and the answer has waited for longer than it may.
    std::thread::sleep(Duration::from_secs(5));
    let mut seen = Vec::new();
    let _ = raw.0.read_to_end(&mut seen);
    assert!(seen.starts_with(b"HTTP/1.1 200") && seen.len() < 15 << 20, "{}", seen.len());
}
