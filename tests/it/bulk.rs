//! Bulk requests: each line gets one answer line, in the same order, for any lines and any speed of the client.

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, Raw, words};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

fn line(id: &str, text: &str) -> String {
    json!({"id": id, "text": text}).to_string() + "\n"
}

/// Returns the head of a chunked bulk request.
fn head(query: &str, headers: &str) -> String {
    format!(
        "POST /v1/collections/default/bulk?{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
         Transfer-Encoding: chunked\r\n{headers}\r\n"
    )
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn summary(lines: &[Value]) -> &Value {
    let last = lines.last().unwrap();
    assert_eq!(last["kind"], "summary", "{last}");
    &last["summary"]
}

/// Some generated clients do not support a media type for JSON lines. They use `application/octet-stream` for requests
/// and for answers.
#[test]
fn an_answer_has_a_type_that_its_client_knows() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for (sent, answered) in [
        ("application/x-ndjson", "application/x-ndjson"),
        ("application/jsonl; charset=utf-8", "application/x-ndjson"),
        ("application/octet-stream", "application/octet-stream"),
    ] {
        let target = "/v1/collections/default/bulk?op=check";
        let answer = client.send("POST", target, &[("content-type", sent)], line("a", &words(1)).as_bytes());
        assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, answered));
        assert_eq!(summary(&answer.lines())["unique"], 1);
    }
}

#[test]
fn a_line_sees_all_lines_before_it() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let body: String = (0..3000u64).map(|at| line(&format!("d{at}"), &words(at % 1000))).collect();
    let lines = client.bulk("op=insert", &body);
    assert_eq!(lines.len(), 3001);
    for (at, line) in lines[..3000].iter().enumerate() {
        assert_eq!((&line["kind"], &line["line"]), (&json!("verdict"), &json!(at + 1)));
        assert_eq!(line["id"], format!("d{at}"));
        if at < 1000 {
            assert_eq!(line["verdict"], "unique");
        } else {
            assert_eq!(
                (&line["verdict"], &line["duplicate_of"]),
                (&json!("exact_duplicate"), &json!(format!("d{}", at % 1000)))
            );
        }
    }
    assert_eq!((&summary(&lines)["unique"], &summary(&lines)["exact_duplicate"]), (&json!(1000), &json!(2000)));

    let checks: String = (0..1500u64).map(|at| json!({"text": words(at)}).to_string() + "\n").collect();
    let lines = client.bulk("op=check", &checks);
    assert_eq!((&summary(&lines)["unique"], &summary(&lines)["stored"]), (&json!(500), &json!(0)));

    let deletes: String = (0..1100u64).map(|at| json!({"id": format!("d{at}")}).to_string() + "\n").collect();
    let lines = client.bulk("op=delete", &deletes);
    assert_eq!((&summary(&lines)["deleted"], &summary(&lines)["documents"]), (&json!(1000), &json!(1100)));
    assert_eq!(client.get("/v1/collections/default").ok()["documents"], 0);
}

#[test]
fn one_bad_line_gives_one_error_line_and_spoils_nothing_else() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.bulk_line_bytes_max = 100_000).start();
    let client = Client::of(&server);
    let bad: [&[u8]; 10] = [
        b"{",
        b"nonsense",
        b"[]",
        b"{\"text\":\"no id\"}",
        b"{\"id\":\"x\",\"text\":\"\xff\"}",
        b"{\"id\":\"x\",\"text\":5}",
        b"{\"id\":\"x\",\"text\":\"a\",\"extra\":1}",
        b"{\"id\":\"x\",\"html\":\"<p>\",\"text\":\"a\"}",
        b"{\"id\":\"x\",\"text\":\"a\",\"text\":\"b\"}",
        b"{\"id\":\"\",\"text\":\"a\"}",
    ];
    let mut body = b"\xef\xbb\xbf".to_vec();
    for (at, bad) in bad.iter().enumerate() {
        body.extend_from_slice(line(&format!("good{at}"), &words(at as u64)).as_bytes());
        body.extend_from_slice(bad);
        body.extend_from_slice(b"\r\n\n");
    }
    body.extend_from_slice(line("long", &"x ".repeat(100_000)).as_bytes());
    body.extend_from_slice(line("last", &words(99)).trim_end().as_bytes());
    let target = "/v1/collections/default/bulk?op=insert";
    let answer = client.send("POST", target, &[("content-type", "application/x-ndjson")], &body);
    let lines = answer.lines();
    assert_eq!(lines.len(), 2 * bad.len() + 3);
    for (at, pair) in lines[..2 * bad.len()].chunks(2).enumerate() {
        assert_eq!((&pair[0]["line"], &pair[0]["verdict"]), (&json!(3 * at + 1), &json!("unique")), "{}", pair[0]);
        assert_eq!((&pair[1]["line"], &pair[1]["kind"]), (&json!(3 * at + 2), &json!("error")), "{}", pair[1]);
        let request_id = answer.headers["x-request-id"].to_str().unwrap();
        assert_eq!(pair[1]["error"]["request_id"], request_id);
    }
    let codes: Vec<_> = lines.iter().filter_map(|line| line["error"]["code"].as_str()).collect();
    let invalid = "invalid_value";
    let json = "malformed_json";
    let expected = [json, json, invalid, invalid, invalid, invalid, invalid, invalid, invalid, invalid, "too_large"];
    assert_eq!(codes, expected);
    assert_eq!(lines[1]["error"]["detail"], "the JSON ends too early at column 2", "no line number");
    assert_eq!(lines[2 * 6 + 1]["id"], "x", "the id is told where there is one");
    assert_eq!(lines[2 * bad.len() + 1]["id"], "last");
    assert_eq!((&summary(&lines)["unique"], &summary(&lines)["errors"]), (&json!(11), &json!(11)));
    assert_eq!(lines.last().unwrap()["lines"], 3 * bad.len() + 2);
}

/// Returns the body of a chunked answer. A line may be cut between two chunks.
fn unchunked(answer: &[u8]) -> String {
    let body = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let (mut rest, mut text) = (&answer[body..], Vec::new());
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let bytes = std::str::from_utf8(&rest[..end]).expect("a length");
        let bytes = usize::from_str_radix(bytes, 16).expect("a length in hex");
        text.extend_from_slice(&rest[end + 2..][..bytes]);
        rest = &rest[end + 2 + bytes + 2..];
    }
    String::from_utf8(text).expect("JSON lines")
}

#[test]
fn a_client_that_writes_all_and_then_reads_does_not_deadlock() {
    let dir = dir();
    let server = Local::plain(&dir);
    let mut raw = Raw::connect(server.address);
    let body: String = (0..20_000u64).map(|at| line(&format!("https://example/{at}"), &words(at))).collect();
    raw.send(head("op=insert", "Connection: close\r\n"));
    raw.send(chunk(body.as_bytes()));
    raw.send("0\r\n\r\n");
    let text = unchunked(&raw.read_until(|_| false));
    assert!(text.contains("\"kind\":\"summary\""), "{}", &text[text.len().saturating_sub(500)..]);
    assert_eq!(text.matches("\"kind\":\"verdict\"").count(), 20_000);
}

#[test]
fn too_many_lines_or_bytes_end_the_stream_and_duplex_lifts_that() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.bulk_lines_max = 10;
            limits.bulk_body_bytes_max = 10_000;
        })
        .start();
    let client = Client::of(&server);
    let lines: String = (0..15u64).map(|at| line(&format!("a{at}"), "one two three")).collect();
    let answers = client.bulk("op=insert", &lines);
    assert_eq!(answers.len(), 11, "what was within the bound is answered");
    let fatal = &answers[10];
    assert_eq!((&fatal["kind"], &fatal["line"]), (&json!("fatal"), &json!(10)));
    assert_eq!(fatal["error"]["code"], "too_large");
    summary(&client.bulk("op=insert&duplex=true", &lines));

    let large: String = (0..9u64).map(|at| line(&format!("b{at}"), &"x ".repeat(1000))).collect();
    let target = "/v1/collections/default/bulk?op=insert";
    let ndjson = ("content-type", "application/x-ndjson");
    client.send("POST", target, &[ndjson], large.as_bytes()).problem(413, "too_large");
    let zipped = zstd::encode_all(large.as_bytes(), 3).unwrap();
    let answer = client.send("POST", target, &[ndjson, ("content-encoding", "zstd")], &zipped);
    assert_eq!(answer.lines().last().unwrap()["error"]["code"], "too_large", "counted after decompression");
    let answer =
        client.send("POST", &format!("{target}&duplex=true"), &[ndjson, ("content-encoding", "zstd")], &zipped);
    summary(&answer.lines());
}

#[test]
fn duplex_answers_each_line_while_the_request_is_open() {
    let dir = dir();
    let server = Local::plain(&dir);
    for accept in ["", "Accept-Encoding: gzip\r\n", "Accept-Encoding: zstd\r\n"] {
        let mut raw = Raw::connect(server.address);
        raw.send(head("op=check&duplex=true", accept));
        raw.read_until(|seen| seen.ends_with(b"\r\n\r\n"));
        for _ in 0..3 {
            raw.send(chunk(json!({"text": "one two three"}).to_string().as_bytes()));
            raw.send(chunk(b"\n"));
            // The answer arrives at once, compressed or not. It does not wait for the end of the request.
            let piece = raw.read_until(|seen| seen.ends_with(b"\r\n") && seen.len() > 8);
            assert!(piece.len() > 8, "{accept}");
        }
        raw.send("0\r\n\r\n");
        raw.read_until(|seen| seen.ends_with(b"0\r\n\r\n"));
    }
}

#[test]
fn answers_left_unread_end_the_stream_with_a_fatal_line() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.bulk_answer_buffer_bytes_max = 64 * 1024;
            limits.bulk_stall_timeout = Duration::from_millis(500);
        })
        .start();
    let mut raw = Raw::connect(server.address);
    raw.send(head("op=check&duplex=true", "Connection: close\r\n"));
    // This is more than fits into all buffers together, so the server has to continue reading.
    let one = json!({"id": "x".repeat(2000), "text": "one two"}).to_string() + "\n";
    raw.send(chunk(one.repeat((24 << 20) / one.len()).as_bytes()));
    let answer = raw.read_until(|_| false);
    let text = String::from_utf8_lossy(&answer);
    let last = text.lines().rfind(|line| line.contains("\"kind\"")).unwrap();
    assert!(last.starts_with("{\"kind\":\"fatal\"") && last.contains("stalled"), "{last}");
    Client::of(&server).get("/livez").ok();
}

#[test]
fn a_body_that_breaks_off_has_no_summary() {
    let dir = dir();
    let server = Local::plain(&dir);
    let mut raw = Raw::connect(server.address);
    raw.send(head("op=insert", "Connection: close\r\n"));
    raw.send(chunk(line("a", "one two three").as_bytes()));
    raw.send("not a chunk\r\n");
    let text = raw.read_until(|_| false);
    let text = String::from_utf8_lossy(&text);
    assert!(!text.contains("summary"), "{text}");
    Client::of(&server).get("/livez").ok();
}

#[test]
fn clients_that_leave_free_what_they_held() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.bulk_requests_max = 2).start();
    let client = Client::of(&server);
    for round in 0..5u64 {
        for _ in 0..2 {
            let mut raw = Raw::connect(server.address);
            raw.send(head("op=insert&duplex=true", ""));
            raw.send(chunk(line(&format!("left{round}"), &words(round)).as_bytes()));
            drop(raw);
        }
        let since = Instant::now();
        loop {
            let target = "/v1/collections/default/bulk?op=check";
            let answer =
                client.send("POST", target, &[("content-type", "application/x-ndjson")], b"{\"text\":\"a\"}\n");
            if answer.status == 200 {
                break;
            }
            answer.problem(503, "overloaded");
            assert!(since.elapsed() < Duration::from_secs(60), "the places are given back");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_stop_ends_endless_streams_with_a_fatal_line() {
    let dir = dir();
    let server = Local::plain(&dir);
    let mut raw = Raw::connect(server.address);
    raw.send(head("op=insert&duplex=true", ""));
    raw.send(chunk(line("a", &words(1)).as_bytes()));
    raw.read_until(|seen| seen.windows(9).any(|window| window == b"\"line\":1,"));
    server.stop();
    let mut rest = String::new();
    // The server closes the connection when the stream has ended.
    raw.0.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"kind\":\"fatal\"") && rest.contains("shutting_down"), "{rest}");
    assert_eq!(server.stopped(), 0);
}

#[test]
fn what_a_bulk_request_must_say() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let send = |query: &str| {
        let target = format!("/v1/collections/default/bulk{query}");
        client.send("POST", &target, &[("content-type", "application/x-ndjson")], b"{}\n")
    };
    for query in
        ["", "?op=", "?op=upsert", "?op=insert&threshold=0.5", "?op=check&on_existing=keep", "?op=insert&duplex=yes"]
    {
        send(query).problem(422, "invalid_value");
    }
    assert_eq!(summary(&client.bulk("op=insert", ""))["documents"], 0);
}

#[test]
fn other_fields_of_a_line_are_refused_or_ignored() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let body = "{\"id\":\"a\",\"text\":\"one two three four five six\",\"title\":\"T\"}\n";
    let line = &client.bulk("op=insert", body)[0];
    assert_eq!(
        (&line["error"]["code"], &line["error"]["errors"][0]["field"]),
        (&json!("invalid_value"), &json!("title"))
    );
    assert_eq!(client.bulk("op=insert&extra=ignore", body)[0]["outcome"], "inserted");
    assert_eq!(client.bulk("op=check&extra=ignore", body)[0]["verdict"], "unique", "its own id");
    assert_eq!(client.bulk("op=delete&extra=ignore", "{\"id\":\"a\",\"title\":\"T\"}\n")[0]["deleted"], 1);
    // Fields of documents are never ignored.
    let body = "{\"id\":\"a\",\"text\":\"one two\",\"metadata\":\"T\"}\n";
    assert_eq!(client.bulk("op=insert&extra=ignore", body)[0]["error"]["errors"][0]["field"], "metadata");
}
