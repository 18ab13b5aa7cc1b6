//! Every collection's file -> a folder with a copy of each and a manifest, and back.
//! A copy is of one moment, whatever is written meanwhile, and every row of it is checked before the manifest says that
//! there is a backup. Synchronous. Must never know who asks for it, or which collections are open.
//!
//! ```text
//! DIR/manifest.json.partial   first: marks the folder as ours, and locked by who writes to it
//! DIR/NAME.sqlite             a collection, whole: no log beside it
//! DIR/manifest.json           last, by a rename: without it there is no backup here
//! ```

mod check;
mod copy;
mod error;
mod folder;
mod making;
mod manifest;
mod offline;
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
pub use self::relocate::relocate;
pub use self::restore::{refuse_half_restored, restore};
pub use self::series::{SUFFIX_BYTES_MAX, dated, prune, split};
