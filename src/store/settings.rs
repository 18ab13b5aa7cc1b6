//! The settings and counts that a collection's file holds in addition to its records.

use crate::types::{CollectionName, Extract, Keep, Seq, TimestampMs, Verify};

/// The settings of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    pub name: CollectionName,
    /// The canonical text of the spec. It never changes.
    pub spec: String,
    /// The data that is stored besides signatures. It never changes.
    pub keep: Keep,
    /// The part of a page that is compared. It never changes.
    pub extract: Extract,
    /// The version of the extractor with which the collection was created. It is 1 in files of formats that did not
    /// support pages.
    pub extractor: u32,
    /// When the collection was created.
    pub created: TimestampMs,
    /// A document whose last-seen time is not stored (as in format 1) counts as seen at this time.
    pub seen_floor: TimestampMs,
    /// The settings that can change, with their latest values.
    pub changeable: Changeable,
}

impl Meta {
    /// If these are the settings of another collection than `name`, returns a sentence that says so.
    pub(super) fn other_than(&self, name: &str) -> Option<String> {
        let own = self.name.as_str();
        (own != name).then(|| format!("its settings name it `{own}`, so its file was copied or renamed"))
    }
}

/// The settings that can change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changeable {
    pub bands: u32,
    pub rows: u32,
    /// Whether a client or the configuration chose the banding. If not, the banding follows from the threshold.
    pub banding_by_hand: bool,
    /// The lowest similarity at which two documents are near-duplicates.
    pub threshold: f64,
    /// How matches are confirmed.
    pub verify: Verify,
    /// How long a document stays after it was last seen, in milliseconds. `None` means for ever.
    pub ttl_ms: Option<u64>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: bool,
}

/// The settings and the counts that [`Store::open`](super::Store::open) found in a file. The counts come from the
/// ledger. [`Store::scan`](super::Store::scan) compares the rows with the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub meta: Meta,
    /// The last assigned position of the commit order that is on disk.
    pub last_seq: Seq,
    /// The number of documents, including links. It does not count documents that a deletion by label must still
    /// remove.
    pub documents: u64,
}
