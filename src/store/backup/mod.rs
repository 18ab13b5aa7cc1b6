//! Makes and restores backups. A backup is a directory with a copy of each collection's file and a manifest.
//! Each copy is one snapshot, even if documents are written meanwhile. Every row of a copy is checked before the
//! manifest makes the backup valid. All calls are synchronous. This module must not know what requests a backup, or
//! which collections are open.
//!
//! ```text
//! DIR/manifest.json.partial   first: marks the directory as ours; locked while it is written
//! DIR/NAME.sqlite             a complete collection, without a log
//! DIR/manifest.json           last, by a rename: without it the backup is not valid
//! ```

mod check_copy;
mod copy;
mod error;
mod folder;
mod making;
mod manifest;
mod offline;
mod pace;
mod progress;
mod relocate;
mod restore;
mod series;

pub use self::copy::CopyLimits;
pub use self::error::{BackupError, Result};
pub use self::making::{Backup, units};
pub use self::manifest::{Manifest, ManifestEntry, latest};
pub use self::offline::{offline, settle};
pub use self::progress::Progress;
pub use self::relocate::{is_free, relocate};
pub use self::restore::{refuse_half_restored, restore};
pub use self::series::{SUFFIX_BYTES_MAX, dated, prune, remove, split};
