//! The parts of a backup's manifest that are shown to people.

use crate::store::backup::{Manifest, ManifestEntry};
use crate::verdicts::{BackupContents, BackupEntry};

/// Returns the contents of a backup: its manifest without the checksums and the names of files.
pub(super) fn contents(manifest: Manifest) -> BackupContents {
    let entry =
        |ManifestEntry { name, documents, last_seq, bytes, .. }| BackupEntry { name, documents, last_seq, bytes };
    BackupContents { made: manifest.made, collections: manifest.collections.into_iter().map(entry).collect() }
}
