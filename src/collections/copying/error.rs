//! Why a collection was not copied.

use crate::load::LoadError;
use crate::redis::FillError;
use crate::verdicts::CollectionError;

/// Why nothing was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Source(#[from] LoadError),
    #[error(transparent)]
    Fill(FillError),
    /// The cause, and what becomes of the data that was written.
    #[error("{cause}; {data}")]
    Ended { cause: Box<CopyError>, data: &'static str },
}

impl From<FillError> for CopyError {
    fn from(error: FillError) -> Self {
        Self::Fill(error)
    }
}

impl From<CollectionError> for CopyError {
    fn from(error: CollectionError) -> Self {
        Self::Fill(error.into())
    }
}

impl CopyError {
    /// Returns whether the collection may have been published.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Fill(FillError::Uncertain(_)))
    }

    /// Returns whether the copy was stopped by its caller.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Source(LoadError::Cancelled) | Self::Fill(FillError::Interrupted) => true,
            Self::Ended { cause, .. } => cause.is_interruption(),
            _ => false,
        }
    }
}
