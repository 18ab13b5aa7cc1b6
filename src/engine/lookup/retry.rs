//! Repeats a lookup, a limited number of times, if the documents it needs change while it reads them.

use std::time::Duration;

use crate::types::retry_after;
use crate::verdicts::CollectionError;

/// The maximum number of attempts of a lookup. An attempt ends early if it needs data that has not been read yet.
pub(crate) const ATTEMPTS: u32 = 16;

/// The error after all [`ATTEMPTS`] have failed.
pub(crate) fn changing() -> CollectionError {
    CollectionError::Overloaded {
        detail: "the documents needed for this answer keep changing while they are read; try again".into(),
        retry_after: retry_after::SOON,
    }
}

/// Waits before the next attempt of a lookup. The last attempt found a document that is deleted on disk, but that the
/// lookup still sees. That state lasts for microseconds, unless the committer has to wait for a processor.
pub(crate) fn wait_for_commit(attempt: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
}
