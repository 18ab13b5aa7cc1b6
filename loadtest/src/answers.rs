//! The parts of answers that scenarios use.

use std::borrow::Cow;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Verdict<'a> {
    #[serde(borrow)]
    pub(crate) verdict: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(crate) outcome: Cow<'a, str>,
    #[serde(default)]
    pub(crate) stored: bool,
    #[serde(default, borrow)]
    matches: Vec<Match<'a>>,
    #[serde(default = "whole")]
    pub(crate) complete: bool,
}

#[derive(Debug, Deserialize)]
struct Match<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

fn whole() -> bool {
    true
}

impl<'a> Verdict<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether the matches name imported document `n`.
    pub(crate) fn names(&self, n: u64) -> bool {
        self.matches.iter().any(|found| found.id.strip_prefix("doc-").and_then(|id| id.parse().ok()) == Some(n))
    }
}
