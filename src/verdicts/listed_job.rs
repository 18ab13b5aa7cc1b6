//! A job in the form in which it is listed.

use crate::types::Job;

/// A job, and the reason if it does not go on at present.
#[derive(Clone, Debug)]
pub struct ListedJob {
    pub job: Job,
    pub waits: Option<String>,
}
