//! A line of the log. The same types are used for writing and for reading, so the formats cannot differ.
//!
//! Fields that do not apply are absent. A reader ignores fields that it does not know.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub(super) const CHECK: &str = "check";
pub(super) const INSERT: &str = "insert";
pub(super) const DELETE: &str = "delete";
pub(super) const MERGE: &str = "merge";
/// The operations that lines have.
pub const OPS: [&str; 4] = [CHECK, INSERT, DELETE, MERGE];

/// A decision as a line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditLine<'a> {
    /// The time of the decision, in RFC 3339 with milliseconds.
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    /// The name of the API key; null if the server requires none.
    pub key: Option<Cow<'a, str>>,
    /// One of [`OPS`].
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    #[serde(borrow)]
    pub collection: Cow<'a, str>,
    /// The id in the request. A check may have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The hash of the canonical text or of the set, in hexadecimal; absent for a signature without `content_hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// The fingerprint of the collection's spec.
    #[serde(borrow)]
    pub spec: Cow<'a, str>,
    pub bands: u32,
    pub rows: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<bool>,
    /// Whether the search was complete, so that no limit can have hidden a match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<Cow<'a, str>>,
    /// The similarity of the best match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub representative: Option<Cow<'a, str>>,
    /// The evidence: the matches of the answer, best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<Vec<AuditMatch<'a>>>,
    /// The number of matches that are not in the line, because the line or the answer would have been too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Whether a deleted id was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
    /// The label, for a deletion by label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'a, str>>,
    /// For a deletion by label, how many documents it deletes. For a merge, how many documents the other collection
    /// has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<u64>,
    /// The other collection and the options, for a merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_duplicate: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_existing: Option<Cow<'a, str>>,
}

/// A match, as in the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditMatch<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    pub similarity: f64,
    pub low: f64,
    pub high: f64,
    /// `estimate` or `exact`.
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    /// The time at which the match's content was first stored under its id. It distinguishes this content from later
    /// contents of the same id.
    #[serde(borrow)]
    pub first_seen: Cow<'a, str>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
