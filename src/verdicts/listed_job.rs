//! A job as it is listed.

use crate::types::Job;

/// A job, and why it does not go on at present.
#[derive(Clone, Debug)]
pub struct ListedJob {
    pub job: Job,
    pub waits: Option<String>,
}
