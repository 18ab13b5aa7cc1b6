//! Converts a job to and from the JSON in its row, and the report of a merge to the JSON in its row. Any SQLite shell
//! can read both. Clients get a report as it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::types::{
    CollectionName, DocId, Job, Label, LabelDeletion, Merge, MergeReport, MergeSource, Merged, OnDuplicate, OnExisting,
    Seq, TimestampMs, ratio,
};

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Json {
    DeleteLabel {
        label: String,
        accepted_ms: i64,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        ended_ms: Option<i64>,
        documents: u64,
        removed: u64,
    },
    Merge(Box<MergeJson>),
}

#[derive(Serialize, Deserialize)]
struct MergeJson {
    from: String,
    from_created_ms: i64,
    through: u64,
    after: u64,
    on_duplicate: String,
    on_existing: String,
    accepted_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ended_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    aborted: Option<String>,
    documents: u64,
    outcomes: BTreeMap<String, u64>,
    verdicts: BTreeMap<String, u64>,
}

pub(super) fn to_json(job: &Job) -> String {
    let json = match job {
        Job::DeleteLabel(LabelDeletion { label, accepted, ended, documents, removed, .. }) => Json::DeleteLabel {
            label: label.as_str().to_owned(),
            accepted_ms: accepted.0,
            ended_ms: ended.map(|ended| ended.0),
            documents: *documents,
            removed: *removed,
        },
        Job::Merge(merge) => Json::Merge(Box::new(MergeJson {
            from: merge.source.name.to_string(),
            from_created_ms: merge.source.created.0,
            through: merge.source.through.0,
            after: merge.after.0,
            on_duplicate: merge.on_duplicate.as_str().to_owned(),
            on_existing: merge.on_existing.as_str().to_owned(),
            accepted_ms: merge.accepted.0,
            ended_ms: merge.ended.map(|ended| ended.0),
            aborted: merge.aborted.clone(),
            documents: merge.source.documents,
            outcomes: merge.outcomes.clone(),
            verdicts: merge.verdicts.clone(),
        })),
    };
    serde_json::to_string(&json).expect("numbers and strings always serialise")
}

/// Returns `None` if the text is not the JSON of a job.
pub(super) fn from_json(number: Seq, text: &str) -> Option<Job> {
    match serde_json::from_str(text).ok()? {
        Json::DeleteLabel { label, accepted_ms, ended_ms, documents, removed } => {
            Some(Job::DeleteLabel(LabelDeletion {
                number,
                label: Label::parse(&label).ok()?,
                accepted: TimestampMs(accepted_ms),
                ended: ended_ms.map(TimestampMs),
                documents,
                removed: Some(removed).filter(|&removed| removed <= documents)?,
            }))
        }
        Json::Merge(json) => Some(Job::Merge(Merge {
            number,
            source: MergeSource {
                name: CollectionName::new(&json.from).ok()?,
                created: TimestampMs(json.from_created_ms),
                through: Seq(json.through),
                documents: json.documents,
            },
            after: Seq(json.after),
            on_duplicate: OnDuplicate::ALL.into_iter().find(|known| known.as_str() == json.on_duplicate)?,
            on_existing: OnExisting::ALL.into_iter().find(|known| known.as_str() == json.on_existing)?,
            accepted: TimestampMs(json.accepted_ms),
            ended: json.ended_ms.map(TimestampMs),
            aborted: json.aborted,
            outcomes: json.outcomes,
            verdicts: json.verdicts,
        })),
    }
}

#[derive(Serialize)]
struct ReportJson<'a> {
    seq: u64,
    id: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    representative: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

pub(super) fn report_json(merged: &Merged) -> String {
    let MergeReport { id, outcome, verdict, duplicate_of, similarity, representative, error } = &merged.report;
    let json = ReportJson {
        seq: merged.source.0,
        id: id.as_str(),
        outcome,
        verdict: *verdict,
        duplicate_of: duplicate_of.as_ref().map(DocId::as_str),
        similarity: similarity.map(ratio),
        representative: representative.as_ref().map(DocId::as_str),
        error: error.as_deref(),
    };
    serde_json::to_string(&json).expect("numbers and strings always serialise")
}
