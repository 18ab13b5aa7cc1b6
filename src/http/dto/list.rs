//! A list of documents to deduplicate as JSON, and the documents of it that are kept.

use bytes::Bytes;
use hapax_core::Spec;
use serde::Serialize;

use super::collection;
use super::document::too_many;
use crate::corpus::Duplicate;
use crate::http::error::{Problem, ProblemBody};
use crate::http::json::{self, Object};
use crate::types::{DocId, IndexKind, VerdictKind, ratio};
use crate::verdicts::Settings;

/// The parsed request.
pub struct ListInput {
    pub settings: Settings,
    pub keep: ListOrder,
    /// The JSON of each document.
    pub documents: Vec<Bytes>,
}

/// Which of several duplicates is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    First,
    Longest,
}

impl ListInput {
    /// Absent settings are those of `defaults`, without their key: a list is deduplicated by itself, so a key changes
    /// nothing. `secret`: the fingerprint of the secret. `documents_max`: the largest number of documents.
    pub fn parse(
        text: &Bytes,
        (defaults, secret): (&Settings, Option<u64>),
        documents_max: usize,
    ) -> Result<Self, Problem> {
        let mut object = Object::parse(std::str::from_utf8(text).expect("it came from a String"))?;
        let keep = object.string("keep")?;
        let asked = object.raw("settings").map_or("{}", |raw| raw.get());
        let raw = object.raw("documents").ok_or_else(|| Problem::invalid("documents", "is required"))?;
        object.finish()?;
        let keep = match keep.as_deref() {
            None | Some("first") => ListOrder::First,
            Some("longest") => ListOrder::Longest,
            Some(other) => return Err(Problem::invalid("keep", format!("must be first or longest; it is `{other}`"))),
        };
        let settings = collection::settings(r#"{"key":"none"}"#, defaults, None)
            .and_then(|defaults| collection::settings(asked, &defaults, secret))
            .and_then(of_a_list)
            .map_err(|problem| match problem.errors.is_empty() {
                true => Problem::invalid("settings", "must be an object"),
                false => problem.within("settings"),
            })?;
        let documents = json::array("documents", raw)?;
        if documents.len() > documents_max {
            return Err(too_many("documents", documents.len(), documents_max));
        }
        let documents = documents.into_iter().map(|raw| text.slice_ref(raw.get().as_bytes())).collect();
        Ok(Self { settings, keep, documents })
    }
}

/// Refuses settings that a list cannot have.
fn of_a_list(settings: Settings) -> Result<Settings, Problem> {
    if settings.index() == IndexKind::Containment {
        return Err(Problem::invalid("index", "must be `similarity`: the documents of a list are compared as wholes"));
    }
    match &settings.spec {
        Spec::Text(spec) if spec.key.is_some() => {
            Err(Problem::invalid("key", "must be none: the documents of a list are compared with each other only"))
        }
        _ => Ok(settings),
    }
}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub struct ListBody {
    pub summary: ListSummary,
    /// The documents that are kept, in the order of the list.
    pub kept: Vec<KeptBody>,
    /// The documents without a token. They are not kept.
    pub empty: Vec<ListedBody>,
    /// The documents that cannot be used.
    pub failed: Vec<FailedBody>,
}

#[derive(Debug, Default, Serialize)]
pub struct ListSummary {
    pub documents: usize,
    pub kept: usize,
    pub near: usize,
    pub exact: usize,
    pub empty: usize,
    pub failed: usize,
}

/// A document of the list.
#[derive(Debug, Serialize)]
pub struct ListedBody {
    /// The place in the list: 0 for the first document.
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct KeptBody {
    #[serde(flatten)]
    pub own: ListedBody,
    /// False if it was not compared with all others because of a limit.
    pub complete: bool,
    /// The documents that repeat it, in the order of the list.
    pub duplicates: Vec<RepeatBody>,
}

/// A document that is not kept.
#[derive(Debug, Serialize)]
pub struct RepeatBody {
    #[serde(flatten)]
    pub own: ListedBody,
    pub verdict: &'static str,
    pub similarity: f64,
    pub low: f64,
    pub high: f64,
    pub method: &'static str,
}

#[derive(Debug, Serialize)]
pub struct FailedBody {
    #[serde(flatten)]
    pub own: ListedBody,
    pub error: ProblemBody,
}

impl ListedBody {
    pub fn new(index: usize, id: Option<&DocId>) -> Self {
        Self { index, id: id.map(|id| id.as_str().to_owned()) }
    }
}

impl RepeatBody {
    pub fn new(own: ListedBody, duplicate: &Duplicate) -> Self {
        let similarity = duplicate.similarity;
        Self {
            own,
            verdict: VerdictKind::of_match(duplicate.same_content).as_str(),
            similarity: ratio(similarity.value),
            low: ratio(similarity.low),
            high: ratio(similarity.high),
            method: similarity.method.as_str(),
        }
    }
}

impl ListBody {
    /// An upper bound on the size of a usual answer as JSON, in bytes, for a list of `documents` documents in `bytes` bytes.
    /// Ids are repeated as the client sent them. Only lists with very many faulty documents can have a longer one.
    pub fn bytes_max(documents: usize, bytes: usize) -> usize {
        const SUMMARY: usize = 256;
        const EACH: usize = 1024;
        SUMMARY + bytes + documents * EACH
    }
}
