//! The errors of the modules below -> problems. Each error has one [`Code`]; `error.rs` gives the code its status.

use hapax_core::NotUtf8;

use super::error::{Code, Problem};
use crate::collections::{CollectionError, WriteFailure};
use crate::cpu::Refused;
use crate::keys::KeysError;
use crate::types::{InvalidName, retry_after};

impl From<CollectionError> for Problem {
    fn from(error: CollectionError) -> Self {
        let detail = error.to_string();
        match error {
            CollectionError::NoSuchCollection(_) => Self::new(Code::CollectionNotFound, detail),
            CollectionError::CollectionExists { .. } | CollectionError::LoadIntoExisting(_) => {
                Self::new(Code::CollectionExists, detail)
            }
            CollectionError::LoadRunning => {
                Self { retry_after: Some(retry_after::OPERATOR), ..Self::new(Code::Overloaded, detail) }
            }
            CollectionError::LoadFile { .. } => Self::new(Code::MalformedBody, detail),
            CollectionError::NotMergeable { .. } | CollectionError::MergeRunning { .. } => {
                Self::new(Code::NotMergeable, detail)
            }
            CollectionError::SpecMismatch { .. } => Self::new(Code::SpecMismatch, detail),
            CollectionError::WrongIndex { .. } => Self::new(Code::WrongIndex, detail),
            CollectionError::TooManyCollections { .. } => Self::new(Code::TooManyCollections, detail),
            CollectionError::DefaultStays => Self::new(Code::DefaultStays, detail),
            CollectionError::BackupsOff => Self::new(Code::BackupsOff, detail),
            CollectionError::BackupRunning { .. } => Self::new(Code::BackupRunning, detail),
            CollectionError::BackupExists { .. } => Self::new(Code::BackupExists, detail),
            CollectionError::IdConflict { .. } => Self::new(Code::IdConflict, detail),
            CollectionError::Invalid { field, detail } => Self::invalid(field, detail),
            CollectionError::NotUtf8(NotUtf8 { offset }) => Self::ill_formed(offset),
            CollectionError::Overloaded { detail, retry_after } => {
                Self { retry_after: Some(retry_after), ..Self::new(Code::Overloaded, detail) }
            }
            CollectionError::Opening { progress, .. } => {
                Self { progress: Some(progress), ..Self::new(Code::Starting, detail) }
            }
            CollectionError::WriteFailed { why, .. } => write_failed(why, &detail),
            CollectionError::Doubtful { .. } => {
                Self { retry_after: Some(retry_after::OPERATOR), ..Self::new(Code::WriteFailed, detail) }
            }
            CollectionError::MemoryBudget { .. }
            | CollectionError::NoRoomForBanding { .. }
            | CollectionError::NoRoomForLoad { .. }
            | CollectionError::MemoryShort { .. } => Self::new(Code::MemoryBudgetReached, detail),
            CollectionError::SourceFull { .. } => Self::new(Code::SourceFull, detail),
            CollectionError::LabelsFull { .. } | CollectionError::LabelSetsFull { .. } => {
                Self::new(Code::LabelsFull, detail)
            }
            CollectionError::NoSuchDocument { .. } => Self::new(Code::DocumentNotFound, detail),
            CollectionError::Damaged { .. } => {
                tracing::error!(cause = detail, "a collection is damaged");
                Self::new(Code::CollectionDamaged, detail)
            }
            CollectionError::NotInThisStore { .. } => Self::new(Code::NotInThisStore, detail),
            CollectionError::StoreUnavailable { uncertain: true, .. } => Self::new(Code::Uncertain, detail),
            CollectionError::StoreUnavailable { uncertain: false, .. } => Self::new(Code::StoreUnavailable, detail),
            CollectionError::StoreFull { .. } => Self::new(Code::MemoryBudgetReached, detail),
            CollectionError::DataDirInUse { detail: cause } | CollectionError::Store(cause) => Self::internal(&cause),
        }
    }
}

impl From<KeysError> for Problem {
    fn from(error: KeysError) -> Self {
        let detail = error.to_string();
        match error {
            KeysError::NewKey(_) => Self::invalid("key", detail),
            KeysError::NameTaken { .. } => Self::new(Code::KeyExists, detail),
            KeysError::NoSuchKey(_) => Self::new(Code::KeyNotFound, detail),
            KeysError::Read(_) | KeysError::Format { .. } | KeysError::Key { .. } => {
                let detail = format!("the keys file cannot be used: {detail}");
                Self { retry_after: Some(retry_after::OPERATOR), ..Self::new(Code::WriteFailed, detail) }
            }
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        CollectionError::from(refused).into()
    }
}

impl From<InvalidName> for Problem {
    fn from(error: InvalidName) -> Self {
        let detail = error.to_string();
        match error {
            InvalidName::IdEmpty | InvalidName::IdTooLong { .. } => Self::invalid("id", detail),
            InvalidName::MetadataTooLong { .. } => Self::invalid("metadata", detail),
            InvalidName::CollectionName => Self::invalid("collection", detail),
        }
    }
}

/// 507 or 503. Only the log gets `cause`.
fn write_failed(why: WriteFailure, cause: &str) -> Problem {
    tracing::error!(cause, ?why, "write failed");
    match why {
        WriteFailure::DiskFull => {
            Problem::new(Code::StorageFull, "there is no room on the disk for this write; nothing of it was stored")
        }
        WriteFailure::NothingKept => Problem {
            retry_after: Some(retry_after::SOON),
            ..Problem::new(
                Code::WriteFailed,
                "the disk refused this write; nothing of it was stored, and it can be sent again",
            )
        },
        WriteFailure::Uncertain => Problem {
            retry_after: Some(retry_after::OPERATOR),
            ..Problem::new(
                Code::WriteFailed,
                "the disk failed during a write to this collection, and only a restart of the server shows whether \
                 that write was stored. Until then the collection accepts no writes; reads still work",
            )
        },
    }
}
