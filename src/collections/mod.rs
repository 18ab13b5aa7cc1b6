//! Collections in the form that `http` and `cli` use: the enums [`Collections`] and [`Collection`], with one variant
//! for each way to store documents: on this machine, or in a Redis or Valkey Cluster.

mod all;
pub mod cluster;
mod collection;
pub mod copying;
mod local;
mod manifest;
pub mod offline;
mod opening;
mod pending;
mod several;

pub use all::Collections;
pub use collection::{Collection, RequestOrder};
pub use local::LoadPlace;
pub use opening::Opening;
pub use pending::Pending;
pub use several::{AskedCollections, AskedTextSigner};

pub use crate::load::Loaded;
pub use crate::verdicts::{
    Attached, BackupContents, BackupEntry, BackupName, BackupSettings, BackupState, BackupStatus, BandingAsked,
    Changes, CheckOptions, ClusterMember, ClusterPage, ClustersPage, CollectionError, CollectionsConfig, Comparand,
    Comparison, Cursor, Description, DocumentsPage, Elsewhere, ExactComparison, GoldenFailure, GoldenReport,
    GoldenStretch, HotBucket, InsertOptions, JointParts, JointVerdict, KeptTwice, LargestClusters, Limits, ListedJob,
    Medium, MemoryConfig, Opinion, OverlapOptions, OverlappingItem, Overlaps, PrepareOptions, Prepared, Purpose,
    Reconciled, RedisSettings, Result, Said, ScrubConfig, Settings, TextSigner, Told, WriteFailure, element_hashes,
};
