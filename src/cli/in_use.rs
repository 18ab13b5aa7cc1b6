//! Adds advice to the error that another process uses the data directory. The advice depends on the command, so the
//! store cannot add it.

use std::error::Error;

use anyhow::anyhow;

use crate::collections::CollectionError;
use crate::collections::offline::OfflineError;

/// The advice for commands that can also ask a server.
pub(super) const ASK_THE_SERVER: &str = "stop it, or leave out --data-dir to ask the running server instead";

/// Adds the advice to an error which says that another process uses the data directory. Returns any other error
/// unchanged.
pub(super) fn advise(error: impl Into<anyhow::Error>, advice: &str) -> anyhow::Error {
    let error = error.into();
    if error.chain().any(is_in_use) { anyhow!("{error:#}; {advice}") } else { error }
}

fn is_in_use(cause: &(dyn Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(CollectionError::DataDirInUse { .. }))
        || cause.downcast_ref().is_some_and(OfflineError::is_in_use)
}
