//! Requests to servers that may be killed, or whose cluster may fail, before they answer.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub has_retry_after: bool,
    pub body: Value,
}

impl Answer {
    /// Returns the code of a problem.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

pub fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .new_agent()
}

/// Sends a request. `None`: there is no whole answer.
pub fn ask(agent: &Agent, method: &str, url: &str, body: &Value) -> Option<Answer> {
    let (kind, bytes) = match body {
        Value::Null => (None, String::new()),
        // Lines of bulk.
        Value::String(lines) => (Some("application/x-ndjson"), lines.clone()),
        body => (Some("application/json"), body.to_string()),
    };
    let mut request = Request::builder().method(method).uri(url);
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    let sent = match kind {
        None => agent.run(request.body(()).expect("a request")),
        Some(_) => agent.run(request.body(bytes).expect("a request")),
    };
    let mut response = sent.ok()?;
    let text = response.body_mut().with_config().limit(1 << 26).read_to_string().ok()?;
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let is_lines = response.headers().get("content-type").is_some_and(|kind| kind == "application/x-ndjson");
    let body = if is_lines { Value::Array(text.lines().map(parsed).collect()) } else { parsed(&text) };
    let has_retry_after = response.headers().contains_key("retry-after");
    Some(Answer { status: response.status().as_u16(), has_retry_after, body })
}
