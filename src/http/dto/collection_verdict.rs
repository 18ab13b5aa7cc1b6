//! The verdict of one of the collections that a request asks, as JSON.

use serde::Serialize;

use super::explanation::LookupBody;
use super::values::name;
use crate::collections::{Opinion, Said};
use crate::http::error::{Problem, ProblemBody};
use crate::types::{CollectionName, ratio};

/// The verdict of one collection without its matches, or the error if the collection could not be asked.
#[derive(Debug, Serialize)]
pub struct SaidBody {
    #[serde(serialize_with = "name")]
    collection: CollectionName,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<u32>,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup: Option<Box<LookupBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<ProblemBody>>,
}

impl SaidBody {
    pub fn new(said: Said, request_id: impl FnOnce() -> String) -> Self {
        let (collection, opinion) = said.into_parts();
        match opinion {
            Ok(Opinion { kind, threshold, candidates, unread, expected_recall, explanation }) => Self {
                collection,
                verdict: Some(kind.as_str()),
                threshold: Some(threshold),
                candidates: Some(candidates),
                complete: unread == 0,
                unread: Some(unread).filter(|&unread| unread > 0),
                expected_recall: expected_recall.map(ratio),
                lookup: explanation.map(|explanation| Box::new(LookupBody::from(*explanation))),
                error: None,
            },
            Err(error) => Self {
                error: Some(Box::new(Problem::from(error).into_body(&request_id()))),
                ..Self::short(collection, None, false)
            },
        }
    }

    /// Returns the part for a key that sees only verdicts. The key would see the same part if the request asked this
    /// collection alone.
    pub fn verdict_only(self) -> Self {
        Self { error: self.error, ..Self::short(self.collection, self.verdict, self.complete) }
    }

    fn short(collection: CollectionName, verdict: Option<&'static str>, complete: bool) -> Self {
        Self {
            collection,
            verdict,
            threshold: None,
            candidates: None,
            complete,
            unread: None,
            expected_recall: None,
            lookup: None,
            error: None,
        }
    }
}
