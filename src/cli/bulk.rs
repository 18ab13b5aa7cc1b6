//! Sends one chunk in a bulk request, and sends a line again if it may succeed later. Input: a [`Chunk`]. Output: an
//! answer for each of its lines, in the order in which the answers arrive. Knows nothing of the use of the answers.

use std::io::{BufRead, BufReader};

use serde::Deserialize;

use super::api::Api;
use super::client::{ClientError, Problem};
use super::retry::{Patience, line_may_pass, may_pass};
use crate::input::Chunk;

/// The codes of errors that last until there is room again, on the disk or in the memory budget. Other errors with the
/// same status concern one document only.
const FULL: [&str; 2] = ["storage_full", "memory_budget_reached"];

/// Returns whether an error with this code concerns all later documents too.
pub(super) fn is_full(code: &str) -> bool {
    FULL.contains(&code)
}

/// The order in which lines are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any order: a line that is sent again may be stored after later lines.
    Any,
    /// The order of the chunk: if a line is sent again, all later lines are sent again too. So if several lines have
    /// the same id, the last one remains.
    Kept,
}

/// The fields of an answer line that this client needs.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    kind: &'a str,
    line: Option<usize>,
    error: Option<Problem>,
}

/// The reason why a chunk could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The request failed, and would fail again.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The stream ended before its summary line.
    #[error("the answer from {url} ended early{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Truncated {
        url: String,
        /// The reason in the last line.
        reason: Option<String>,
        /// Whether the same request may succeed a little later.
        passing: bool,
    },
    /// There was no room for a line. Each of the following lines would be refused too.
    #[error("there is no room for more documents: {detail}")]
    Full {
        /// The reason for refusing the line.
        detail: String,
    },
    /// The answer is not from hapax.
    #[error("the answer from {url} is not from a hapax server: {line}")]
    Foreign { url: String, line: String },
}

impl BulkError {
    /// Returns the error of a line of an answer which says that there is no room.
    pub(super) fn full(line: &str) -> Self {
        let problem = serde_json::from_str(line).ok().and_then(|line: Line<'_>| line.error);
        Self::Full { detail: problem.map(|problem| problem.detail).unwrap_or_default() }
    }
}

/// Sends all lines of `chunk` to `path`, and passes each answer line to `answered`, with its place in the chunk. Sends
/// lines again until each line has an answer, or until `patience` is over. Sending a line twice is safe, because
/// inserts are idempotent.
pub fn send(
    api: &dyn Api,
    path: &str,
    chunk: &Chunk,
    order: Order,
    mut patience: Patience<'_>,
    mut answered: impl FnMut(usize, &str),
) -> Result<(), BulkError> {
    let mut open: Vec<usize> = (0..chunk.lines.len()).collect();
    let mut body = Vec::new();
    while !open.is_empty() {
        body.clear();
        for &place in &open {
            body.extend_from_slice(&chunk.lines[place]);
            body.push(b'\n');
        }
        let last = patience.is_over();
        let mut done = vec![false; open.len()];
        let mut is_behind_open = false;
        let result = send_once(api, path, &body, &mut |number, line, status| {
            let Some(&place) = number.checked_sub(1).and_then(|place| open.get(place)) else { return };
            // Some refusals pass, for example if a queue was full. Any other refusal is final.
            let passing = status.is_some_and(line_may_pass) && !last;
            is_behind_open |= passing && order == Order::Kept;
            if !passing && !is_behind_open && !std::mem::replace(&mut done[number - 1], true) {
                answered(place, line);
            }
        });
        let before = open.len();
        open = open.iter().zip(&done).filter(|(_, done)| !**done).map(|(&place, _)| place).collect();
        let wanted = match result {
            Ok(()) => None,
            Err(BulkError::Client(error)) if may_pass(&error) && !last => match error {
                ClientError::Refused { retry_after, .. } | ClientError::Declined { retry_after, .. } => retry_after,
                _ => None,
            },
            Err(BulkError::Truncated { passing: true, .. }) if !last => None,
            Err(error) => return Err(error),
        };
        if open.is_empty() {
            return Ok(());
        }
        if open.len() < before {
            patience.renew();
        }
        patience.wait(wanted);
    }
    Ok(())
}

fn send_once(
    api: &dyn Api,
    path: &str,
    body: &[u8],
    answered: &mut dyn FnMut(usize, &str, Option<u16>),
) -> Result<(), BulkError> {
    let url = || api.name().to_owned();
    let mut reader = BufReader::with_capacity(1 << 16, api.post_lines(path, body)?);
    let mut text = String::new();
    loop {
        text.clear();
        let ended = match reader.read_line(&mut text) {
            Ok(0) => Some(None),
            Ok(_) => None,
            Err(error) => Some(Some(error.to_string())),
        };
        if let Some(reason) = ended {
            return Err(BulkError::Truncated { url: url(), reason, passing: true });
        }
        let line: Line<'_> = serde_json::from_str(&text)
            .map_err(|_| BulkError::Foreign { url: url(), line: text.chars().take(120).collect() })?;
        match (line.kind, line.line) {
            ("summary", _) => return Ok(()),
            ("fatal", _) => {
                let passing = line.error.as_ref().is_none_or(|problem| line_may_pass(problem.status));
                let reason = line.error.map(|problem| problem.detail);
                return Err(BulkError::Truncated { url: url(), reason, passing });
            }
            (_, Some(_)) if line.error.as_ref().is_some_and(|problem| is_full(&problem.code)) => {
                let detail = line.error.map(|problem| problem.detail).unwrap_or_default();
                return Err(BulkError::Full { detail });
            }
            (_, Some(number)) => answered(number, text.trim_end(), line.error.map(|problem| problem.status)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::client::scripted::answering;
    use crate::input::{Origin, Place};

    fn chunk(lines: &[&str]) -> Chunk {
        let origin = Origin { file: "x".into(), place: Place::Line { number: 1, offset: 0 } };
        let mut chunk = Chunk::default();
        chunk.lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        chunk.origins = vec![origin; lines.len()];
        chunk
    }

    fn verdict(line: usize) -> Value {
        json!({"kind": "verdict", "line": line})
    }

    fn error(line: usize, status: u16, code: &str) -> Value {
        json!({"kind": "error", "line": line, "error": {"status": status, "code": code, "detail": code}})
    }

    fn stream(lines: &[Value]) -> String {
        let summary = json!({"kind": "summary"});
        lines.iter().chain([&summary]).map(|line| format!("{line}\n")).collect()
    }

    /// Returns the result, the bodies of the requests, and the places in the chunk in the order of their answers.
    fn sent(order: Order, answers: Vec<String>) -> (Result<(), BulkError>, Vec<String>, Vec<usize>) {
        let (client, server) = answering(answers);
        let mut places = Vec::new();
        let result =
            send(&client, "/bulk", &chunk(&["a", "b", "c"]), order, Patience::usual(), |place, _| places.push(place));
        (result, server.join().unwrap(), places)
    }

    // This test is for a bug: if a chunk had two versions of one document, the older version could be stored last.
    #[test]
    fn lines_behind_one_that_is_sent_again_are_sent_again_if_their_order_counts() {
        let first = stream(&[verdict(1), error(2, 503, "overloaded"), verdict(3)]);
        let (result, bodies, places) = sent(Order::Kept, vec![first.clone(), stream(&[verdict(1), verdict(2)])]);
        assert!(result.is_ok() && bodies == ["a\nb\nc\n", "b\nc\n"] && places == [0, 1, 2], "{bodies:?} {places:?}");
        let (result, bodies, places) = sent(Order::Any, vec![first, stream(&[verdict(1)])]);
        assert!(result.is_ok() && bodies == ["a\nb\nc\n", "b\n"] && places == [0, 2, 1], "{bodies:?} {places:?}");
    }

    #[test]
    fn only_a_full_server_ends_an_import_and_a_full_source_fails_its_lines() {
        let full = [verdict(1), error(2, 507, "source_full"), error(3, 507, "labels_full")];
        let (result, _, places) = sent(Order::Any, vec![stream(&full)]);
        assert!(result.is_ok() && places == [0, 1, 2], "{result:?} {places:?}");
        for code in FULL {
            let (result, _, places) = sent(Order::Any, vec![stream(&[verdict(1), error(2, 507, code), verdict(3)])]);
            assert!(matches!(result, Err(BulkError::Full { detail }) if detail == code));
            assert_eq!(places, [0]);
        }
    }
}
