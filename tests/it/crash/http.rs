//! Requests to a server that may end, or whose disk may fail, before it answers.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

/// The reason why there is no usable answer.
#[derive(Debug)]
pub enum Failure {
    /// The server was killed.
    Gone,
    /// The server reports a failure: a problem of status 5xx.
    Refused(Value),
}

pub fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .build()
        .new_agent()
}

type Response = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// Returns the body of an answer with a 2xx status.
pub fn answer(response: Response) -> Result<Value, Failure> {
    let mut response = response.map_err(|_| Failure::Gone)?;
    let status = response.status();
    let text = response.body_mut().read_to_string().map_err(|_| Failure::Gone)?;
    let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    match status.as_u16() {
        200..300 if text.is_empty() => Ok(Value::Null),
        200..300 => Ok(json(&text)),
        500.. => Err(Failure::Refused(json(&text))),
        _ => panic!("{status}: {text}"),
    }
}

/// Does the same as [`answer`], for a server that is not killed and whose disk works.
pub fn whole(response: Response) -> Value {
    answer(response).unwrap_or_else(|failure| panic!("no answer: {failure:?}"))
}

/// Sends a bulk request and passes on each answered line. A line that is incomplete, or that reports a failure, is not
/// an answer.
pub fn bulk(url: &str, body: String, lines: usize, mut answered: impl FnMut(usize, &Value)) -> Result<(), Failure> {
    let response = agent().post(url).content_type("application/x-ndjson").send(body).map_err(|_| Failure::Gone)?;
    if response.status() != 200 {
        return answer(Ok(response)).map(|answer| panic!("a bulk request was answered {answer}"));
    }
    let mut reader = BufReader::new(response.into_body().into_reader());
    let (mut line, mut count, mut refused) = (String::new(), 0, None);
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(|_| Failure::Gone)? == 0 || !line.ends_with('\n') {
            return Err(Failure::Gone);
        }
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if answer["kind"] == "summary" {
            assert_eq!(count, lines, "{answer}");
            return refused.map_or(Ok(()), |problem| Err(Failure::Refused(problem)));
        }
        count += 1;
        assert_eq!(answer["line"], count, "{answer}");
        if answer["kind"] == "error" {
            refused = Some(answer["error"].clone());
        } else {
            answered(count - 1, &answer);
        }
    }
}

/// Lists every document of a collection, page by page.
pub fn list(url: &str) -> Vec<Value> {
    pages(url, "documents").unwrap_or_else(|failure| panic!("no answer: {failure:?}"))
}

/// Reads all pages of a list; `of` is the name of the field with the items.
pub fn pages(url: &str, of: &str) -> Result<Vec<Value>, Failure> {
    let agent = agent();
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut request = agent.get(url).query("limit", "300");
        if let Some(cursor) = &cursor {
            request = request.query("cursor", cursor);
        }
        let page = answer(request.call())?;
        all.extend_from_slice(page[of].as_array().expect("a list"));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(all),
        }
    }
}

/// Returns the documents that exist among these ids.
pub fn get(url: &str, ids: &[String]) -> Vec<Value> {
    let found = whole(agent().post(format!("{url}/get")).send_json(serde_json::json!({ "ids": ids })));
    found["documents"].as_array().expect("documents").clone()
}
