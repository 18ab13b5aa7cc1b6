//! The faults of a file of signatures, with their places, and the other reasons why a load fails.

use crate::store::StoreError;
use crate::types::retry_after;
use crate::verdicts::{CollectionError, WriteFailure};

/// The reason why a load failed. Nothing of a failed load is kept.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not Parquet, is cut, or is damaged.
    #[error("{file}: {detail}")]
    File { file: String, detail: String },
    /// A column is missing or has another type.
    #[error("{file}, column `{column}`: {detail}")]
    Column { file: String, column: &'static str, detail: String },
    #[error("{file}, row {row}, column `{column}`: {detail}")]
    Row {
        file: String,
        /// Rows count from 0, as in the libraries that read Parquet.
        row: u64,
        column: &'static str,
        detail: String,
    },
    /// The new collection could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings of the new collection are not valid.
    #[error(transparent)]
    Settings(#[from] CollectionError),
    #[error("the load was cancelled")]
    Cancelled,
}

impl From<LoadError> for CollectionError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::File { .. } => Self::LoadFile { detail: error.to_string() },
            LoadError::Column { .. } | LoadError::Row { .. } => {
                Self::Invalid { field: "body", detail: error.to_string() }
            }
            LoadError::Store(error) => Self::of_file(error, WriteFailure::NothingKept),
            LoadError::Settings(error) => error,
            LoadError::Cancelled => Self::Overloaded { detail: error.to_string(), retry_after: retry_after::SOON },
        }
    }
}
