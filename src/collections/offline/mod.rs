//! Work on a data directory that no server uses: check and repair its files, read a collection, back up and restore.
//! Answers are plain; what makes them is the store's.

mod backup;
mod error;
mod files;
mod stored;

pub use backup::{BackupFolder, BackupProgress, SeriesFolder, back_up, prune, restore};
pub use error::OfflineError;
pub use files::{CollectionFiles, FileCheck, FileDamage, FileRepair};
pub use stored::StoredCollection;
