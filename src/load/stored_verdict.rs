//! The verdict of an insertion <-> its JSON in a file, which names matches by their ids. The JSON does not say how many
//! slots match: this number is computed again from the signatures.

use serde::{Deserialize, Serialize};

use crate::store::{StoredMatch, StoredVerdict};
use crate::types::{DocId, Overlap, VerdictKind};
use crate::verdicts::check_threshold;

/// The most matches of a verdict: as many as an insertion may request.
const MATCHES_MAX: usize = 1000;
/// More shingles than any document has.
const SHINGLES_MAX: u64 = 1 << 48;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    duplicate_of: Option<String>,
    threshold: f64,
    #[serde(default)]
    candidates: u32,
    #[serde(default)]
    unread: u64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    matches: Vec<JsonMatch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonMatch {
    id: String,
    /// Three numbers of distinct shingles: those in both documents, in the inserted document, and in the match.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    shingles: Option<[u64; 3]>,
}

/// A match in a file: its id, and the numbers of shingles, if the shingles were compared.
pub(super) type NamedMatch = (DocId, Option<Overlap>);

/// Writes a verdict. Matches whose documents no longer exist have no id, and are left out.
pub(super) fn to_json(verdict: &StoredVerdict, ids: &[Option<DocId>]) -> String {
    let matches = verdict.matches.iter().zip(ids).filter_map(|(found, id)| {
        let shingles = found.overlap.map(|Overlap { both, query, found }| [both, query, found]);
        Some(JsonMatch { id: id.as_ref()?.as_str().to_owned(), shingles })
    });
    serde_json::to_string(&Json {
        verdict: verdict.kind.as_str().to_owned(),
        duplicate_of: verdict.duplicate_of.as_ref().map(|id| id.as_str().to_owned()),
        threshold: verdict.threshold,
        candidates: verdict.candidates,
        unread: verdict.unread,
        matches: matches.collect(),
    })
    .expect("numbers and strings always serialise")
}

/// Reads a verdict. `judged` looks up a match by its id and compares it.
pub(super) fn from_json(
    text: &str,
    mut judged: impl FnMut(NamedMatch) -> Result<StoredMatch, String>,
) -> Result<StoredVerdict, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let kind = VerdictKind::ALL.into_iter().find(|kind| kind.as_str() == json.verdict);
    let kind = kind.ok_or_else(|| format!("there is no verdict `{}`", json.verdict))?;
    if kind == VerdictKind::Empty {
        return Err("a stored document is never `empty`".to_owned());
    }
    check_threshold(json.threshold).map_err(|error| format!("`threshold` {error}"))?;
    let id = |text: String| DocId::new(text).map_err(|error| error.to_string());
    let duplicate_of = json.duplicate_of.map(id).transpose()?;
    if kind.is_duplicate() != duplicate_of.is_some() {
        return Err("a duplicate has `duplicate_of`, and no other verdict has it".to_owned());
    }
    if json.matches.len() > MATCHES_MAX {
        return Err(format!("it has more than {MATCHES_MAX} matches"));
    }
    let mut matches = Vec::with_capacity(json.matches.len());
    for JsonMatch { id: named, shingles } in json.matches {
        let overlap = shingles.map(|[both, query, found]| Overlap { both, query, found });
        if overlap.is_some_and(|overlap| !is_possible(overlap)) {
            return Err("the numbers of shingles of a match contradict each other".to_owned());
        }
        matches.push(judged((id(named)?, overlap))?);
    }
    Ok(StoredVerdict {
        kind,
        duplicate_of,
        threshold: json.threshold,
        candidates: json.candidates,
        unread: json.unread,
        matches,
    })
}

fn is_possible(Overlap { both, query, found }: Overlap) -> bool {
    (1..=SHINGLES_MAX).contains(&query) && (1..=SHINGLES_MAX).contains(&found) && both <= query.min(found)
}

/// Returns the verdict for a row that has none in its file.
pub(super) fn of_unknown(threshold: f64, representative: Option<(DocId, StoredMatch)>) -> StoredVerdict {
    let (kind, candidates) = match &representative {
        None => (VerdictKind::Unique, 0),
        Some((_, StoredMatch { exact: true, .. })) => (VerdictKind::ExactDuplicate, 1),
        Some(_) => (VerdictKind::NearDuplicate, 1),
    };
    let (duplicate_of, matches) = representative.map_or((None, Vec::new()), |(id, found)| (Some(id), vec![found]));
    StoredVerdict { kind, duplicate_of, threshold, candidates, unread: 0, matches }
}
