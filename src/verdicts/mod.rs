//! The code that every collection needs, wherever it is stored: settings, errors, prepared documents (`prepare/`), the
//! comparison of two documents (`comparing.rs`), the making of verdicts (`verdict.rs`, and `joint.rs` for several
//! collections), and limits on answers. It knows nothing of where documents are stored. It only translates the store's
//! errors and settings.

mod backups;
mod clusters;
mod comparing;
mod cursor;
mod error;
mod golden;
mod joint;
mod listed_job;
mod overlaps;
mod prepare;
mod reconciled;
mod settings;
mod settings_asked;
mod threshold;
mod verbs;
mod verdict;

pub use backups::{BackupContents, BackupEntry, BackupName, BackupSettings, BackupState, BackupStatus};
pub use clusters::{ClusterMember, ClusterPage, ClustersPage, LargestClusters};
pub(crate) use comparing::{ShingleQuery, Terms, similarity};
pub use cursor::{Cursor, DocumentsPage};
pub use error::{CollectionError, Result, WriteFailure};
pub(crate) use golden::evaluate;
pub use golden::{GoldenFailure, GoldenReason, GoldenReport, GoldenStretch};
pub use joint::{Elsewhere, JointParts, JointVerdict, Opinion, Said};
pub use listed_job::ListedJob;
pub use overlaps::{OverlapOptions, OverlappingItem, Overlaps};
pub(crate) use prepare::{
    Kept, Made, NearSource, Original, Preparer, gram_size, is_of_nothing, is_packed_text, set_of, text_of,
    unpacked_bytes, unpacked_grams,
};
pub use prepare::{PrepareOptions, Prepared, Purpose, TextSigner, element_hashes};
pub use reconciled::{KeptTwice, Reconciled, Told};
pub use settings::{
    Changes, CollectionsConfig, Description, Limits, Medium, MemoryConfig, RedisSettings, ScrubConfig, Settings,
};
pub use settings_asked::{BandingAsked, KeyAsked, SettingsAsked};
pub use threshold::check_threshold;
pub use verbs::{Attached, CheckOptions, Comparand, Comparison, ExactComparison, HotBucket, InsertOptions};
pub(crate) use verdict::{Cited, Findings, VerdictContext, empty_verdict};
