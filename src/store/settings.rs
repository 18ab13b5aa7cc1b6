//! What a collection's file says of the collection, beside its records.

use crate::types::{CollectionName, Keep, Seq, TimestampMs, Verify};

/// The settings of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    pub name: CollectionName,
    /// The canonical text of its spec. Frozen.
    pub spec: String,
    /// What is kept beside signatures. Frozen.
    pub keep: Keep,
    /// When it was made.
    pub created: TimestampMs,
    /// Documents of before there was a note of it count as seen then.
    pub seen_floor: TimestampMs,
    /// The rest, as set last.
    pub changeable: Changeable,
}

/// The settings that can change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changeable {
    pub bands: u32,
    pub rows: u32,
    /// Whether a client or the configuration said which; else they follow the threshold.
    pub banding_by_hand: bool,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: f64,
    /// How matches are confirmed.
    pub verify: Verify,
    /// How long a document stays after it was last seen, in milliseconds; absent: for ever.
    pub ttl_ms: Option<u64>,
    /// Whether a document counts as seen when a duplicate of it is inserted.
    pub touch: bool,
}

/// What [`Store::open`](super::Store::open) found, by the ledger; [`Store::scan`](super::Store::scan) holds the rows against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    pub meta: Meta,
    /// The last place of the commit order that was given out and is on disk.
    pub last_seq: Seq,
    /// Records, links among them.
    pub documents: u64,
}
