//! Jobs as JSON: work that continues after its request was answered.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::values::{self, timestamp};
use crate::collections::ListedJob;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::query::choice;
use crate::types::{CollectionName, Job, LabelDeletion, Merge, OnDuplicate, OnExisting, Seq};

/// A job: a merge or a deletion. Fields that only the other of these two has are absent.
#[derive(Debug, Serialize)]
pub struct JobBody {
    job: String,
    kind: &'static str,
    #[serde(serialize_with = "values::name")]
    collection: CollectionName,
    state: &'static str,
    accepted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    documents: u64,
    done: u64,
    #[serde(flatten)]
    of_kind: OfKind,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OfKind {
    DeleteLabel {
        label: String,
    },
    Merge {
        from: String,
        on_duplicate: &'static str,
        on_existing: &'static str,
        outcomes: BTreeMap<String, u64>,
        verdicts: BTreeMap<String, u64>,
    },
}

/// The answer of `GET /v1/jobs`.
#[derive(Debug, Serialize)]
pub struct JobList {
    pub jobs: Vec<JobBody>,
}

/// A page of a merge's reports.
#[derive(Debug, Serialize)]
pub struct ReportPage {
    reports: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A merge to begin.
#[derive(Debug)]
pub struct MergeInput {
    pub from: CollectionName,
    pub on_duplicate: OnDuplicate,
    pub on_existing: OnExisting,
}

impl JobBody {
    pub fn new(collection: CollectionName, ListedJob { job, waits }: ListedJob) -> Self {
        let (number, accepted) = (job.number(), timestamp(job.accepted()));
        let (kind, state, ended, detail, documents, done, of_kind) = match job {
            Job::DeleteLabel(LabelDeletion { label, ended, documents, removed, .. }) => {
                let of_kind = OfKind::DeleteLabel { label: label.as_str().to_owned() };
                ("delete_label", state(ended.is_some(), false), ended, waits, documents, removed, of_kind)
            }
            Job::Merge(merge) => {
                let done = merge.merged();
                let Merge { source, on_duplicate, on_existing, ended, aborted, outcomes, verdicts, .. } = merge;
                let (on_duplicate, on_existing) = (on_duplicate.as_str(), on_existing.as_str());
                let of_kind =
                    OfKind::Merge { from: source.name.to_string(), on_duplicate, on_existing, outcomes, verdicts };
                let left_out = source.documents.saturating_sub(done);
                let left_out = (ended.is_some() && left_out > 0)
                    .then(|| format!("{left_out} of the documents were deleted or replaced before they were merged"));
                let state = state(ended.is_some(), aborted.is_some());
                ("merge", state, ended, aborted.or(waits).or(left_out), source.documents, done, of_kind)
            }
        };
        let (job, ended) = (format!("{collection}.{}", number.0), ended.map(timestamp));
        Self { job, kind, collection, state, accepted, ended, detail, documents, done, of_kind }
    }

    /// Returns the path of the job.
    pub fn path(&self) -> String {
        format!("/v1/jobs/{}", self.job)
    }
}

fn state(ended: bool, aborted: bool) -> &'static str {
    match (ended, aborted) {
        (_, true) => "aborted",
        (true, false) => "done",
        (false, false) => "running",
    }
}

impl ReportPage {
    /// `more` says whether more reports may follow.
    pub fn new(reports: Vec<(Seq, String)>, more: bool) -> Self {
        let last = reports.last().filter(|_| more).map(|(seq, _)| seq.0.to_string());
        let raw = |(_, report)| RawValue::from_string(report).expect("stored reports are JSON");
        Self { reports: reports.into_iter().map(raw).collect(), next_cursor: last }
    }
}

/// Parses `{"from": …, "on_duplicate": …, "on_existing": …}`.
pub fn merge_input(text: &str) -> Result<MergeInput, Problem> {
    let mut object = Object::parse(text)?;
    let (from, on_duplicate, on_existing) =
        (object.string("from")?, object.string("on_duplicate")?, object.string("on_existing")?);
    object.finish()?;
    let from = from.ok_or_else(|| Problem::invalid("from", "is required"))?;
    let from = CollectionName::new(&from).map_err(|error| Problem::invalid("from", error.to_string()))?;
    let on_duplicate = on_duplicate
        .map(|text| choice("on_duplicate", &text, &OnDuplicate::ALL.map(|one| (one.as_str(), one))))
        .transpose()?;
    let on_existing = on_existing
        .map(|text| choice("on_existing", &text, &OnExisting::ALL.map(|one| (one.as_str(), one))))
        .transpose()?;
    Ok(MergeInput {
        from,
        on_duplicate: on_duplicate.unwrap_or_default(),
        on_existing: on_existing.unwrap_or_default(),
    })
}

/// Reads the name of a job: its collection and its number.
pub fn job_name(text: &str) -> Result<(CollectionName, Seq), Problem> {
    let parts = text.split_once('.');
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    let parsed = parts.and_then(|(name, text)| Some((CollectionName::new(name).ok()?, number(text)?)));
    let (name, number) =
        parsed.ok_or_else(|| Problem::invalid("job", "must be the name of a job, such as `default.42`"))?;
    Ok((name, Seq(number)))
}
