//! The collections of a data directory: opened, made, listed, dropped, backed up.

mod backups;
mod opening;
mod registry;
mod stored;

pub use backups::{BackupName, BackupSettings, BackupState, BackupStatus};
pub use opening::Opening;
pub use registry::Collections;
pub use stored::StoredCollection;

pub use crate::engine::{
    CheckOptions, ClusterMember, ClusterPage, ClustersPage, Collection, Comparand, Comparison, ExactComparison,
    HotBucket, InsertOptions, ScrubConfig, Ticket,
};
pub use crate::verdicts::{
    BandingAsked, Changes, CollectionError, CollectionsConfig, Description, ID_JSON_BYTES_MAX, Limits, Medium,
    PrepareOptions, Prepared, Purpose, Result, Settings, TextSigner, WriteFailure, fitting,
};
