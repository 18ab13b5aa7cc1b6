//! A key, or an address without a key, may do as much as its limits allow. A request beyond them is refused before any
//! work on it. A stream that has begun is slowed, but never fails.

use std::time::{Duration, Instant};

use hapax::config::{AddressLimits, Addresses, TrustedProxies};
use hapax::http::ROUTES;
use serde_json::{Value, json};

use super::file;
use crate::support::client::{Answer, CHECK, Client, DOCUMENTS, Raw, gzip, words};
use crate::support::library::{Dir, dir};
use crate::support::local::{Local, Setup};
use crate::support::server::Starting;

const BATCH: &str = "/v1/collections/default/batch";
const SCOPES: [&str; 5] = ["check", "read", "insert", "delete", "sign"];

/// Starts a server with a key `slow` with these limits, and a key `free` without any.
fn server(dir: &Dir, limits: &str) -> Local {
    let keys = [("slow", &SCOPES[..], limits), ("free", &SCOPES[..], "")];
    Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(dir) }.start()
}

fn batch(op: &str, documents: std::ops::Range<u64>) -> Value {
    let documents: Vec<_> =
        documents.map(|number| json!({"id": format!("d{number}"), "text": words(number)})).collect();
    json!({"op": op, "documents": documents})
}

/// Checks for 429, and returns the number of seconds to wait.
fn wait(answer: &Answer, limit: &str) -> u64 {
    let problem = answer.problem(429, "rate_limited");
    assert!(problem["detail"].as_str().unwrap().contains(&format!("`{limit}`")), "{problem}");
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[test]
fn a_batch_is_taken_whole_or_refused_before_any_work() {
    let dir = dir();
    let server = server(&dir, "limits = { documents_per_second = 1 }");
    let (slow, free) = (Client::of(&server).key("slow"), Client::of(&server).key("free"));
    // This is far more than the allowance of a second.
    let answer = slow.post(BATCH, &batch("insert", 0..600)).ok();
    assert_eq!(answer["summary"]["stored"], 600);
    let refused = slow.post(BATCH, &batch("insert", 600..603));
    assert!((400..=601).contains(&wait(&refused, "documents_per_second")));
    for (target, body) in [
        (CHECK.to_owned(), json!({"text": words(1)})),
        (DOCUMENTS.to_owned(), json!({"id": "late", "text": words(9999)})),
        (format!("{DOCUMENTS}/delete"), json!({"ids": ["d1"]})),
        (format!("{DOCUMENTS}/get"), json!({"ids": ["d1"]})),
        ("/v1/collections/default/sign".to_owned(), json!({"text": words(1)})),
        ("/v1/collections/default/compare".to_owned(), json!({"a": {"id": "d1"}, "b": {"id": "d2"}})),
    ] {
        wait(&slow.post(&target, &body), "documents_per_second");
    }
    wait(&slow.text(CHECK, words(1).as_bytes()), "documents_per_second");
    wait(&slow.delete(&format!("{DOCUMENTS}?id=d1")), "documents_per_second");
    wait(&slow.get(&format!("{DOCUMENTS}?id=d1")), "documents_per_second");
    wait(&slow.get("/v1/collections/default/clusters"), "documents_per_second");
    // Requests without documents still work, and so do requests with other keys.
    slow.get("/v1/version").ok();
    let all = free.get("/v1/collections/default").ok();
    assert_eq!(all["documents"], 600, "nothing was inserted and nothing deleted");
    free.post(BATCH, &batch("check", 0..500)).ok();
}

/// All of these requests pass the check at their beginning, because the key has used none of its allowance yet.
#[test]
fn batches_that_arrive_at_once_are_each_taken_whole_or_not_at_all() {
    for limits in ["bytes_per_second = 1", "documents_per_second = 1"] {
        let dir = dir();
        let server = server(&dir, &format!("limits = {{ {limits} }}"));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..8)
                .map(|sender| {
                    let slow = Client::of(&server).key("slow");
                    scope.spawn(move || slow.post(BATCH, &batch("insert", sender * 50..sender * 50 + 50)).status)
                })
                .collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        let taken = statuses.iter().filter(|status| **status == 200).count();
        assert!(taken > 0 && statuses.iter().all(|status| [200, 429].contains(status)), "{limits}: {statuses:?}");
        let stored = Client::of(&server).key("free").get("/v1/collections/default").ok()["documents"].clone();
        assert_eq!(stored, taken * 50, "{limits}: {statuses:?}");
        // The first batch uses up the allowance of the next 50 seconds or more, so all other batches are refused.
        assert_eq!(taken, 1, "{limits}: {statuses:?}");
    }
}

#[test]
fn the_series_of_a_key_leave_the_metrics_with_it() {
    let dir = dir();
    let keys: [file::Line<'_>; 2] = [("ops", &["metrics"], ""), ("gone", &["check"], "")];
    let path = file::write(dir.path(), &keys);
    let environment = [("HAPAX__AUTH__KEYS_FILE", path.to_str().unwrap())];
    let server = Starting::spawn_with(&dir.path().join("data"), &[], &environment).ready();
    let series = |key: &str| {
        let text = Client::new(server.url("")).key("ops").get("/metrics").text();
        text.lines().filter(|line| line.contains(&format!("key=\"{key}\""))).count()
    };
    // The key has series even before its first request.
    assert_eq!((series("gone"), series("ops")), (8, 8));
    Client::new(server.url("")).key("gone").post(CHECK, &json!({"text": words(1)})).ok();
    file::write(dir.path(), &keys[..1]);
    file::until(|| series("gone") == 0);
    assert_eq!(series("ops"), 8);
    // A refused request must not create these series again.
    Client::new(server.url("")).key("gone").post(CHECK, &json!({"text": words(1)})).problem(401, "unauthorized");
    assert_eq!(series("gone"), 0);
    file::write(dir.path(), &keys);
    file::until(|| series("gone") == 8);
}

#[test]
fn bytes_count_after_decompression_however_they_were_sent() {
    let dir = dir();
    let server = server(&dir, "limits = { bytes_per_second = 1000 }");
    let slow = Client::of(&server).key("slow");
    // The body is small, but decodes to a long text.
    let text = words(1).repeat(1000);
    let document = gzip(json!({"text": text}).to_string().as_bytes());
    assert!(document.len() < 20_000);
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    slow.send("POST", CHECK, &headers, &document).ok();
    let seconds = text.len() as u64 / 1000;
    let waited = wait(&slow.get("/v1/version"), "bytes_per_second");
    assert!((seconds - 60..=seconds + 1).contains(&waited), "{waited} of {seconds}");
}

#[test]
fn a_body_that_is_refused_counts_too() {
    let dir = dir();
    let keys = [("slow", &SCOPES[..], "limits = { bytes_per_second = 1000 }")];
    let setup = Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(&dir) };
    let server = setup.limits(|limits| limits.body_bytes_max = 100_000).start();
    let slow = Client::of(&server).key("slow");
    assert_eq!(slow.post(CHECK, &json!({"text": "x".repeat(200_000)})).status, 413);
    assert!(wait(&slow.get("/v1/version"), "bytes_per_second") > 100);
}

/// The limits are checked one after another. If a limit refuses a request, the limits before it have already counted
/// the request.
#[test]
fn a_request_that_is_refused_for_its_documents_counts_with_its_bytes() {
    let dir = dir();
    let server = server(&dir, "limits = { bytes_per_second = 100000, documents_per_second = 1 }");
    let slow = Client::of(&server).key("slow");
    let documents = vec![json!({"text": "a"}); 600];
    slow.post(BATCH, &json!({"op": "check", "documents": documents})).ok();
    wait(&slow.post(CHECK, &json!({"text": "x".repeat(10_000_000)})), "documents_per_second");
    assert!(wait(&slow.get("/v1/version"), "bytes_per_second") > 50);
}

#[test]
fn requests_are_answered_up_to_their_limit() {
    let dir = dir();
    let server = server(&dir, "limits = { requests_per_second = 3 }");
    let (slow, free) = (Client::of(&server).key("slow"), Client::of(&server).key("free"));
    let begun = Instant::now();
    let (mut answered, mut refused) = (0, 0);
    while begun.elapsed() < Duration::from_secs(3) {
        let answer = slow.get("/v1/version");
        match answer.status {
            200 => answered += 1,
            _ => {
                assert_eq!(wait(&answer, "requests_per_second"), 1);
                refused += 1;
            }
        }
        free.get("/v1/version").ok();
    }
    let most = 3.0 + 3.0 * begun.elapsed().as_secs_f64();
    assert!(
        refused > 0 && answered >= 6 && f64::from(answered) <= most + 1.0,
        "{answered} answered, {refused} refused"
    );
}

#[test]
fn answers_tell_what_is_left() {
    let dir = dir();
    let server = server(&dir, "limits = { requests_per_second = 1000, requests_in_flight = 5 }");
    let answer = Client::of(&server).key("slow").get("/v1/version");
    let field = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    assert_eq!(
        field("ratelimit-policy"),
        "\"requests_per_second\";q=1000;w=1, \"requests_in_flight\";q=5;qu=\"concurrent-requests\""
    );
    assert!(field("ratelimit").starts_with("\"requests_per_second\";r="), "{}", field("ratelimit"));
    assert!(field("ratelimit").ends_with(";t=1, \"requests_in_flight\";r=4"), "{}", field("ratelimit"));
    let free = Client::of(&server).key("free").get("/v1/version");
    assert!(!free.headers.contains_key("ratelimit") && !free.headers.contains_key("ratelimit-policy"));
}

fn bulk_head(key: &str, query: &str) -> String {
    format!(
        "POST /v1/collections/default/bulk?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[test]
fn a_request_is_in_flight_until_its_answer_is_sent() {
    let dir = dir();
    let server = server(&dir, "limits = { requests_in_flight = 1 }");
    let slow = Client::of(&server).key("slow");
    slow.get("/v1/version").ok();
    let mut open = Raw::connect(server.address);
    open.send(bulk_head("slow", "op=check&duplex=true") + &chunk("{\"text\":\"a b c\"}\n"));
    open.read_until(|seen| String::from_utf8_lossy(seen).contains("\"unique\""));
    assert_eq!(wait(&slow.get("/v1/version"), "requests_in_flight"), 1);
    open.send("0\r\n\r\n");
    open.read_until(|seen| seen.ends_with(b"0\r\n\r\n"));
    // The server may notice a moment later that all bytes have been sent.
    let over = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        slow.get("/v1/version").status == 200
    });
    assert!(over, "the place is given back");
    // The place is also returned if the client leaves.
    let mut open = Raw::connect(server.address);
    open.send(bulk_head("slow", "op=check&duplex=true") + &chunk("{\"text\":\"a b c\"}\n"));
    open.read_until(|seen| String::from_utf8_lossy(seen).contains("\"unique\""));
    drop(open);
    let over = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        slow.get("/v1/version").status == 200
    });
    assert!(over, "the place is given back");
}

#[test]
fn a_bulk_request_is_slowed_and_never_fails() {
    let dir = dir();
    let server = server(&dir, "limits = { documents_per_second = 20, bytes_per_second = 20000 }");
    let slow = Client::of(&server).key("slow");
    let lines: String =
        (0..60).map(|number| json!({"id": format!("b{number}"), "text": words(number)}).to_string() + "\n").collect();
    let begun = Instant::now();
    let target = "/v1/collections/default/bulk?op=insert";
    let answers = slow.send("POST", target, &[("content-type", "application/x-ndjson")], lines.as_bytes()).lines();
    assert_eq!(answers.len(), 61);
    assert_eq!(answers[60]["summary"]["stored"], 60, "{}", answers[60]);
    // The first 20 documents are taken at once.
    assert!(begun.elapsed() >= Duration::from_millis(1900), "{:?}", begun.elapsed());
}

/// The limit is reached in the middle of a text.
#[test]
fn a_streamed_text_is_slowed_and_never_fails() {
    let dir = dir();
    let server = server(&dir, "limits = { bytes_per_second = 500000 }");
    let slow = Client::of(&server).key("slow");
    let text: String = (0..5000).map(words).collect::<Vec<_>>().join(" ");
    assert!(text.len() > 1_500_000);
    let begun = Instant::now();
    slow.text(CHECK, text.as_bytes()).ok();
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
}

#[test]
fn a_slowed_stream_ends_when_the_server_stops() {
    let dir = dir();
    let keys = [("slow", &SCOPES[..], "limits = { documents_per_second = 1 }")];
    let setup = Setup { keys_file: Some(file::write(dir.path(), &keys)), ..Setup::new(&dir) };
    let server = setup.limits(|limits| limits.drain_timeout = Duration::from_secs(30)).start();
    Client::of(&server).key("slow").post(BATCH, &batch("check", 0..1000)).ok();
    let mut open = Raw::connect(server.address);
    open.send(bulk_head("slow", "op=check&duplex=true") + &chunk("{\"text\":\"a b c\"}\n"));
    open.read_until(|seen| seen.starts_with(b"HTTP/1.1 200"));
    server.stop();
    let seen = open.read_until(|seen| seen.ends_with(b"0\r\n\r\n"));
    assert!(String::from_utf8_lossy(&seen).contains("shutting_down"), "{}", String::from_utf8_lossy(&seen));
    assert_eq!(server.stopped(), 0);
}

#[test]
fn two_keys_of_one_name_share_the_limits_of_the_newer() {
    let dir = dir();
    let path = file::write(dir.path(), &[]);
    let hash = |text: &str| hapax::keys::KeyDigest::of(text.as_bytes()).to_hex();
    let text = format!(
        "version = 1\n\
         [[key]]\nname = \"crawler\"\nid = \"k1\"\nsha256 = \"{}\"\nscopes = [\"check\"]\ncreated = \"2026-02-01T00:00:00Z\"\n\
         limits = {{ documents_per_second = 1 }}\n\
         [[key]]\nname = \"crawler\"\nid = \"k2\"\nsha256 = \"{}\"\nscopes = [\"check\"]\ncreated = \"2026-01-01T00:00:00Z\"\n",
        hash("newer-key"),
        hash("older-key")
    );
    std::fs::write(&path, text).unwrap();
    let server = Setup { keys_file: Some(path), ..Setup::new(&dir) }.start();
    Client::of(&server).key("older-key").post(BATCH, &batch("check", 0..200)).ok();
    wait(&Client::of(&server).key("newer-key").post(BATCH, &batch("check", 0..2)), "documents_per_second");
}

fn addresses(limits: AddressLimits, proxies: &[&str]) -> Addresses {
    let proxies: Vec<_> = proxies.iter().map(|&text| text.to_owned()).collect();
    Addresses { limits, trusted_proxies: TrustedProxies::new(&proxies).unwrap() }
}

#[test]
fn guessing_keys_is_limited_by_address_and_valid_keys_are_not() {
    let dir = dir();
    let keys = [("free", &SCOPES[..], "")];
    let keys_file = Some(file::write(dir.path(), &keys));
    // The limit is one request per second, so two at once are one too many.
    let limits = AddressLimits { requests_per_second: Some(1), ..AddressLimits::default() };
    let server = Setup { keys_file, addresses: addresses(limits, &[]), ..Setup::new(&dir) }.start();
    let (stranger, guesser) = (Client::of(&server), Client::of(&server).key("guess"));
    let answers: Vec<_> = (0..20).map(|_| guesser.get("/v1/version").status).collect();
    assert!(answers.contains(&401) && answers.contains(&429), "{answers:?}");
    // The refusal says that the client must wait for one second.
    let refused =
        (0..20).map(|_| stranger.get("/nowhere")).find(|answer| answer.status == 429).expect("over the limit");
    assert_eq!(wait(&refused, "address_limits.requests_per_second"), 1);
    for _ in 0..20 {
        Client::of(&server).key("free").get("/v1/version").ok();
        assert_eq!(stranger.get("/livez").status, 200);
        assert_eq!(stranger.get("/readyz").status, 200);
    }
}

#[test]
fn behind_a_trusted_proxy_each_client_has_its_own_limit() {
    let limits = AddressLimits { bytes_per_second: Some(1), ..AddressLimits::default() };
    let status = |server: &Local, forwarded: &str| {
        let client = Client::of(server);
        let body = json!({"text": words(1)}).to_string();
        let headers = [("content-type", "application/json"), ("x-forwarded-for", forwarded)];
        client.send("POST", CHECK, &headers, body.as_bytes()).status
    };
    let (trusting_dir, other_dir) = (dir(), dir());
    let trusting = Setup { addresses: addresses(limits, &["127.0.0.0/8"]), ..Setup::new(&trusting_dir) }.start();
    assert_eq!((status(&trusting, "192.0.2.1"), status(&trusting, "192.0.2.1")), (200, 429));
    assert_eq!(status(&trusting, "192.0.2.2"), 200);
    assert_eq!(
        status(&trusting, "192.0.2.77, 192.0.2.1, 127.0.0.2"),
        429,
        "what a client wrote itself is not believed"
    );
    assert_eq!((status(&trusting, "2001:db8::1"), status(&trusting, "2001:db8::ffff:2")), (200, 429), "one network");
    let other = Setup { addresses: addresses(limits, &["192.0.2.0/24"]), ..Setup::new(&other_dir) }.start();
    assert_eq!((status(&other, "192.0.2.1"), status(&other, "192.0.2.2")), (200, 429), "the header is ignored");
}

#[test]
fn every_route_but_the_probes_has_limits() {
    let dir = dir();
    let limits = AddressLimits { bytes_per_second: Some(1), ..AddressLimits::default() };
    let server = Setup { addresses: addresses(limits, &[]), ..Setup::new(&dir) }.start();
    let client = Client::of(&server);
    client.post(CHECK, &json!({"text": words(1).repeat(50)})).ok();
    for route in ROUTES {
        let target = route.path.replace("{collection}", "default");
        let answer = client.send(route.method.as_str(), &target, &[], b"");
        assert_eq!(answer.status == 429, !["/livez", "/readyz"].contains(&route.path), "{} {target}", route.method);
    }
    assert_eq!(client.get("/nowhere").status, 429);
}
