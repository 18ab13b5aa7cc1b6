//! Durable records: one SQLite file per collection.
//! In: changes in the order they were decided. Out: records, on disk when [`Writer::commit`] returns, and refusals where
//! the file no longer holds what was written. Synchronous. Must never know of the index, of who waits for a commit, or
//! of HTTP.
//!
//! ```text
//! signature  seq, id_fingerprint, content_prefix, flags, bytes, cluster, seen, sum    all that boot reads
//! document   seq, id, metadata, content_hash, flags, first_seen, shingles, verdict, id_first_seen, sum
//! payload    seq, kind, shingles, size_sum, bytes, sum                       what the collection keeps beside it
//! ledger     per table: rows, sum of the rows' sums, last seq                one update per transaction
//! meta       name, spec, keep, created, and what can change of the settings, sum
//! ```
//!
//! SQLite alone lets a flipped bit in a page header drop rows in silence. So each row carries a checksum over all its
//! columns, each transaction moves the ledger, and [`Store::scan`] compares the rows with it before a collection serves. A
//! log that is bad in its middle, or cut, would take rows and ledger back together: [`Store::open`] looks at it first
//! (`log.rs`). What boot does not read is checked when it is read, by [`Store::scrub`], and offline by [`inspect()`];
//! [`repair()`] makes a file anew.
//!
//! [`Store`] reads, from any thread; [`Writer`] is the one who writes; a background thread moves the write-ahead log
//! into the database while both go on.

pub mod backup;
mod checkpoint;
mod clusters;
mod descriptors;
mod error;
mod files;
mod fingerprint;
mod inspection;
mod inventory;
pub mod lock;
mod log;
mod moved;
mod payload;
mod promotion;
mod reader;
mod repair;
mod rows;
mod scan;
mod schema;
mod scrub;
mod touch;
mod update;
mod verdict;
mod walk;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use hapax_core::ContentHash;

pub use self::clusters::{ClusterRows, ClusterStart, Member, Stretch};
pub use self::descriptors::out_of_descriptors;
pub use self::error::{Cause, Result, StoreError};
pub use self::files::{
    SUFFIX, clean_leftovers, finish_repairs, list, log as log_of, log_without_database, make_dir, path_of, strangers,
};
pub use self::fingerprint::id_fingerprint;
pub use self::inspection::{Finding, Inspection, inspect};
pub use self::inventory::Inventory;
pub use self::payload::{Looked, Payload, PayloadKind};
pub use self::reader::Store;
pub use self::repair::{Repaired, repair};
pub use self::rows::{Flaw, SignatureRow, content_prefix};
pub use self::scan::ScanTotals;
pub use self::scrub::Scrubbed;
pub use self::writer::Writer;
use crate::types::{CollectionName, DocId, Keep, Metadata, Overlap, Seq, TimestampMs, VerdictKind, Verify};

/// The settings of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// Its name.
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
    /// Bands.
    pub bands: u32,
    /// Rows per band.
    pub rows: u32,
    /// Whether a client or the configuration said which; else they follow the threshold.
    pub banding_by_hand: bool,
    /// Similarity from which two documents are near-duplicates.
    pub threshold: f64,
    /// How matches are confirmed.
    pub verify: Verify,
    /// How long a document stays after it was last seen, in milliseconds; absent: for ever.
    pub ttl_ms: Option<u64>,
    /// Whether a duplicate counts as a sight of the document it resembles.
    pub touch: bool,
}

/// A document as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its identity and its place in the order.
    pub seq: Seq,
    /// The client's name for it.
    pub id: DocId,
    /// 64 bits of the id, which RAM keeps in its place.
    pub id_fingerprint: u64,
    /// Packed slots.
    pub signature: Vec<u8>,
    /// Hash of the canonical text; means nothing where `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether it is a link, without postings.
    pub linked: bool,
    /// What the client keeps beside it.
    pub metadata: Option<Metadata>,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// When its id was first stored, with whatever content.
    pub id_first_seen: TimestampMs,
    /// When it was last seen, as far as that is on disk.
    pub seen: TimestampMs,
    /// The cluster it belongs to, named by the `seq` of its founder; `Seq(0)` where it founded its own.
    pub cluster: Seq,
    /// Shingles, repeats counted; absent for a given signature.
    pub shingles: Option<u64>,
    /// The verdict at its insertion.
    pub verdict: StoredVerdict,
    /// What is kept beside the signature, where the collection keeps something; on its way to the disk only: a record
    /// that was read has none, and [`Store::payloads`] reads it.
    pub payload: Option<Arc<Payload>>,
}

/// The verdict of an insertion, kept so that a retry repeats it. Matches are kept by `seq`; ids are resolved on reading.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredVerdict {
    /// What was found.
    pub kind: VerdictKind,
    /// The best match's id, which outlives the match.
    pub duplicate_of: Option<DocId>,
    /// The threshold judged by; finite.
    pub threshold: f64,
    /// Distinct documents compared.
    pub candidates: u32,
    /// Postings and candidates that a cap kept from being looked at.
    pub unread: u64,
    /// Best first.
    pub matches: Vec<StoredMatch>,
}

/// One match of a [`StoredVerdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMatch {
    /// The document.
    pub seq: Seq,
    /// Equal slots.
    pub matching: u32,
    /// Whether the contents are equal.
    pub exact: bool,
    /// How many shingles they share, where they were compared exactly.
    pub overlap: Option<Overlap>,
}

/// A record without signature and verdict: what the resolution of a match needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Its identity.
    pub seq: Seq,
    /// The client's name for it.
    pub id: DocId,
    /// What the client keeps beside it, where asked for.
    pub metadata: Option<Metadata>,
    /// It has some that was asked for and left in the file, because others took the bytes granted for it.
    pub metadata_left: bool,
    /// Hash of the canonical text; means nothing where `given`.
    pub content: ContentHash,
    /// Whether the client gave the signature.
    pub given: bool,
    /// Whether it is a link.
    pub linked: bool,
    /// When this content was first stored under its id.
    pub first_seen: TimestampMs,
    /// Shingles, repeats counted.
    pub shingles: Option<u64>,
}

impl Record {
    /// The part of it that a match shows.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            id: self.id.clone(),
            metadata: self.metadata.clone(),
            metadata_left: false,
            content: self.content,
            given: self.given,
            linked: self.linked,
            first_seen: self.first_seen,
            shingles: self.shingles,
        }
    }
}

/// One entry of the commit order.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new document, at its own `seq`.
    Insert(Arc<Record>),
    /// A document goes.
    Delete {
        /// The delete's place in the order.
        seq: Seq,
        /// The document that goes.
        target: Seq,
        /// The link that is none from here on: it is the first now of the cluster that `target` leaves.
        promoted: Option<Seq>,
    },
    /// A document takes the place of another, which goes.
    Replace {
        /// The new document, at its own `seq`.
        record: Arc<Record>,
        /// The document that goes.
        target: Seq,
        /// As with a delete.
        promoted: Option<Seq>,
    },
    /// A document has other metadata.
    Update {
        /// The update's place in the order.
        seq: Seq,
        /// The document.
        target: Seq,
        /// What it has from here on.
        metadata: Option<Metadata>,
    },
    /// A document was seen again. Where it is gone there is nothing to note.
    Touch {
        /// The document.
        target: Seq,
        /// When.
        seen: TimestampMs,
    },
}

impl Change {
    /// Its place in the order; none where it changes no answer.
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Insert(record) | Self::Replace { record, .. } => Some(record.seq),
            Self::Delete { seq, .. } | Self::Update { seq, .. } => Some(*seq),
            Self::Touch { .. } => None,
        }
    }
}

/// What [`Store::open`] found, by the ledger; [`Store::scan`] holds the rows against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The collection's settings.
    pub meta: Meta,
    /// The last place of the commit order that was given out and is on disk.
    pub last_seq: Seq,
    /// Records, links among them.
    pub documents: u64,
}

/// What a file's name says that the collection in it is called.
pub fn name_of(path: &Path) -> String {
    schema::label(path)
}

impl Store {
    /// Makes a collection's file, whole or not at all: it takes its name only when it is on disk. Under the data
    /// directory's lock.
    pub fn create(path: &Path, meta: &Meta) -> Result<(Self, Writer)> {
        schema::create(path, meta)?;
        let (store, writer, _) = Self::open(path)?;
        writer.check_usable()?;
        Ok((store, writer))
    }

    /// Opens a collection's file, with everything that a crash left in its log.
    pub fn open(path: &Path) -> Result<(Self, Writer, Opened)> {
        let (connection, opened, ledger) = schema::open_for_writing(path)?;
        payload::check_count(&opened, ledger.payloads.rows)?;
        let writer = Writer::new(connection, path, &opened.meta, ledger)?;
        writer.restart_log()?;
        let store = Self::new(writer.readers());
        Ok((store, writer, opened))
    }

    /// The settings and the counts of a collection that need not be open.
    pub fn peek(path: &Path) -> Result<Opened> {
        schema::check_files(path)?;
        let connection = schema::connect(path, schema::Role::Reader)?;
        if schema::format_of(&connection, path)? < schema::FORMAT {
            schema::upgrade(path)?;
        }
        schema::check_format(&connection, path)?;
        let label = schema::label(path);
        let meta = schema::read_meta(&connection, &label)?;
        let ledger = schema::read_ledger(&connection, &label)?;
        Ok(Opened { meta, last_seq: ledger.last_seq, documents: ledger.signatures.rows })
    }

    /// Removes a collection's file for good: gone in one step, whatever happens. Close its [`Writer`] first.
    pub fn remove(path: &Path) -> Result<()> {
        files::remove(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
            _ => StoreError::from_io(&schema::label(path), "removing its file", source),
        })
    }
}
