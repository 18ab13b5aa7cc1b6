//! A match in a line of the audit log -> its state on a running server: the present similarity of both documents, or
//! which document is no longer stored. Knows nothing of how lines are read or printed.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Client, ClientError, encode};
use super::retry::{may_pass, patiently};
use crate::audit::{AuditLine, AuditMatch};

/// The most documents whose state is cached. The cache helps because many lines name the same matches.
const KNOWN_MAX: usize = 100_000;
/// Similarities that differ by less than this are the same, because both are rounded to six decimals.
const SAME_WITHIN: f64 = 1.5e-6;

/// The present state of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Same,
    Changed,
    MatchDeleted,
    MatchReplaced,
    DocumentDeleted,
    DocumentReplaced,
    DocumentNotStored,
    CollectionGone,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::MatchDeleted => "match_deleted",
            Self::MatchReplaced => "match_replaced",
            Self::DocumentDeleted => "document_deleted",
            Self::DocumentReplaced => "document_replaced",
            Self::DocumentNotStored => "document_not_stored",
            Self::CollectionGone => "collection_gone",
        }
    }

    /// The meaning of this state, in a sentence.
    fn detail(self) -> &'static str {
        match self {
            Self::Same => "both documents are unchanged",
            Self::Changed => "both documents are unchanged, but their similarity is different",
            Self::MatchDeleted => "not comparable: the match is no longer stored",
            Self::MatchReplaced => "not comparable: the id of the match was stored again later",
            Self::DocumentDeleted => "not comparable: the document is no longer stored",
            Self::DocumentReplaced => "not comparable: the id of the document was stored again later",
            Self::DocumentNotStored => {
                "not comparable: the decision did not store the document; its match is unchanged"
            }
            Self::CollectionGone => "not comparable: the collection no longer exists",
        }
    }
}

/// One match of a decision, as it was logged and as it is now.
pub(super) struct Compared<'a> {
    line: &'a AuditLine<'a>,
    found: &'a AuditMatch<'a>,
    now: Option<f64>,
    state: State,
}

impl<'a> Compared<'a> {
    pub(super) fn line(&self) -> &'a AuditLine<'a> {
        self.line
    }

    pub(super) fn found(&self) -> &'a AuditMatch<'a> {
        self.found
    }

    /// The similarity of both documents now.
    pub(super) fn now(&self) -> Option<f64> {
        self.now
    }

    pub(super) fn state(&self) -> State {
        self.state
    }
}

impl Serialize for Compared<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A comparison as JSON.
        #[derive(Serialize)]
        struct ComparedLine<'a> {
            time: &'a str,
            request_id: &'a str,
            collection: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(rename = "match")]
            found: &'a str,
            similarity: f64,
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            now: Option<f64>,
            state: State,
            detail: &'a str,
        }
        let Self { line, found, now, state } = self;
        ComparedLine {
            time: &line.time,
            request_id: &line.request_id,
            collection: &line.collection,
            id: line.id.as_deref(),
            found: &found.id,
            similarity: found.similarity,
            method: &found.method,
            now: *now,
            state: *state,
            detail: state.detail(),
        }
        .serialize(serializer)
    }
}

/// The facts about a stored document that a comparison needs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    /// The time at which its content was first stored under its id.
    Since(String),
    Deleted,
    CollectionGone,
}

/// Asks a server about the evidence.
pub(super) struct Comparer {
    client: Client,
    known: HashMap<(String, String), Stored>,
    differs: bool,
}

#[derive(Deserialize)]
struct DocumentAnswer {
    first_seen: String,
}

#[derive(Deserialize)]
struct ProblemAnswer {
    code: String,
    #[serde(default)]
    detail: String,
}

#[derive(Deserialize)]
struct ComparisonAnswer {
    estimate: Estimate,
    exact: Option<Exact>,
}

#[derive(Deserialize)]
struct Estimate {
    similarity: f64,
}

#[derive(Deserialize)]
struct Exact {
    jaccard: f64,
}

impl Comparer {
    /// Fails if no server listens.
    pub(super) fn new(client: Client) -> Result<Self> {
        client.reach()?;
        Ok(Self { client, known: HashMap::new(), differs: false })
    }

    /// Whether some evidence is gone or has changed.
    pub(super) fn found_differences(&self) -> bool {
        self.differs
    }

    pub(super) fn compare<'a>(&mut self, line: &'a AuditLine<'a>, found: &'a AuditMatch<'a>) -> Result<Compared<'a>> {
        let (state, now) = self.judge(line, found)?;
        // A check stores no document, and a skipped duplicate is not stored either. So it is not a difference if such a
        // document is missing.
        self.differs |= !matches!(state, State::Same | State::DocumentNotStored);
        Ok(Compared { line, found, now, state })
    }

    fn judge(&mut self, line: &AuditLine<'_>, found: &AuditMatch<'_>) -> Result<(State, Option<f64>)> {
        match self.stored(&line.collection, &found.id)? {
            Stored::CollectionGone => return Ok((State::CollectionGone, None)),
            Stored::Deleted => return Ok((State::MatchDeleted, None)),
            Stored::Since(first_seen) if first_seen != found.first_seen => return Ok((State::MatchReplaced, None)),
            Stored::Since(_) => {}
        }
        let (Some(id), Some(true)) = (&line.id, line.stored) else { return Ok((State::DocumentNotStored, None)) };
        match self.stored(&line.collection, id)? {
            Stored::CollectionGone => return Ok((State::CollectionGone, None)),
            Stored::Deleted => return Ok((State::DocumentDeleted, None)),
            // A line is written only after its document is stored. So if the stored document is newer than the line, it
            // has replaced the document of the line.
            Stored::Since(first_seen) if is_later(&first_seen, &line.time) => {
                return Ok((State::DocumentReplaced, None));
            }
            Stored::Since(_) => {}
        }
        let Some(now) = self.similarity(line, id, found)? else {
            // One of the two documents was deleted after the last lookup, so both are looked up again.
            for id in [id, &found.id] {
                self.known.remove(&(line.collection.clone().into_owned(), id.clone().into_owned()));
            }
            return self.judge(line, found);
        };
        let same = (now - found.similarity).abs() <= SAME_WITHIN;
        Ok((if same { State::Same } else { State::Changed }, Some(now)))
    }

    /// Returns the similarity of both documents now. The method is that of the line, if the server can still use this
    /// method. `None`: one of the documents is no longer stored.
    fn similarity(&self, line: &AuditLine<'_>, id: &str, found: &AuditMatch<'_>) -> Result<Option<f64>> {
        let path = format!("/v1/collections/{}/compare", encode(&line.collection));
        let body = json!({ "a": { "id": id }, "b": { "id": found.id } }).to_string();
        let answer = match patiently(|| self.client.post_json(&path, &body)) {
            Err(ClientError::Refused { status: 404, .. }) => return Ok(None),
            answer => answer?,
        };
        let answer: ComparisonAnswer = serde_json::from_str(&answer).context("cannot read the server's answer")?;
        let exact = answer.exact.filter(|_| found.method == "exact");
        Ok(Some(exact.map_or(answer.estimate.similarity, |exact| exact.jaccard)))
    }

    fn stored(&mut self, collection: &str, id: &str) -> Result<Stored> {
        let place = (collection.to_owned(), id.to_owned());
        if let Some(known) = self.known.get(&place) {
            return Ok(known.clone());
        }
        let path = format!("/v1/collections/{}/documents?id={}", encode(collection), encode(id));
        let (status, text) = patiently(|| busy(self.client.get(&path)?))?;
        let stored = if status == 200 {
            let document: DocumentAnswer = serde_json::from_str(&text).context("cannot read the server's answer")?;
            Stored::Since(document.first_seen)
        } else {
            let problem: ProblemAnswer = serde_json::from_str(&text).context("cannot read the server's answer")?;
            match problem.code.as_str() {
                "document_not_found" => Stored::Deleted,
                "collection_not_found" => Stored::CollectionGone,
                _ => return Err(ClientError::Refused { status, detail: problem.detail, retry_after: None }.into()),
            }
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(place, stored.clone());
        Ok(stored)
    }
}

/// Returns an error if the server is too busy to answer.
fn busy((status, text): (u16, String)) -> Result<(u16, String), ClientError> {
    let refused = ClientError::Refused { status, detail: "it is busy".into(), retry_after: None };
    if may_pass(&refused) { Err(refused) } else { Ok((status, text)) }
}

/// Whether a time is after another one. False if a time cannot be read.
fn is_later(time: &str, than: &str) -> bool {
    use crate::audit::moment;
    moment(time).zip(moment(than)).is_some_and(|(time, than)| time > than)
}
