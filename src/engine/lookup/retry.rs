//! What a lookup does if the documents it needs change while it reads them: it tries again, up to a bound.

use std::time::Duration;

use crate::verdicts::CollectionError;

/// How often a look may find that it needs something of a document that it has not read yet.
pub(crate) const ATTEMPTS: u32 = 16;

/// Nothing came of [`ATTEMPTS`].
pub(crate) fn changing() -> CollectionError {
    CollectionError::Overloaded {
        detail: "the documents this one resembles change faster than they can be read".into(),
        retry_after: Duration::from_secs(1),
    }
}

/// For a look that met a document that is gone on disk, though not yet for readers: that is a matter of microseconds,
/// unless the committer has to wait for a processor.
pub(crate) fn wait_for_commit(attempt: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
}
