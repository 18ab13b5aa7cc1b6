//! Logs: valid JSON, a request id in every line of a request, and never a text, an id, metadata or the key.

use serde_json::Value;

use crate::support::server::Starting;

const KEY: &str = "a-key-nobody-must-read-in-a-log";
const SECRETS: [&str; 5] = [KEY, "zanzibar", "document-no-17", "metadatum", "Zanzibar"];

fn lines(log: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).expect("a log");
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} stands in the log:\n{text}");
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

#[test]
fn json_lines_carry_the_request_and_nothing_of_its_document() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let arguments = ["--log-format", "json", "--log-level", "info,hapax=trace"];
    let server = Starting::spawn_with(&data, &arguments, &[("HAPAX__AUTH__API_KEY", KEY)]).ready();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let post = |path: &str, key: &str, body: &str| {
        let answer = agent
            .post(server.url(path))
            .header("authorization", format!("Bearer {key}"))
            .header("x-request-id", "request-of-this-test")
            .content_type(if path.contains("/bulk") { "application/x-ndjson" } else { "application/json" })
            .send(body)
            .expect("an answer");
        answer.status().as_u16()
    };
    let document = r#"{"id":"document-no-17","text":"zanzibar one two three four","metadata":{"m":"metadatum"}}"#;
    assert_eq!(post("/v1/collections/default/documents", KEY, document), 200);
    assert_eq!(post("/v1/collections/default/check?with=metadata", KEY, document), 200);
    assert_eq!(post("/v1/collections/default/documents", "zanzibar-zanzibar", document), 401);
    assert_eq!(post("/v1/collections/default/documents", KEY, &document[..60]), 400);
    let other = document.replace("four", "five zanzibar six seven");
    assert_eq!(post("/v1/collections/default/documents", KEY, &other), 409);
    assert_eq!(post("/v1/collections/default/bulk?op=insert", KEY, &format!("{document}\n{other}\nzanzibar")), 200);
    assert_eq!(post("/v1/collections/default/documents?id=document-no-17&x=zanzibar", KEY, document), 422);
    assert!(server.terminate().success());

    let lines = lines(&data.with_extension("log"));
    assert!(lines.iter().any(|line| line["message"] == "ready"), "{lines:?}");
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()));
    let of_requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request answered").collect();
    assert_eq!(of_requests.len(), 7, "{lines:?}");
    for line in of_requests {
        assert_eq!(line["span"]["request_id"], "request-of-this-test", "{line}");
        assert!(line["span"]["route"].as_str().is_some_and(|route| route.starts_with("/v1/collections/{")), "{line}");
        assert!(line["status"].is_u64(), "{line}");
    }
}

#[test]
fn people_get_words() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let server = Starting::spawn_with(&data, &["--log-format", "human"], &[]).ready();
    assert!(server.terminate().success());
    let log = std::fs::read_to_string(data.with_extension("log")).expect("a log");
    assert!(log.contains("INFO") && log.contains("ready") && !log.contains("{\""), "{log}");
    assert!(!log.contains('\u{1b}'), "no colours where there is no terminal: {log}");
}

/// In an earlier version, a 401 was not logged at `info`, so an operator could not see that a client tried keys.
#[test]
fn refused_requests_are_logged_once_a_minute_and_address_and_counted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let refused = |data: &std::path::Path| -> Vec<Value> {
        lines(&data.with_extension("log"))
            .into_iter()
            .filter(|line| line["message"] == "requests were refused")
            .collect()
    };

    let data = dir.path().join("keyed");
    let server = Starting::spawn_with(&data, &["--log-format", "json"], &[("HAPAX__AUTH__API_KEY", KEY)]).ready();
    let get = |key: Option<&str>| {
        let mut request = agent.get(server.url("/v1/version?zanzibar=1"));
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.call().expect("an answer").status().as_u16()
    };
    for _ in 0..50 {
        assert_eq!((get(None), get(Some("zanzibar-zanzibar"))), (401, 401));
    }
    let mut scrape = agent.get(server.url("/metrics")).header("authorization", format!("Bearer {KEY}")).call().unwrap();
    let scrape = scrape.body_mut().read_to_string().unwrap();
    for reason in ["no_key", "wrong_key"] {
        assert!(scrape.contains(&format!("hapax_http_refused_total{{reason=\"{reason}\"}} 50\n")), "{scrape}");
    }
    assert!(server.terminate().success());
    let lines = refused(&data);
    // There is one line, or two if a minute ended during the requests.
    assert!((1..=2).contains(&lines.len()), "{lines:?}");
    assert_eq!((&lines[0]["address"], &lines[0]["reason"]), (&"127.0.0.1".into(), &"no_key".into()), "{lines:?}");

    let data = dir.path().join("open");
    let server = Starting::spawn_with(&data, &["--log-format", "json"], &[]).ready();
    for (name, value) in [("host", "zanzibar.example"), ("origin", "http://zanzibar.example")] {
        let answer = agent.get(server.url("/v1/version")).header(name, value).call().expect("an answer");
        assert_eq!(answer.status(), 403);
    }
    assert!(server.terminate().success());
    assert_eq!(refused(&data)[0]["reason"], "foreign_host");
}

/// The lines of a request's spans belong to the trace that its client names. The stages are parts of the request.
#[test]
fn spans_of_a_traced_request_are_logged() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let dir = tempfile::tempdir().expect("temporary directory");
    let data = dir.path().join("data");
    let arguments = ["--log-format", "json", "--log-level", "info,hapax::trace=debug"];
    let server = Starting::spawn_with(&data, &arguments, &[]).ready();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
    let post = |path: &str, traceparent: &str| {
        let request = agent.post(server.url(path)).header("traceparent", traceparent).content_type("application/json");
        let answer = request.send(r#"{"id":"document-no-17","text":"zanzibar one two three four"}"#);
        assert_eq!(answer.expect("an answer").status(), 200);
    };
    post("/v1/collections/default/documents", &format!("00-{TRACE}-00f067aa0ba902b7-01"));
    post("/v1/collections/default/check", "00-not-a-trace");
    assert!(server.terminate().success());

    let spans: Vec<Value> =
        lines(&data.with_extension("log")).into_iter().filter(|line| line["message"] == "span ended").collect();
    let names = |spans: &[&Value]| -> Vec<String> {
        spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
    };
    let (named, others): (Vec<&Value>, Vec<&Value>) = spans.iter().partition(|span| span["span"]["trace_id"] == TRACE);
    assert_eq!(names(&named), ["extract", "sign", "probe", "verify", "decide", "commit", "request"]);
    assert_eq!(names(&others)[..5], ["extract", "sign", "probe", "verify", "decide"], "{others:?}");
    for (spans, parent) in [(named, Some("00f067aa0ba902b7")), (others[..6].to_vec(), None)] {
        let request = spans.last().unwrap();
        assert_eq!((request["name"].as_str(), request["parent_span_id"].as_str()), (Some("request"), parent));
        assert!(spans.iter().all(|span| span["span"]["trace_id"] == request["span"]["trace_id"]));
        for stage in &spans[..spans.len() - 1] {
            assert_eq!(stage["parent_span_id"], request["span_id"], "{stage}");
            assert!(stage["duration_us"].as_f64() <= request["duration_us"].as_f64(), "{stage} of {request}");
            assert!(stage["started_unix_us"].as_u64() >= request["started_unix_us"].as_u64(), "{stage} of {request}");
        }
        assert_eq!(spans[1]["shingles"], 1, "five words have one shingle: {:?}", spans[1]);
        assert_eq!((&request["status"], &spans[4]["matches"]), (&200.into(), &0.into()));
    }
}
