//! The reasons why the audit log cannot begin.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Another process writes to the directory.
    #[error("the audit directory {} is in use by another process; give each server a directory of its own", dir.display())]
    Held { dir: PathBuf },
    /// The directory cannot be created, locked or listed.
    #[error("cannot use the audit directory {}: {cause}", dir.display())]
    Dir { dir: PathBuf, cause: io::Error },
    #[error("cannot start the thread of the audit log: {0}")]
    Thread(io::Error),
}
