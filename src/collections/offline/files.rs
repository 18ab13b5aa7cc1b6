//! The files of the collections in a data directory: checks whether they contain the data that was written, and makes
//! new files from the intact documents.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::OfflineError;
use crate::store::lock::DataDirLock;
use crate::store::{self, Finding, Inspection, Inventory, Rebuilt, Repaired};
use crate::types::CollectionName;

/// The files of a data directory. While this value exists, no other process uses the data directory.
pub struct CollectionFiles {
    data_dir: PathBuf,
    dir: PathBuf,
    _lock: DataDirLock,
}

/// The result of checking a collection's file.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// Documents that are intact.
    pub documents: u64,
    /// Records that are damaged.
    pub damaged: u64,
    /// The damage that was found. Only the first part of a long list is kept.
    pub damage: Vec<FileDamage>,
    /// The total number of findings.
    pub damage_total: u64,
    /// Whether all of the file could be read.
    pub complete: bool,
}

/// One finding of damage in a collection's file.
#[derive(Clone, Debug)]
pub struct FileDamage {
    /// The place: a table, `file`, `log`, `settings`, `ledger`, `golden`, `jobs` or `statistics`.
    pub place: &'static str,
    /// The `seq` of the record, if a record is damaged.
    pub record: Option<u64>,
    pub detail: String,
}

/// The result of a repair.
#[derive(Clone, Debug)]
pub struct FileRepair {
    /// Documents in the new file.
    pub documents: u64,
    /// Damaged records. Their readable parts were set aside.
    pub set_aside: u64,
    /// Damaged pairs of the golden set. Their readable parts were set aside.
    pub pairs_set_aside: u64,
    /// The number of damaged rows of jobs. If only such a row marked documents as deleted, these documents are stored
    /// again.
    pub jobs_damaged: u64,
    /// Whether the log was damaged or cut. All changes in its lost part are undone.
    pub log_damaged: bool,
    /// The number of documents that the old ledger counted but that are in neither file. `None`: unknown.
    pub lost: Option<u64>,
    /// The path of the damaged file.
    pub kept_as: PathBuf,
    /// The path of the file with the damaged records, one line of JSON for each row.
    pub set_aside_in: PathBuf,
}

impl CollectionFiles {
    /// Locks the data directory, and finishes repairs that a crash interrupted. The directory must exist, because
    /// locking would create it.
    pub fn take(data_dir: &Path) -> Result<Self, OfflineError> {
        let lock = DataDirLock::acquire(data_dir, Duration::ZERO)?;
        let files = Self { data_dir: data_dir.to_owned(), dir: Self::folder(data_dir), _lock: lock };
        store::finish_repairs(&files.dir).map_err(files.unreadable())?;
        Ok(files)
    }

    /// Returns the directory of the files in a data directory.
    pub fn folder(data_dir: &Path) -> PathBuf {
        data_dir.join("collections")
    }

    /// Returns the collections by name.
    pub fn names(&self) -> Result<Vec<CollectionName>, OfflineError> {
        store::list(&self.dir).map_err(self.unreadable())
    }

    /// Returns the collections whose file is missing, by name, each with the evidence that the file existed.
    pub fn missing(&self) -> Result<BTreeMap<CollectionName, FileCheck>, OfflineError> {
        let listed = Inventory::missing_of(&self.data_dir, &self.names()?).map_err(self.unreadable())?;
        let listed = listed.into_iter().map(|name| (name, "its file is missing, but it was not dropped".to_owned()));
        let strangers = store::strangers(&self.dir).map_err(self.unreadable())?;
        let logs = strangers.iter().filter_map(|path| {
            let file = path.file_name().unwrap_or_default().display();
            Some((store::log_without_database(path)?, format!("its file is missing, but its log {file} is there")))
        });
        // A drop that was interrupted is completed at the next start.
        let is_kept = |(name, _): &(CollectionName, String)| !store::is_being_dropped(&store::path_of(&self.dir, name));
        Ok(listed.chain(logs).filter(is_kept).map(|(name, detail)| (name, FileCheck::missing(detail))).collect())
    }

    /// Checks a collection. `progress` gets numbers from 0 to 1. An error means that the file could not be read.
    pub fn check(&self, name: &CollectionName, progress: &dyn Fn(f64)) -> Result<FileCheck, OfflineError> {
        Ok(store::inspect(&store::path_of(&self.dir, name), progress)?.into())
    }

    /// Makes a new file from the intact documents.
    pub fn repair(&self, name: &CollectionName) -> Result<FileRepair, OfflineError> {
        Ok(store::repair(&store::path_of(&self.dir, name))?.into())
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> OfflineError + use<> {
        let dir = self.dir.clone();
        |source| OfflineError::Unreadable { dir, source }
    }
}

impl FileCheck {
    fn missing(detail: String) -> Self {
        let damage = vec![FileDamage { place: "file", record: None, detail }];
        Self { documents: 0, damaged: 0, damage, damage_total: 1, complete: false }
    }

    /// Whether there is no damage.
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
        let Repaired { rebuilt, kept_as, set_aside_in } = repaired;
        let Rebuilt { documents, set_aside, pairs_set_aside, jobs_damaged, log_damaged, lost } = rebuilt;
        Self { documents, set_aside, pairs_set_aside, jobs_damaged, log_damaged, lost, kept_as, set_aside_in }
    }
}
