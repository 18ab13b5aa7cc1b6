//! Long documents: a raw text streams in, however long, and says what the same text says in JSON; all of them take
//! turns on a few threads, behind a bounded queue, and short documents never wait for them.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hapax::cpu::{CpuConfig, CpuPool, WhenFull};
use serde_json::{Value, json};

use crate::support::client::{CHECK, Client, DOCUMENTS, Raw, fields, gzip, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};
use crate::support::server::{Server, Starting};

const SIGN: &str = "/v1/collections/default/sign";

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// At least `bytes` of words in one- to four-byte characters; no two numbers share a shingle.
fn prose(number: u64, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut word = 0_u64;
    while text.len() < bytes {
        let kind = ["Straße", "ﬁsh", "日本語", "🦀x", "plain", "e\u{301}t\u{e9}"][(word % 6) as usize];
        text.push_str(&format!("{kind}{number}q{word} "));
        word += 1;
    }
    text
}

/// POSTs a body chunk by chunk, and returns status, headers and JSON.
fn stream<'a>(
    address: SocketAddr,
    target: &str,
    encoding: &str,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (u16, String, Value) {
    let mut raw = begin(address, target, encoding);
    for chunk in chunks {
        send_chunk(&mut raw, chunk);
    }
    raw.send("0\r\n\r\n");
    let (status, head, body) = raw.answer();
    (status, head, serde_json::from_str(&body).unwrap_or_else(|_| panic!("not JSON: {body}")))
}

fn begin(address: SocketAddr, target: &str, encoding: &str) -> Raw {
    let mut raw = Raw::connect(address);
    raw.send(format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"));
    raw.send(format!("Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"));
    raw
}

fn send_chunk(raw: &mut Raw, chunk: &[u8]) {
    let mut framed = format!("{:x}\r\n", chunk.len()).into_bytes();
    framed.extend_from_slice(chunk);
    framed.extend_from_slice(b"\r\n");
    raw.send(framed);
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

#[test]
fn a_streamed_text_says_what_the_same_text_says_in_json() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for bytes in [1, 100, 16 * KIB - 1, 16 * KIB, 16 * KIB + 40, 256 * KIB, 256 * KIB + 1, 3 * MIB] {
        let mut text = prose(bytes as u64, bytes);
        while text.len() > bytes {
            text.pop();
        }
        let id = format!("d{bytes}");
        client.post(DOCUMENTS, &json!({"id": id, "text": text})).ok();
        let signed = client.post(SIGN, &json!({"text": text})).ok();
        assert_eq!(client.text(SIGN, text.as_bytes()).ok(), signed, "{bytes} bytes of announced length");
        // Odd sizes, so that chunks end inside characters.
        for chunk in [if bytes < KIB { 1 } else { 4093 }, 65_537, 1_000_003] {
            let (status, _, streamed) = stream(server.address, SIGN, "identity", text.as_bytes().chunks(chunk));
            assert_eq!((status, &streamed), (200, &signed), "{bytes} bytes in chunks of {chunk}");
        }
        for (encoding, body) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
            let (status, _, streamed) = stream(server.address, SIGN, encoding, body.chunks(1013));
            assert_eq!((status, &streamed), (200, &signed), "{bytes} bytes as {encoding}");
        }
        let (status, _, verdict) = stream(server.address, CHECK, "identity", text.as_bytes().chunks(30_011));
        assert_eq!((status, &verdict["verdict"]), (200, &json!("exact_duplicate")), "{verdict}");
        assert_eq!((&verdict["duplicate_of"], &verdict["shingles"]), (&json!(id), &signed["shingles"]));
        let own = format!("{CHECK}?id={id}&threshold=0.9&with=metadata");
        let (status, _, verdict) = stream(server.address, &own, "identity", text.as_bytes().chunks(30_011));
        assert_eq!((status, &verdict["stored"]), (200, &json!(true)), "{verdict}");
        assert_eq!((&verdict["id"], &verdict["threshold"]), (&json!(id), &json!(0.9)));
    }
    let nothing = stream(server.address, SIGN, "identity", std::iter::empty());
    assert_eq!((nothing.0, &nothing.2["empty"]), (200, &json!(true)));
    let blank = " … \u{200b}".repeat(100_000);
    let (_, _, verdict) = stream(server.address, CHECK, "identity", blank.as_bytes().chunks(7_001));
    assert_eq!(verdict["verdict"], "empty");
}

#[test]
fn a_stream_may_be_longer_than_a_body_and_not_longer_than_its_own_limit() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.body_bytes_max = 100 * KIB;
            limits.text_body_bytes_max = MIB as u64;
        })
        .start();
    let client = Client::of(&server);
    let exact = vec![b'a'; MIB];
    let long = vec![b'a'; MIB + 1];
    for target in [SIGN, CHECK] {
        client.text(target, &exact).ok();
        client.text(target, &long).problem(413, "too_large");
        for (encoding, exact, long) in [
            ("identity", exact.clone(), long.clone()),
            ("gzip", gzip(&exact), gzip(&long)),
            ("zstd", zstd(&exact), zstd(&long)),
        ] {
            assert_eq!(stream(server.address, target, encoding, exact.chunks(50_000)).0, 200, "{encoding}");
            let (status, _, problem) = stream(server.address, target, encoding, long.chunks(50_000));
            assert_eq!((status, &problem["code"]), (413, &json!("too_large")), "{encoding}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("1048576 bytes, after decompression"), "{detail}");
        }
    }
    let stored = format!("{DOCUMENTS}?id=x");
    client.text(&stored, &vec![b'a'; 100 * KIB + 1]).problem(413, "too_large");
    client.post(SIGN, &json!({"text": "a".repeat(100 * KIB)})).problem(413, "too_large");
}

#[test]
fn ill_formed_bytes_are_refused_or_mended_as_in_a_body_that_is_whole() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let good = prose(1, 2 * MIB).into_bytes();
    let at = |offset: usize, bad: &[u8]| [&good[..offset], bad, &good[offset..]].concat();
    let boundary = (256 * KIB..).find(|&at| good[at] < 0x80).unwrap();
    let cut = |mut bytes: Vec<u8>| {
        bytes.extend_from_slice(&"日".as_bytes()[..2]);
        bytes
    };
    for body in [
        at(0, b"\xFF"),
        at(boundary, b"\xFF"),
        at(boundary, b"\xED\xA0\x80"),
        at(2 * MIB - 100 + (0..).find(|&more| good[2 * MIB - 100 + more] == b' ').unwrap(), b"\xF0\x9F\xA6"),
        cut(good.clone()),
        [b"\xEF\xBB\xBF", at(boundary, b"\xC0").as_slice()].concat(),
        [b"\xEF\xBB\xBF", good.as_slice()].concat(),
        [b"\xEF\xBB\xBF\xEF\xBB\xBF", good.as_slice()].concat(),
    ] {
        let mended = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body);
        let whole = client.text(&format!("{DOCUMENTS}?id=x&on_existing=keep&on_duplicate=skip"), &body);
        let (status, _, streamed) = stream(server.address, SIGN, "identity", body.chunks(10_007));
        if std::str::from_utf8(&body).is_ok() {
            assert_eq!(status, 200, "{streamed}");
            whole.ok();
        } else {
            let expected = std::str::from_utf8(mended).unwrap_err().valid_up_to();
            let problem = whole.problem(422, "invalid_value");
            assert_eq!((status, &streamed["errors"]), (422, &problem["errors"]));
            assert_eq!(fields(&streamed), ["text"]);
            let detail = streamed["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("at byte {expected};")), "{detail}");
        }
        let text = String::from_utf8_lossy(mended).into_owned();
        let signed = client.post(SIGN, &json!({ "text": text })).ok();
        let lossy = format!("{SIGN}?invalid=replace");
        let (status, _, streamed) = stream(server.address, &lossy, "identity", body.chunks(10_007));
        assert_eq!((status, streamed), (200, signed));
    }
}

#[test]
fn broken_streams_are_answered() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let mut cut = gzip(prose(1, 2 * MIB).as_bytes());
    cut.truncate(cut.len() - 9);
    let (status, _, problem) = stream(server.address, SIGN, "gzip", cut.chunks(10_000));
    assert_eq!((status, &problem["code"]), (400, &json!("malformed_body")));
    let (status, _, problem) = stream(server.address, SIGN, "br", cut.chunks(10_000));
    assert_eq!((status, &problem["code"]), (415, &json!("unsupported_media_type")));
    client.json("PUT", "/v1/collections/theirs", &json!({"spec": "external:ours:256x8"}));
    let theirs = "/v1/collections/theirs/check";
    let (status, _, problem) = stream(server.address, theirs, "identity", prose(1, MIB).as_bytes().chunks(10_000));
    assert_eq!((status, fields(&problem)), (422, vec!["text"]));
    let (status, _, problem) =
        stream(server.address, &format!("{CHECK}?threshold=2"), "identity", [vec![b'a'; MIB].as_slice()].into_iter());
    assert_eq!((status, fields(&problem)), (422, vec!["threshold"]));
}

#[test]
fn a_stream_takes_its_time_while_it_flows_and_is_given_up_when_it_trickles() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.request_timeout = Duration::from_secs(1)).start();
    let text = prose(1, MIB);
    let since = Instant::now();
    let mut flowing = begin(server.address, SIGN, "identity");
    for chunk in text.as_bytes().chunks(64 * KIB) {
        send_chunk(&mut flowing, chunk);
        std::thread::sleep(Duration::from_millis(150));
    }
    flowing.send("0\r\n\r\n");
    assert_eq!(flowing.status(), 200);
    assert!(since.elapsed() > Duration::from_millis(2200), "longer than any other request may take");

    let mut mute = begin(server.address, SIGN, "identity");
    send_chunk(&mut mute, text.as_bytes());
    assert_eq!(mute.status(), 408, "a megabyte does not buy a pause");

    let mut trickling = begin(server.address, SIGN, "identity");
    let since = Instant::now();
    trickling.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut seen = Vec::new();
    while !seen.starts_with(b"HTTP/1.1 408") {
        assert!(since.elapsed() < Duration::from_secs(20), "a byte now and then holds the place");
        // Either may fail once the server has closed; what it said by then is there to be read.
        let _ = trickling.0.write_all(b"1\r\na\r\n");
        let mut piece = [0; 1000];
        if let Ok(read) = trickling.0.read(&mut piece) {
            seen.extend_from_slice(&piece[..read]);
        }
    }
}

/// Waits for something to come about.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(120), "{what} does not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `/metrics` has this line. Asking takes neither room nor a place from what is awaited.
fn scraped(client: &Client, line: &str) {
    until(line, || client.get("/metrics").text().contains(line));
}

#[test]
fn streams_hold_room_for_a_slice_and_clients_that_leave_give_it_back() {
    let dir = dir();
    let bounds = [
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__BODY_BYTES_MAX", "524288"),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", "524288"),
        ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000"),
    ];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let held = |bytes: usize| scraped(&client, &format!("hapax_http_buffered_bytes {bytes}\n"));
    let text = prose(1, MIB);
    let slow: Vec<_> = (0..4)
        .map(|number| {
            let mut raw = begin(address(&server), SIGN, "identity");
            send_chunk(&mut raw, text.as_bytes());
            held((number + 1) * 256 * KIB);
            raw
        })
        .collect();
    let refused = client.text(SIGN, text.as_bytes());
    refused.problem(503, "overloaded");
    assert_eq!(refused.headers["retry-after"], "1");
    drop(slow);
    held(0);
    client.text(SIGN, text.as_bytes()).ok();
}

/// It was red one time in three: the probe that waited for a refusal took the second place itself now and then, and
/// the second slow stream was the one refused. Places are awaited by their gauge, which takes none.
#[test]
fn streams_leave_places_to_others() {
    let dir = dir();
    let bounds = [("HAPAX__SERVER__TEXT_STREAMS_MAX", "2"), ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let taken = |places: usize| scraped(&client, &format!("hapax_http_text_streams {places}\n"));
    let text = prose(1, MIB);
    let slow: Vec<_> = (0..2)
        .map(|number| {
            let mut raw = begin(address(&server), SIGN, "identity");
            send_chunk(&mut raw, text.as_bytes());
            taken(number + 1);
            raw
        })
        .collect();
    client.text(SIGN, text.as_bytes()).problem(503, "overloaded");
    client.text(SIGN, b"a short text needs no place").ok();
    client.post(SIGN, &json!({ "text": text })).ok();
    drop(slow);
    taken(0);
    client.text(SIGN, text.as_bytes()).ok();
}

#[test]
fn the_window_of_a_decoder_counts() {
    let dir = dir();
    // Room for two windows of 8 MiB and little more.
    let bounds = [
        ("HAPAX__SERVER__BODIES_BYTES_MAX", "20971520"),
        ("HAPAX__SERVER__BODY_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__BULK_LINE_BYTES_MAX", "1048576"),
        ("HAPAX__SERVER__REQUEST_TIMEOUT_MS", "600000"),
    ];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let held = |bytes: usize| scraped(&client, &format!("hapax_http_buffered_bytes {bytes}\n"));
    let packed = zstd(prose(1, MIB).as_bytes());
    let slow: Vec<_> = (0..2)
        .map(|number| {
            let mut raw = begin(address(&server), SIGN, "zstd");
            send_chunk(&mut raw, &packed);
            held((number + 1) * (8 * MIB + 256 * KIB));
            raw
        })
        .collect();
    let third = || client.send("POST", SIGN, &[("content-type", "text/plain"), ("content-encoding", "zstd")], &packed);
    third().problem(503, "overloaded");
    drop(slow);
    held(0);
    assert_eq!(third().status, 200);
}

/// Keeps a thread of the pool busy until what is returned is dropped.
pub fn occupy(pool: &CpuPool) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let pool = pool.clone();
    std::thread::spawn(move || {
        futures::executor::block_on(async {
            let place = pool.place(WhenFull::Wait).await.unwrap();
            let busy = move || {
                begun.send(()).unwrap();
                _ = released.recv();
            };
            place.run(busy).await;
        });
    });
    begins.recv().unwrap();
    release
}

fn one_thread(queue_max: usize) -> (tempfile::TempDir, Local) {
    let dir = dir();
    let cpu = CpuConfig { threads: 1, queue_max };
    let server = Setup { cpu, ..Setup::new(&dir) }.start();
    (dir, server)
}

#[test]
fn short_documents_do_not_wait_for_long_ones() {
    let (_dir, server) = one_thread(100);
    let client = Client::of(&server);
    let pool = server.state.cpu();
    let release = occupy(pool);
    let long: Vec<_> = (0..4)
        .map(|number| {
            let client = client.clone();
            std::thread::spawn(move || client.post(CHECK, &json!({"text": prose(number, 100 * KIB)})).ok())
        })
        .collect();
    until("four waiting documents", || pool.depth() == 4);
    for number in 0..100 {
        client.post(DOCUMENTS, &json!({"id": format!("s{number}"), "text": words(number)})).ok();
        assert_eq!(client.post(CHECK, &json!({"text": words(number)})).ok()["verdict"], "exact_duplicate");
        assert_eq!(client.text(CHECK, words(number).as_bytes()).ok()["verdict"], "exact_duplicate");
    }
    assert_eq!(pool.depth(), 4, "none of the long ones has been begun");
    drop(release);
    for long in long {
        assert_eq!(long.join().unwrap()["verdict"], "unique");
    }
}

#[test]
fn a_long_document_lets_a_shorter_one_pass() {
    let (_dir, server) = one_thread(100);
    let client = Client::of(&server);
    let pool = server.state.cpu();
    let release = occupy(pool);
    let (done, order) = mpsc::channel();
    for (waiting, bytes) in [(1, 12 * MIB), (2, 600 * KIB)] {
        let (client, done) = (client.clone(), done.clone());
        std::thread::spawn(move || {
            client.post(SIGN, &json!({"text": prose(1, bytes)})).ok();
            done.send(bytes).unwrap();
        });
        until("a waiting document", || pool.depth() == waiting);
    }
    drop(release);
    assert_eq!(order.recv().unwrap(), 600 * KIB, "it came second, and was done first");
    assert_eq!(order.recv().unwrap(), 12 * MIB);
}

/// One comparison of 15.6 MB was one job of 10 s, and a check of 22 KB waited for it.
#[test]
fn a_long_comparison_lets_a_shorter_document_pass() {
    let (_dir, server) = one_thread(100);
    let client = Client::of(&server);
    let pool = server.state.cpu();
    let release = occupy(pool);
    let (done, order) = mpsc::channel();
    let send = |what: &'static str, target: &'static str, body: Value| {
        let (client, done) = (client.clone(), done.clone());
        std::thread::spawn(move || {
            client.post(target, &body).ok();
            done.send(what).unwrap();
        })
    };
    let sides = json!({"a": {"text": prose(1, 3 * MIB)}, "b": {"text": prose(2, 3 * MIB)}});
    let comparison = send("comparison", "/v1/collections/default/compare", sides);
    // Its parsing may be over by now: what can't be cut has a thread of its own.
    until("a waiting comparison", || pool.depth() == 1);
    let check = send("check", CHECK, json!({"text": prose(3, 30 * KIB)}));
    until("a waiting check", || pool.depth() == 2);
    drop(release);
    assert_eq!(order.recv().unwrap(), "check", "it came second, and was done first");
    assert_eq!(order.recv().unwrap(), "comparison");
    comparison.join().unwrap();
    check.join().unwrap();
}

#[test]
fn what_cannot_be_cut_does_not_wait_for_short_work_nor_short_work_for_it() {
    let (_dir, server) = one_thread(100);
    let client = Client::of(&server);
    let release = occupy(server.state.cpu());
    // Parsed and signed in one go each.
    let set: Vec<_> = (0..200_000).collect();
    client.post(SIGN, &json!({ "set": set })).ok();
    drop(release);
}

#[test]
fn a_full_queue_refuses_what_begins_and_keeps_what_has_begun() {
    let (_dir, server) = one_thread(1);
    let client = Client::of(&server);
    let pool = server.state.cpu();
    let text = prose(1, 2 * MIB);
    let release = occupy(pool);
    let waiting = {
        let (client, text) = (client.clone(), text.clone());
        std::thread::spawn(move || client.text(SIGN, text.as_bytes()))
    };
    until("a waiting document", || pool.depth() == 1);
    let set: Vec<_> = (0..5_000).collect();
    for refused in [
        client.text(SIGN, text.as_bytes()),
        client.post(CHECK, &json!({"text": prose(2, 20 * KIB)})),
        client.text(&format!("{DOCUMENTS}?id=x"), prose(2, 100 * KIB).as_bytes()),
        client.post("/v1/collections/default/compare", &json!({"a": {"set": set}, "b": {"set": set}})),
        client.post("/v1/tune", &json!({})),
    ] {
        refused.problem(503, "overloaded");
        assert_eq!(refused.headers["retry-after"], "1");
    }
    client.post(CHECK, &json!({"text": "a short one"})).ok();

    // Lines are held back, not refused.
    let lines = {
        let client = client.clone();
        let line = |number| json!({"id": format!("l{number}"), "text": prose(number, 80 * KIB)}).to_string() + "\n";
        let lines: String = (0..12).map(line).collect();
        std::thread::spawn(move || client.bulk("op=insert", &lines))
    };
    let batch = {
        let client = client.clone();
        let document = |number: u64| json!({"text": prose(100 + number, 5 * KIB)});
        let long = json!({"text": prose(99, 20 * KIB)});
        let documents: Vec<_> = (0..5).map(document).chain([long]).collect();
        let batch = json!({"op": "check", "documents": documents});
        std::thread::spawn(move || client.post("/v1/collections/default/batch", &batch).ok())
    };
    std::thread::sleep(Duration::from_millis(50));
    drop(release);
    assert_eq!(waiting.join().unwrap().ok(), client.post(SIGN, &json!({ "text": text })).ok());
    let lines = lines.join().unwrap();
    assert_eq!(lines.last().unwrap()["summary"]["unique"], 12, "{lines:?}");
    assert_eq!(batch.join().unwrap()["summary"]["errors"], 0);
}

#[test]
fn an_operator_sees_the_queue_fill() {
    let dir = dir();
    let bounds = [("HAPAX__CPU__THREADS", "1"), ("HAPAX__CPU__QUEUE_MAX", "1")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let text = prose(1, 4 * MIB);
    let over = AtomicBool::new(false);
    /// Lets the clients end if the test fails, too: the scope waits for them.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (signed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let answer = client.text(SIGN, text.as_bytes());
                    if answer.status == 200 {
                        signed.fetch_add(1, Ordering::Relaxed);
                    } else {
                        answer.problem(503, "overloaded");
                        assert_eq!(answer.headers["retry-after"], "1");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let _over = Over(&over);
        until("a full queue", || {
            let scrape = client.get("/metrics").text();
            assert!(scrape.contains("\nhapax_cpu_queue_max 1\n"), "{scrape}");
            let done = signed.load(Ordering::Relaxed) > 0 && refused.load(Ordering::Relaxed) > 0;
            done && scrape.contains("\nhapax_cpu_queue_depth 1\n")
        });
    });
    let scrape = client.get("/metrics").text();
    assert!(scrape.contains("\nhapax_cpu_queue_depth 0\n"), "{scrape}");
    let slices = scrape.lines().find_map(|line| line.strip_prefix("hapax_cpu_queue_wait_seconds_count ")).unwrap();
    assert!(slices.parse::<u64>().unwrap() >= 16 * signed.load(Ordering::Relaxed), "{slices}");
}

#[test]
fn clients_that_send_slowly_keep_no_thread() {
    let (_dir, server) = one_thread(100);
    let client = Client::of(&server);
    let text = prose(1, 600 * KIB);
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut raw = begin(server.address, SIGN, "identity");
            send_chunk(&mut raw, text.as_bytes());
            raw
        })
        .collect();
    let signed = client.text(SIGN, text.as_bytes()).ok();
    for mut raw in slow {
        raw.send("0\r\n\r\n");
        let (status, _, body) = raw.answer();
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, signed.clone()));
    }
}

#[test]
fn long_comparisons_are_exact() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let (a, b): (Vec<_>, Vec<_>) = ((0..40_000).collect(), (20_000..60_000).collect());
    let compared = client.post("/v1/collections/default/compare", &json!({"a": {"set": a}, "b": {"set": b}})).ok();
    assert_eq!((&compared["exact"]["intersection"], &compared["exact"]["jaccard"]), (&json!(20_000), &json!(0.333333)));
    let text = prose(1, MIB);
    let sides = json!({"a": {"text": text}, "b": {"text": text.to_uppercase().to_lowercase()}});
    let compared = client.post("/v1/collections/default/compare", &sides).ok();
    assert_eq!(compared["exact"]["jaccard"], 1.0);
    let nothing = json!({"a": {"text": text}, "b": {"text": " ".repeat(100 * KIB)}});
    let problem = client.post("/v1/collections/default/compare", &nothing).problem(422, "invalid_value");
    assert_eq!(fields(&problem), ["b"]);
}

fn address(server: &Server) -> SocketAddr {
    server.url("").strip_prefix("http://").unwrap().parse().unwrap()
}

/// Peak resident memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}

#[test]
fn a_streamed_text_takes_little_memory_however_long_it_is() {
    const TEXT: usize = 192 * MIB;
    let dir = dir();
    let server = Server::start(&dir.path().join("data"));
    let client = Client::new(server.url(""));
    let block = prose(1, MIB);
    client.text(SIGN, block.as_bytes()).ok();
    let before = peak_kib(server.pid());
    for (encoding, repeats, body) in [
        ("identity", TEXT / MIB, block.clone().into_bytes()),
        ("zstd", 1, {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            (0..32).for_each(|_| encoder.write_all(block.as_bytes()).unwrap());
            encoder.finish().unwrap()
        }),
    ] {
        let whole = std::iter::repeat_n(body.chunks(64 * KIB), repeats).flatten();
        let (status, _, signed) = stream(address(&server), SIGN, encoding, whole);
        assert_eq!((status, &signed["empty"]), (200, &json!(false)), "{signed}");
        let shingles = signed["shingles"].as_u64().unwrap() as usize;
        assert!(shingles > 1_000_000, "{encoding}: all of it was read: {shingles}");
    }
    let grown_kib = peak_kib(server.pid()) - before;
    assert!(grown_kib < 24 << 10, "{grown_kib} KiB more for {TEXT} bytes");
}
