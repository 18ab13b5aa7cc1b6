//! Every error is a problem with a code, wherever the error arises. No request gets a 500 or hangs.

use std::time::Duration;

use serde_json::json;

use crate::support::client::{CHECK, Client, Raw, fields, gzip};
use crate::support::library::dir;
use crate::support::local::{Local, Setup};

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn paths_and_methods_there_are_not() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for path in [
        "/nowhere",
        "/console/nowhere.js",
        "/v1",
        "/v1/",
        "/livez/",
        "/v1/collections/",
        "/v1//collections",
        "/V1/version",
    ] {
        client.get(path).problem(404, "route_not_found");
    }
    for (method, path, allow) in [
        ("DELETE", "/livez", "GET,HEAD"),
        ("GET", CHECK, "POST"),
        ("BREW", CHECK, "POST"),
        ("PUT", "/v1/collections/default/documents", "POST,GET,HEAD,DELETE"),
        ("POST", "/v1/collections/default", "GET,HEAD,PUT,PATCH,DELETE"),
    ] {
        let answer = client.send(method, path, &[], b"");
        answer.problem(405, "method_not_allowed");
        let mut allowed: Vec<_> = answer.headers["allow"].to_str().unwrap().split(',').collect();
        let mut expected: Vec<_> = allow.split(',').collect();
        allowed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "{method} {path}");
    }
}

#[test]
fn head_answers_where_get_does_without_a_body() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for path in ["/livez", "/readyz", "/openapi.yaml", "/v1/version", "/v1/collections/default"] {
        let (get, head) = (client.get(path), client.send("HEAD", path, &[], b""));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.headers["content-length"], get.body.len().to_string().as_str(), "{path}");
    }
    let head = client.send("HEAD", "/v1/collections/none", &[], b"");
    assert_eq!((head.status, head.body.len()), (404, 0));
}

#[test]
fn bodies_that_are_not_documents() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let send = |body: &[u8]| client.send("POST", CHECK, &[JSON], body);
    for body in ["", "{", "nonsense", "{\"text\":\"a\"} x", "{\"text\":'a'}", "{\"text\":\"a\",}", "{\"text\":\"\n\"}"]
    {
        assert_eq!(send(body.as_bytes()).problem(400, "malformed_json")["errors"], json!(null), "{body}");
    }
    let open = vec![b'['; 1 << 20];
    send(&open).problem(400, "malformed_json");
    let deep = format!("{{\"text\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(fields(&send(deep.as_bytes()).problem(422, "invalid_value")), ["text"]);
    let deep = format!("{{\"text\":\"a\",\"metadata\":{}1{}}}", "{\"a\":".repeat(2000), "}".repeat(2000));
    assert_eq!(fields(&send(deep.as_bytes()).problem(422, "invalid_value")), ["metadata"]);
    assert_eq!(fields(&send(b"{\"text\":\"\xff\"}").problem(422, "invalid_value")), ["body"]);
    assert_eq!(fields(&send(br#"{"text":"a","text":"b"}"#).problem(422, "invalid_value")), ["text"]);
    assert_eq!(fields(&send(br#"{"text":"a","txt":"b","x":1}"#).problem(422, "invalid_value")), ["txt", "x"]);
    assert_eq!(fields(&send(br#"{"text":"\ud800"}"#).problem(422, "invalid_value")), ["text"]);
    let mended = client.send("POST", &format!("{CHECK}?invalid=replace"), &[JSON], br#"{"text":"a\ud800b"}"#);
    assert_eq!(mended.ok()["verdict"], "unique");
    send(b"[]").problem(422, "invalid_value");
    send(b"5").problem(422, "invalid_value");
    send("\u{feff}{\"text\":\"a\"}".as_bytes()).ok();
    let problem = send(br#"{"signature":"AAAA","fingerprint":"00000000000000000000000000000000"}"#);
    problem.problem(409, "spec_mismatch");
    let fingerprint = client.get("/v1/collections/default").ok()["fingerprint"].clone();
    let short = client.post(CHECK, &json!({"signature": "AAAA", "fingerprint": fingerprint}));
    let problem = short.problem(422, "invalid_value");
    assert_eq!(fields(&problem), ["signature"]);
    assert!(problem["detail"].as_str().unwrap().contains("256 bytes"), "{problem}");
}

#[test]
fn raw_texts_are_utf8_or_mended_when_asked() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    assert_eq!(fields(&client.text(CHECK, b"a \xff b").problem(422, "invalid_value")), ["text"]);
    assert_eq!(client.text(&format!("{CHECK}?invalid=replace"), b"a \xff b").ok()["verdict"], "unique");
    let sets = client.text(&format!("{CHECK}?id=x"), b"\xef\xbb\xbfone two");
    assert_eq!(sets.ok()["shingles"], 1);
    assert_eq!(client.text(CHECK, b"").ok()["verdict"], "empty");
    assert_eq!(client.text(CHECK, "❤️☀️ ... \u{200b}".as_bytes()).ok()["verdict"], "empty");
    let documents = "/v1/collections/default/documents";
    assert_eq!(fields(&client.text(documents, b"one two").problem(422, "invalid_value")), ["id"]);
    let both = client.post(&format!("{CHECK}?id=a"), &json!({"id": "b", "text": "x"}));
    assert_eq!(fields(&both.problem(422, "invalid_value")), ["id"]);
}

#[test]
fn content_types_that_are_not_taken() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    for content_type in [
        "application/xml",
        "application/x-www-form-urlencoded",
        "text/plain; charset=latin1",
        "application/json; charset=utf-16",
        "nonsense",
    ] {
        let answer = client.send("POST", CHECK, &[("content-type", content_type)], b"{\"text\":\"a\"}");
        let problem = answer.problem(415, "unsupported_media_type");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{content_type}`")), "{detail}");
        let advice = detail.contains("with curl, add -H 'content-type: application/json'");
        assert_eq!(advice, content_type == "application/x-www-form-urlencoded", "{detail}");
    }
    for content_type in ["application/json; charset=UTF-8", "APPLICATION/JSON", "application/json;charset=\"utf-8\""] {
        client.send("POST", CHECK, &[("content-type", content_type)], b"{\"text\":\"a\"}").ok();
    }
    let mut raw = Raw::connect(server.address);
    raw.send("POST /v1/collections/default/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(raw.status(), 415, "no content type at all");
    let answer = client.send("POST", CHECK, &[JSON, ("content-encoding", "br")], b"{}");
    answer.problem(415, "unsupported_media_type");
    assert_eq!(answer.headers["accept-encoding"], "gzip, zstd");
}

#[test]
fn compressed_bodies_are_read_and_bombs_are_not() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.body_bytes_max = 1 << 20).start();
    let client = Client::of(&server);
    let document = json!({"text": "one two three four five six"}).to_string();
    let send = |encoding: &str, body: &[u8]| client.send("POST", CHECK, &[JSON, ("content-encoding", encoding)], body);
    send("gzip", &gzip(document.as_bytes())).ok();
    send("zstd", &zstd::encode_all(document.as_bytes(), 3).unwrap()).ok();
    let bomb = format!("{{\"text\":\"{}\"}}", "a ".repeat(50 << 20));
    send("gzip", &gzip(bomb.as_bytes())).problem(413, "too_large");
    send("zstd", &zstd::encode_all(bomb.as_bytes(), 3).unwrap()).problem(413, "too_large");
    send("gzip", b"not gzip at all").problem(400, "malformed_body");
    send("zstd", &gzip(document.as_bytes())).problem(400, "malformed_body");
    let mut cut = gzip(document.as_bytes());
    cut.truncate(cut.len() - 6);
    send("gzip", &cut).problem(400, "malformed_body");
}

#[test]
fn a_check_of_a_text_without_words_is_a_check_like_others() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let target = |rest: &str| format!("/v1/collections/default/{rest}");
    client.text(&target("documents?id=held"), b"one two three four five six seven").ok();
    let empty = client.text(&target("check?id=held&threshold=0.5"), b"!!!").ok();
    assert_eq!(
        (&empty["verdict"], &empty["threshold"], &empty["stored"]),
        (&json!("empty"), &json!(0.5), &json!(false))
    );
    assert_eq!(empty["previous"]["similarity"], 0.0, "the id holds other content: {empty}");
    let other = client.text(&target("check?id=new"), b"!!!").ok();
    assert_eq!((&other["threshold"], other.get("previous")), (&json!(0.8), None));
}

#[test]
fn answers_are_compressed_where_asked() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let plain = client.get("/openapi.yaml").body;
    let zstd = client.send("GET", "/openapi.yaml", &[("accept-encoding", "zstd")], b"");
    assert_eq!(zstd.headers["content-encoding"], "zstd");
    assert_eq!(zstd::decode_all(zstd.body.as_slice()).unwrap(), plain);
}

#[test]
fn limits_on_sizes_are_413() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.batch_documents_max = 3).start();
    let client = Client::of(&server);
    let ids = json!({"ids": ["a", "b", "c", "d"]});
    client.post("/v1/collections/default/documents/get", &ids).problem(413, "too_large");
    client.post("/v1/collections/default/documents/delete", &ids).problem(413, "too_large");
    let documents = json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]);
    let batch = json!({"op": "check", "documents": documents});
    client.post("/v1/collections/default/batch", &batch).problem(413, "too_large");
}

#[test]
fn a_batch_has_one_error_for_one_bad_document() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let documents = json!([
        {"id": "a", "text": "one two three four five six seven"},
        {"id": "b", "txt": "x"},
        {"text": "no id"},
        {"id": "c", "text": "one two three four five six seven"},
        {"id": "a", "text": "other words under an id that is taken"},
        5,
        {"id": "d", "text": "..."},
    ]);
    let answer = client.post("/v1/collections/default/batch", &json!({"op": "insert", "documents": documents})).ok();
    let results = answer["results"].as_array().unwrap();
    let of = |at: usize| (results[at]["verdict"].as_str(), results[at]["error"]["code"].as_str());
    assert_eq!(of(0), (Some("unique"), None));
    assert_eq!(of(1), (None, Some("invalid_value")));
    assert_eq!(results[1]["id"], "b");
    assert_eq!(of(2), (None, Some("invalid_value")));
    assert_eq!(of(3), (Some("exact_duplicate"), None), "a document sees those before it");
    assert_eq!(of(4), (None, Some("id_conflict")));
    assert_eq!(of(5), (None, Some("invalid_value")));
    assert_eq!(of(6), (Some("empty"), None));
    let expected = json!({"documents": 7, "errors": 4, "unique": 1, "near_duplicate": 0, "exact_duplicate": 1,
                          "empty": 1, "stored": 1, "deleted": 0});
    assert_eq!(answer["summary"], expected);
}

#[test]
fn slow_and_mute_clients_are_given_up() {
    let dir = dir();
    let server = Setup::new(&dir)
        .limits(|limits| {
            limits.header_timeout = Duration::from_millis(300);
            limits.request_timeout = Duration::from_millis(300);
        })
        .start();
    let mut mute = Raw::connect(server.address);
    assert_eq!(mute.read_until(|_| false), b"", "a connection without a request is closed");
    let mut half = Raw::connect(server.address);
    half.send("PRI * HT");
    assert_eq!(half.read_until(|_| false), b"", "so is one that may yet become HTTP/2");
    let mut slow = Raw::connect(server.address);
    slow.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    slow.read_until(|_| false);
    let mut body = Raw::connect(server.address);
    body.send(
        "POST /v1/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    );
    assert_eq!(body.status(), 408);
    Client::of(&server).get("/livez").ok();
}

#[test]
fn bodies_refused_by_their_length_still_get_their_answer() {
    let dir = dir();
    let server = Setup::new(&dir).limits(|limits| limits.body_bytes_max = 1000).start();
    let client = Client::of(&server);
    let large = json!({"text": "a ".repeat(4 << 20)});
    client.post(CHECK, &large).problem(413, "too_large");
    let mut polite = Raw::connect(server.address);
    polite.send("POST /v1/collections/default/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    polite.send("Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(polite.status(), 413, "and nobody was told to continue");
}

#[test]
fn request_ids_come_back() {
    let dir = dir();
    let server = Local::plain(&dir);
    let client = Client::of(&server);
    let answer = client.send("GET", "/nowhere", &[("x-request-id", "trace-7")], b"");
    assert_eq!(answer.problem(404, "route_not_found")["request_id"], "trace-7");
    let (one, two) = (client.get("/livez"), client.get("/livez"));
    assert_ne!(one.headers["x-request-id"], two.headers["x-request-id"]);
}

#[test]
fn a_refusal_leaves_the_connection_fit_for_the_next_request() {
    let dir = dir();
    let server = Setup { api_key: Some("a-key-of-some-length-1"), ..Setup::new(&dir) }.start();
    let mut raw = Raw::connect(server.address);
    for _ in 0..20 {
        raw.send(
            "POST /v1/tune HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 300000\r\n\r\n",
        );
        std::thread::sleep(Duration::from_millis(5));
        raw.send(vec![b' '; 300_000]);
        assert_eq!(raw.status(), 401);
        raw.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(raw.status(), 200);
    }
}
