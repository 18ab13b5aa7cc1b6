//! Work on a data directory without a server: checks and repairs files, reads and loads collections, makes and restores
//! backups. The results are plain values. The store does the work.

mod backup;
mod error;
mod files;
mod loading;
mod stored;

pub use backup::{BackupFolder, BackupProgress, SeriesFolder, back_up, prune, restore};
pub use error::OfflineError;
pub use files::{CollectionFiles, FileCheck, FileDamage, FileRepair};
pub use loading::load;
pub use stored::StoredCollection;
