//! What operations have in common: what a client asks of an answer, what this kind of store refuses, and operations that
//! go on although the client leaves.

use super::record::Judged;
use crate::verdicts::{Cited, CollectionError, Result};

/// Runs an operation in a task of its own, so that it ends although the client leaves.
pub(super) async fn to_its_end<T: Send + 'static>(
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(operation).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CollectionError::closed()),
        },
    }
}

/// What a client asks of an answer.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub limit: usize,
    pub with_metadata: bool,
    /// Whether the request has metadata, if only `{}`.
    pub sends_metadata: bool,
    pub threshold: f64,
}

impl Asked {
    pub(super) fn cited(self, found: &Judged, matching: u32, same_content: bool) -> Cited {
        Cited {
            id: found.stored.id.clone(),
            first_seen: found.stored.first_seen,
            matching,
            same_content,
            overlap: None,
            metadata: found.stored.metadata.clone().filter(|_| self.with_metadata),
            metadata_omitted: false,
        }
    }
}

/// Refuses what this kind of store cannot do.
pub(super) fn refuse(is_asked: bool, what: &'static str) -> Result<()> {
    if is_asked { Err(CollectionError::NotInThisStore { what }) } else { Ok(()) }
}
