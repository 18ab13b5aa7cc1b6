//! No client can block a server thread for all others: every loop that reads a client's bytes or writes an answer stops
//! after a limited amount of work and lets others run. In an earlier version, two kilobytes of zstd that decode to 64
//! MiB of line feeds were decoded in a loop without a pause. Two connections that sent such bytes slowed the checks of
//! all other clients to 5.7 s at the median. With `?duplex=true` and 131 KB that decode to gigabytes of line feeds, the
//! server no longer reacted to SIGTERM.
//!
//! In these tests, the whole server runs on one thread, together with a watchdog task. The watchdog gets a turn
//! whenever the server lets other tasks run. The tests measure the processor time of the thread between two turns of
//! the watchdog, so other processes on the machine do not change the results.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::client::{CHECK, words};
use crate::support::library::dir;
use crate::support::local::Setup;

const MIB: usize = 1 << 20;
/// The longest allowed time between two turns of the watchdog. A debug build takes many times as long for the same
/// work. The freezes of earlier versions took seconds.
const TURN_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 250 } else { 50 });

const BULK: &str = "/v1/collections/default/bulk?op=check";
const DUPLEX: &str = "/v1/collections/default/bulk?op=check&duplex=true";
const NDJSON: &str = "application/x-ndjson";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Returns the processor time of this thread.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs `work` together with a watchdog. Returns the result, and the watchdog's longest wait for its turn.
async fn watched<T>(work: impl Future<Output = T>) -> (T, Duration) {
    /// The processor time at the last turn, and the longest time between two turns.
    #[derive(Clone)]
    struct Turns(Rc<Cell<(Duration, Duration)>>);
    impl Turns {
        fn next(&self) -> Duration {
            let (now, (last, longest)) = (spent(), self.0.get());
            let longest = longest.max(now - last);
            self.0.set((now, longest));
            longest
        }
    }
    let turns = Turns(Rc::new(Cell::new((spent(), Duration::ZERO))));
    let dog = turns.clone();
    let watchdog = tokio::task::spawn_local(async move {
        loop {
            dog.next();
            tokio::task::yield_now().await;
        }
    });
    let made = work.await;
    watchdog.abort();
    // The watchdog may have been waiting when `work` ended.
    (made, turns.next())
}

/// Runs a server with smaller limits, so that a debug build reaches them soon.
fn run(work: impl AsyncFnOnce(Router)) {
    let dir = dir();
    let setup = Setup::new(&dir).limits(|limits| limits.bulk_body_bytes_max = 24 << 20);
    let (state, collections) = setup.wire();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, work(hapax::http::router(state)));
    drop(runtime);
    collections.unwrap().close();
}

struct Sent<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Body,
}

/// Returns the whole answer, read as fast as it arrives.
async fn send(router: &Router, Sent { method, path, headers, body }: Sent<'_>) -> (StatusCode, Bytes) {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    (response.status(), to_bytes(response.into_body(), usize::MAX).await.unwrap())
}

/// Sends a request, and checks the longest time between two turns of the watchdog.
async fn within_a_turn(router: &Router, what: &str, sent: Sent<'_>) -> (StatusCode, Bytes) {
    let (answer, longest) = watched(send(router, sent)).await;
    println!("{what}: {} {} bytes, longest turn {longest:?}", answer.0, answer.1.len());
    assert!(longest <= TURN_MAX, "{what}: nothing else had a turn for {longest:?}");
    answer
}

fn post<'a>(path: &'a str, headers: &'a [(&'a str, &'a str)], body: impl Into<Body>) -> Sent<'a> {
    Sent { method: "POST", path, headers, body: body.into() }
}

fn last_line(body: &[u8]) -> Value {
    serde_json::from_slice(body.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap()).unwrap()
}

/// Returns `bytes` repeated to `total` bytes, compressed.
fn zstd(bytes: &[u8], total: usize) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let block = bytes.repeat((MIB / bytes.len()).max(1));
    (0..total / block.len()).for_each(|_| encoder.write_all(&block).unwrap());
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8], total: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let block = bytes.repeat((MIB / bytes.len()).max(1));
    (0..total / block.len()).for_each(|_| encoder.write_all(&block).unwrap());
    encoder.finish().unwrap()
}

/// Makes a body of frames of this many bytes. All of them are available at once, as from a connection.
fn frames(bytes: Vec<u8>, each: usize) -> Body {
    let bytes = Bytes::from(bytes);
    let frames = (0..bytes.len()).step_by(each).map(move |at| bytes.slice(at..(at + each).min(bytes.len())));
    Body::from_stream(futures::stream::iter(frames.map(Ok::<_, std::convert::Infallible>)))
}

#[test]
fn lines_that_say_nothing_take_turns_and_are_bounded() {
    run(async |router| {
        let lines = |encoding| [("content-type", NDJSON), ("content-encoding", encoding)];
        let (plain, gz, zs) = (lines("identity"), lines("gzip"), lines("zstd"));
        for (what, path, headers, body) in [
            ("line feeds, zstd", BULK, &zs, zstd(b"\n", 64 * MIB)),
            ("line feeds, zstd, duplex", DUPLEX, &zs, zstd(b"\n", 256 * MIB)),
            ("line feeds, gzip, duplex", DUPLEX, &gz, gzip(b"\n", 64 * MIB)),
            ("line feeds, plain, duplex", DUPLEX, &plain, b"\n".repeat(32 * MIB)),
            ("blank lines, plain, duplex", DUPLEX, &plain, b" \r\n".repeat(12 * MIB)),
            ("one blank line without an end, duplex", DUPLEX, &zs, zstd(b" ", 256 * MIB)),
            ("a line without an end, zstd", BULK, &zs, zstd(b"x", 64 * MIB)),
            ("a line without an end, zstd, duplex", DUPLEX, &zs, zstd(b"x", 256 * MIB)),
            ("a line without an end, gzip, duplex", DUPLEX, &gz, gzip(b"x", 64 * MIB)),
        ] {
            let (status, body) = within_a_turn(&router, what, post(path, headers, body)).await;
            let last = last_line(&body);
            assert_eq!((status, &last["kind"]), (StatusCode::OK, &json!("fatal")), "{what}: {last}");
            assert_eq!(last["error"]["code"], "too_large", "{what}: {last}");
        }
        // Blank lines count as lines.
        let limit = |more: usize| post(BULK, &plain, "\n".repeat(20_000 + more));
        let (_, body) = send(&router, limit(0)).await;
        assert_eq!(last_line(&body)["kind"], "summary");
        let (_, body) = send(&router, limit(1)).await;
        assert_eq!(last_line(&body)["kind"], "fatal");
    });
}

/// Input from which a decoder produces no output is consumed in a single poll, because the decoder requests more input
/// until it can produce output.
#[test]
fn compressed_frames_that_say_nothing_take_turns() {
    let skippable = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    let empty_zstd = zstd::encode_all(&b""[..], 1).unwrap();
    let empty_gzip = gzip(b"x", 0);
    run(async |router| {
        for (what, encoding, one, count) in [
            ("skippable frames of zstd", "zstd", &skippable[..], 200_000),
            ("empty frames of zstd", "zstd", &empty_zstd, 50_000),
            ("empty members of gzip", "gzip", &empty_gzip, 25_000),
        ] {
            let body = Bytes::from(one.repeat(count));
            for (path, content_type) in
                [(BULK, NDJSON), (DUPLEX, NDJSON), (CHECK, JSON), ("/v1/collections/default/sign", TEXT)]
            {
                let what = format!("{what} to {path}");
                let headers = [("content-type", content_type), ("content-encoding", encoding)];
                let (status, body) = within_a_turn(&router, &what, post(path, &headers, body.clone())).await;
                match content_type {
                    NDJSON => assert_eq!(last_line(&body)["lines"], 0),
                    JSON => assert_eq!(status, StatusCode::BAD_REQUEST),
                    _ => assert_eq!(status, StatusCode::OK),
                }
            }
        }
    });
}

#[test]
fn lines_that_come_at_once_take_turns() {
    run(async |router| {
        let headers = [("content-type", NDJSON)];
        let (_, body) = within_a_turn(&router, "faulty lines", post(DUPLEX, &headers, b"1\n".repeat(50_000))).await;
        assert_eq!(last_line(&body)["summary"]["errors"], 50_000);
        let deletes = (0..20_000).map(|id| format!("{{\"id\":\"{id}\"}}\n")).collect::<String>();
        let path = "/v1/collections/default/bulk?op=delete&duplex=true";
        let (_, body) = within_a_turn(&router, "deletes", post(path, &headers, deletes)).await;
        assert_eq!(last_line(&body)["summary"]["documents"], 20_000);
    });
}

#[test]
fn whole_bodies_and_texts_take_turns() {
    run(async |router| {
        let exact = json!({"verify": "exact"}).to_string();
        let put = Sent {
            method: "PUT",
            path: "/v1/collections/exact",
            headers: &[("content-type", JSON)],
            body: exact.into(),
        };
        assert_eq!(send(&router, put).await.0, StatusCode::CREATED);
        let spaces = zstd(b" ", 15 * MIB);
        let packed = |content_type| [("content-type", content_type), ("content-encoding", "zstd")];
        let json_packed = packed(JSON);
        for (method, path) in [
            ("POST", CHECK),
            ("POST", "/v1/collections/default/documents"),
            ("POST", "/v1/collections/default/documents/get"),
            ("POST", "/v1/collections/default/documents/delete"),
            ("POST", "/v1/collections/default/batch"),
            ("POST", "/v1/collections/default/compare"),
            ("POST", "/v1/dedup"),
            ("POST", "/v1/tune"),
            ("POST", "/v1/backups"),
            ("PUT", "/v1/collections/new"),
            ("PATCH", "/v1/collections/default"),
        ] {
            let sent = Sent { method, path, headers: &json_packed, body: spaces.clone().into() };
            let (status, _) = within_a_turn(&router, &format!("white space to {method} {path}"), sent).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {path}");
        }
        let text = packed(TEXT);
        for path in ["/v1/collections/default/sign", "/v1/collections/exact/check"] {
            let body = zstd(b"many words ", 15 * MIB);
            let (status, _) = within_a_turn(&router, &format!("a text to {path}"), post(path, &text, body)).await;
            assert_eq!(status, StatusCode::OK, "{path}");
        }
        // JSON of up to 64 KiB is parsed on the server's thread and not in the pool.
        let set = format!("{{\"set\":[{}1]}}", "1,".repeat(32_000));
        let keys = (0..6_000).map(|key| format!("\"{key}\":1,")).collect::<String>();
        let metadata = format!("{{\"text\":\"x\",\"metadata\":{{{keys}\"x\":1}}}}");
        for body in [set, metadata] {
            within_a_turn(&router, "a short body", post(CHECK, &[("content-type", JSON)], body)).await;
        }
    });
}

#[test]
fn what_is_thrown_away_takes_turns() {
    run(async |router| {
        for (bytes, each) in [(MIB, 1), (31 * MIB, 16 * 1024), (31 * MIB, 31 * MIB)] {
            let what = format!("{bytes} bytes in frames of {each} to no route");
            let sent = post("/v1/nowhere", &[("content-type", JSON)], frames(vec![b' '; bytes], each));
            let (status, _) = within_a_turn(&router, &what, sent).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
        }
    });
}

#[test]
fn long_answers_take_turns() {
    run(async |router| {
        let json_type = [("content-type", JSON)];
        for from in (0..900).step_by(300) {
            let document =
                |at: u64| json!({"id": at.to_string(), "text": words(at), "metadata": {"m": "a".repeat(16_000)}});
            let documents: Vec<_> = (from..from + 300).map(document).collect();
            let body = json!({"op": "insert", "documents": documents}).to_string();
            assert_eq!(send(&router, post("/v1/collections/default/batch", &json_type, body)).await.0, StatusCode::OK);
        }
        for encoding in ["identity", "gzip", "zstd"] {
            let path = "/v1/collections/default/documents?limit=900";
            let sent = Sent { method: "GET", path, headers: &[("accept-encoding", encoding)], body: Body::empty() };
            let (status, _) = within_a_turn(&router, &format!("a page, {encoding}"), sent).await;
            assert_eq!(status, StatusCode::OK);
        }
        let ids: Vec<_> = (0..900).map(|id| id.to_string()).collect();
        for path in ["/v1/collections/default/documents/get", "/v1/collections/default/documents/delete"] {
            let body = json!({ "ids": ids }).to_string();
            let (status, _) = within_a_turn(&router, path, post(path, &json_type, body)).await;
            assert_eq!(status, StatusCode::OK);
        }
    });
}
