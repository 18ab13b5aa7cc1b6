//! A job in the form in which it is listed.

use crate::types::Job;

/// A job, and the reason why it waits, if it waits at present.
#[derive(Clone, Debug)]
pub struct ListedJob {
    pub job: Job,
    pub waits: Option<String>,
}
