//! Repeats a lookup, a limited number of times, if the documents it needs change while it reads them.

use std::time::Duration;

use crate::types::retry_after;
use crate::verdicts::CollectionError;

/// The number of times that a lookup may find out that it needs data it has not read yet.
pub(crate) const ATTEMPTS: u32 = 16;

/// The error after all [`ATTEMPTS`] have failed.
pub(crate) fn changing() -> CollectionError {
    CollectionError::Overloaded {
        detail: "the documents needed for this answer keep changing while they are read; try again".into(),
        retry_after: retry_after::SOON,
    }
}

/// Waits before the next attempt of a lookup that met a document that is deleted on disk but still visible to it. That
/// state lasts for microseconds, unless the committer has to wait for a processor.
pub(crate) fn wait_for_commit(attempt: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
}
