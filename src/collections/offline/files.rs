//! The collections' files of a data directory: whether they hold what was written, and new ones made of what is whole.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::OfflineError;
use crate::store::lock::DataDirLock;
use crate::store::{self, Finding, Inspection, Repaired};
use crate::types::CollectionName;

/// The files of a data directory, which no other process uses while this value lives.
pub struct CollectionFiles {
    dir: PathBuf,
    _lock: DataDirLock,
}

/// What a check saw of a collection's file.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// Documents that are whole.
    pub documents: u64,
    /// Records that are not.
    pub damaged: u64,
    /// What is wrong, as far as it was kept.
    pub damage: Vec<FileDamage>,
    /// How much is wrong.
    pub damage_total: u64,
    /// Whether all could be looked at.
    pub complete: bool,
}

/// Something that is wrong with a collection's file.
#[derive(Clone, Debug)]
pub struct FileDamage {
    /// Where: a table, `file`, `log`, `settings`, `ledger` or `clusters`.
    pub place: &'static str,
    /// The `seq` of the record, if it is the damage of one.
    pub record: Option<u64>,
    pub detail: String,
}

/// What a repair did.
#[derive(Clone, Debug)]
pub struct FileRepair {
    /// Documents in the new file.
    pub documents: u64,
    /// Records that are damaged, set aside as far as they could be read.
    pub set_aside: u64,
    /// Documents that were counted before and are in neither.
    pub lost: u64,
    /// Where the damaged file is now.
    pub kept_as: PathBuf,
    /// Where the damaged records are, a line of JSON for each row.
    pub set_aside_in: PathBuf,
}

impl CollectionFiles {
    /// Locks the data directory, and finishes the repairs that a crash cut off. There must be one: locking would make it.
    pub fn take(data_dir: &Path) -> Result<Self, OfflineError> {
        let lock = DataDirLock::acquire(data_dir, Duration::ZERO)?;
        let files = Self { dir: Self::folder(data_dir), _lock: lock };
        store::finish_repairs(&files.dir).map_err(files.unreadable())?;
        Ok(files)
    }

    /// Where they are in a data directory.
    pub fn folder(data_dir: &Path) -> PathBuf {
        data_dir.join("collections")
    }

    /// The collections, by name.
    pub fn names(&self) -> Result<Vec<CollectionName>, OfflineError> {
        store::list(&self.dir).map_err(self.unreadable())
    }

    /// Checks one. `progress` is told shares from 0 to 1. An error: it could not be looked at.
    pub fn check(&self, name: &CollectionName, progress: &dyn Fn(f64)) -> Result<FileCheck, OfflineError> {
        Ok(store::inspect(&store::path_of(&self.dir, name), progress)?.into())
    }

    /// Makes a new file of what is whole.
    pub fn repair(&self, name: &CollectionName) -> Result<FileRepair, OfflineError> {
        Ok(store::repair(&store::path_of(&self.dir, name))?.into())
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> OfflineError + use<> {
        let dir = self.dir.clone();
        |source| OfflineError::Unreadable { dir, source }
    }
}

impl FileCheck {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage_total == 0
    }
}

impl From<Inspection> for FileCheck {
    fn from(inspection: Inspection) -> Self {
        let Inspection { documents, damaged, findings, findings_total, complete } = inspection;
        let damage = findings.into_iter().map(FileDamage::from).collect();
        Self { documents, damaged, damage, damage_total: findings_total, complete }
    }
}

impl From<Finding> for FileDamage {
    fn from(Finding { place, record, detail }: Finding) -> Self {
        Self { place, record: record.map(|seq| seq.0), detail }
    }
}

impl From<Repaired> for FileRepair {
    fn from(repaired: Repaired) -> Self {
        let Repaired { documents, set_aside, lost, kept_as, set_aside_in } = repaired;
        Self { documents, set_aside, lost, kept_as, set_aside_in }
    }
}
