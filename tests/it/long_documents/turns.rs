//! Long documents take turns on a few threads, behind a bounded queue, and short documents never wait for them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hapax::cpu::{CpuConfig, WhenFull};
use serde_json::{Value, json};

use super::sending::{KIB, MIB, SIGN, begin, prose, send_chunk, stream, until};
use crate::support::client::{CHECK, Client, DOCUMENTS, fields, words};
use crate::support::library::{dir, occupy, occupy_for};
use crate::support::local::{Local, Setup};
use crate::support::server::{Server, Starting};

fn one_thread(queue_max: usize) -> (tempfile::TempDir, Local) {
    let dir = dir();
    let cpu = CpuConfig { threads: 1, queue_max, queue_delay_max: Duration::ZERO };
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

/// In an earlier version, a comparison of 15.6 MB was a single job of 10 s, and a check of 22 KB waited for it.
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
    // The parsing may already be done, because work that cannot be divided has its own thread.
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
    // This set is parsed in one step and signed in one step.
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

    // If the queue of the streams is full, lines are not refused: they wait.
    let streams = occupy_for(pool, WhenFull::GiveWay);
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
    assert!(!lines.is_finished() && !batch.is_finished());
    drop((release, streams));
    assert_eq!(waiting.join().unwrap().ok(), client.post(SIGN, &json!({ "text": text })).ok());
    let lines = lines.join().unwrap();
    assert_eq!(lines.last().unwrap()["summary"]["unique"], 12, "{lines:?}");
    assert_eq!(batch.join().unwrap()["summary"]["errors"], 0);
}

/// In an earlier version, 64 streams of long documents filled the queue in which checks of long texts wait.
#[test]
fn long_documents_of_streams_and_other_long_documents_do_not_wait_for_each_other() {
    let (_dir, server) = one_thread(1);
    let client = Client::of(&server);
    let pool = server.state.cpu();
    let long = |number| json!({"id": format!("l{number}"), "text": prose(number, 80 * KIB)});
    let lines: String = (0..12).map(|number| long(number).to_string() + "\n").collect();
    let streams = occupy_for(pool, WhenFull::GiveWay);
    let held_back = {
        let (client, lines) = (client.clone(), lines.clone());
        std::thread::spawn(move || client.bulk("op=insert", &lines))
    };
    std::thread::sleep(Duration::from_millis(50));
    client.post(CHECK, &long(100)).ok();
    client.text(SIGN, prose(100, 300 * KIB).as_bytes()).ok();
    assert!(!held_back.is_finished());
    drop(streams);
    assert_eq!(held_back.join().unwrap().last().unwrap()["summary"]["unique"], 12);

    let others = occupy(pool);
    assert_eq!(client.bulk("op=check", &lines).last().unwrap()["summary"]["documents"], 12);
    drop(others);
}

#[test]
fn an_operator_sees_the_queue_fill() {
    let dir = dir();
    let bounds = [("HAPAX__CPU__THREADS", "1"), ("HAPAX__CPU__QUEUE_MAX", "1")];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &bounds).ready();
    let client = Client::new(server.url(""));
    let text = prose(1, 4 * MIB);
    let over = AtomicBool::new(false);
    /// Ends the clients even if the test fails, because the scope waits for them.
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

/// Returns the peak resident memory of a process, in KiB.
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
        let (status, _, signed) = stream(server.socket(), SIGN, encoding, whole);
        assert_eq!((status, &signed["empty"]), (200, &json!(false)), "{signed}");
        let shingles = signed["shingles"].as_u64().unwrap() as usize;
        assert!(shingles > 1_000_000, "{encoding}: all of it was read: {shingles}");
    }
    let grown_kib = peak_kib(server.pid()) - before;
    assert!(grown_kib < 24 << 10, "{grown_kib} KiB more for {TEXT} bytes");
}
