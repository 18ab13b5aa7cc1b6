//! Converts the verdict of an insertion to and from the JSON in its record. Any SQLite shell can read that JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::store::record::{StoredMatch, StoredVerdict};
use crate::types::{DocId, Overlap, Seq, VerdictKind};

#[derive(Serialize, Deserialize)]
struct Json<'a> {
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<Cow<'a, str>>,
    threshold: f64,
    candidates: u32,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    matches: Vec<JsonMatch>,
}

#[derive(Serialize, Deserialize)]
struct JsonMatch {
    seq: u64,
    /// The number of equal slots.
    matching: u32,
    exact: bool,
    /// Three numbers of distinct shingles: those in both documents, in the judged document, and in the match. Absent if
    /// only signatures were compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    shingles: Option<[u64; 3]>,
}

impl From<&StoredMatch> for JsonMatch {
    fn from(found: &StoredMatch) -> Self {
        let shingles = found.overlap.map(|Overlap { both, query, found }| [both, query, found]);
        Self { seq: found.seq.0, matching: found.matching, exact: found.exact, shingles }
    }
}

impl From<JsonMatch> for StoredMatch {
    fn from(json: JsonMatch) -> Self {
        let overlap = json.shingles.map(|[both, query, found]| Overlap { both, query, found });
        Self { seq: Seq(json.seq), matching: json.matching, exact: json.exact, overlap }
    }
}

pub(in crate::store) fn to_json(verdict: &StoredVerdict) -> String {
    let matches = verdict.matches.iter();
    serde_json::to_string(&Json {
        verdict: verdict.kind.as_str(),
        duplicate_of: verdict.duplicate_of.as_ref().map(|id| id.as_str().into()),
        threshold: verdict.threshold,
        candidates: verdict.candidates,
        complete: verdict.unread == 0,
        unread: Some(verdict.unread).filter(|&unread| unread > 0),
        matches: matches.map(JsonMatch::from).collect(),
    })
    .expect("numbers and strings always serialise")
}

pub(in crate::store) fn from_json(text: &[u8]) -> Option<StoredVerdict> {
    let json: Json<'_> = serde_json::from_slice(text).ok()?;
    let matches = json.matches.into_iter();
    Some(StoredVerdict {
        kind: VerdictKind::ALL.into_iter().find(|kind| kind.as_str() == json.verdict)?,
        duplicate_of: json.duplicate_of.map(|id| DocId::new(id.into_owned())).transpose().ok()?,
        threshold: json.threshold,
        candidates: json.candidates,
        // Older verdicts do not contain this number. They only say whether something was not read.
        unread: json.unread.unwrap_or(u64::from(!json.complete)),
        matches: matches.map(StoredMatch::from).collect(),
    })
}
