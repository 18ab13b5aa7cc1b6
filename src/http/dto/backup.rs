//! Backups as JSON: the request and the status.

use serde::Serialize;

use super::values::timestamp;
use crate::collections::{BackupEntry, BackupName, BackupState, BackupStatus};
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::types::ratio;

/// An upper bound on the number of backups of a series to keep.
const KEEP_MAX: u32 = 1000;

/// Parses the body of `POST`. Returns the backup's name (the current time by default), and how many backups of its
/// series to keep.
pub fn name_and_keep(text: &str) -> Result<(BackupName, Option<u32>), Problem> {
    let mut object = Object::parse(text)?;
    let name = object.string("name")?;
    let keep: Option<u32> = object.take("keep", "an integer from 0 to 1000")?;
    object.finish()?;
    let name = match (name, keep) {
        (_, Some(keep)) if keep > KEEP_MAX => {
            return Err(Problem::invalid("keep", format!("must be between 0 and {KEEP_MAX}; it is {keep}")));
        }
        (Some(name), Some(_)) => BackupName::of_series(&name)?,
        (Some(name), None) => BackupName::new(&name)?,
        (None, Some(_)) => {
            return Err(Problem::invalid("name", "is required with `keep`, because it names the series"));
        }
        (None, None) => BackupName::of_now(),
    };
    Ok((name, keep))
}

/// The answer of `GET`.
#[derive(Debug, Serialize)]
pub struct BackupsBody {
    /// Absent before the first backup of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<BackupStatusBody>,
}

/// The answer of `DELETE`.
#[derive(Debug, Serialize)]
pub struct Cancelled {
    /// How many backups were cancelled: 0 or 1.
    pub cancelled: u64,
}

#[derive(Debug, Serialize)]
pub struct BackupStatusBody {
    name: String,
    path: String,
    state: &'static str,
    progress: f64,
    started: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collections: Option<Vec<EntryBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Serialize)]
struct EntryBody {
    name: String,
    documents: u64,
    last_seq: u64,
    bytes: u64,
}

impl From<&BackupEntry> for EntryBody {
    fn from(entry: &BackupEntry) -> Self {
        let &BackupEntry { ref name, documents, last_seq, bytes } = entry;
        Self { name: name.clone(), documents, last_seq, bytes }
    }
}

impl From<BackupStatus> for BackupStatusBody {
    fn from(status: BackupStatus) -> Self {
        let (mut entries, mut gone) = (None, None);
        let (state, made, detail) = match status.state {
            BackupState::Running => ("running", None, None),
            BackupState::Done { contents, removed } => {
                entries = Some(contents.collections.iter().map(EntryBody::from).collect());
                gone = Some(removed).filter(|removed| !removed.is_empty());
                ("done", Some(contents.made.clone()), None)
            }
            BackupState::Cancelled => ("cancelled", None, None),
            BackupState::Failed(detail) => ("failed", None, Some(detail)),
        };
        Self {
            name: status.name,
            path: status.path.display().to_string(),
            state,
            progress: ratio(status.progress),
            started: timestamp(status.started),
            made,
            collections: entries,
            removed: gone,
            detail,
        }
    }
}
