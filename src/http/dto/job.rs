//! Jobs as JSON: work that goes on after its request was answered.

use serde::Serialize;

use super::values::{self, timestamp};
use crate::http::error::Problem;
use crate::types::{CollectionName, LabelDeletion, Seq};

/// A job: the deletion of the documents with a label.
#[derive(Debug, Serialize)]
pub struct JobBody {
    job: String,
    kind: &'static str,
    #[serde(serialize_with = "values::name")]
    collection: CollectionName,
    label: String,
    state: &'static str,
    accepted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    documents: u64,
    removed: u64,
}

/// The answer of `GET /v1/jobs`.
#[derive(Debug, Serialize)]
pub struct JobList {
    pub jobs: Vec<JobBody>,
}

impl JobBody {
    pub fn new(collection: CollectionName, deletion: LabelDeletion) -> Self {
        let LabelDeletion { number, label, accepted, ended, documents, removed } = deletion;
        Self {
            job: format!("{collection}.{}", number.0),
            kind: "delete_label",
            collection,
            label: label.as_str().to_owned(),
            state: if ended.is_some() { "done" } else { "running" },
            accepted: timestamp(accepted),
            ended: ended.map(timestamp),
            documents,
            removed,
        }
    }

    /// Returns the path at which it is read.
    pub fn path(&self) -> String {
        format!("/v1/jobs/{}", self.job)
    }
}

/// Reads the name of a job: its collection and its number.
pub fn job_name(text: &str) -> Result<(CollectionName, Seq), Problem> {
    let parts = text.split_once('.');
    let parsed = parts.and_then(|(name, number)| Some((CollectionName::new(name).ok()?, number.parse().ok()?)));
    let (name, number) =
        parsed.ok_or_else(|| Problem::invalid("job", "must be the name of a job, such as `default.42`"))?;
    Ok((name, Seq(number)))
}
