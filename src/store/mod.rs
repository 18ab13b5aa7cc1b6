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
//! (`log/look.rs`). What boot does not read is checked when it is read, by [`Store::scrub`], and offline by [`inspect()`];
//! [`repair()`] makes a file anew.
//!
//! [`Store`] reads, from any thread; [`Writer`] is the one who writes; a background thread moves the write-ahead log
//! into the database while both go on.

pub mod backup;
mod change;
mod data_dir;
mod descriptors;
mod error;
mod fingerprint;
mod format;
mod handle;
mod integrity;
mod log;
mod read;
mod record;
mod settings;
mod write;

#[cfg(test)]
mod tests;

pub use self::change::Change;
pub use self::data_dir::files::{
    SUFFIX, clean_leftovers, finish_repairs, list, log as log_of, log_without_database, make_dir, name_of, path_of,
    strangers,
};
pub use self::data_dir::{Inventory, lock};
pub use self::descriptors::out_of_descriptors;
pub use self::error::{Cause, Result, StoreError};
pub use self::fingerprint::id_fingerprint;
pub use self::format::columns::Flaw;
pub use self::format::rows::SignatureRow;
pub use self::handle::Store;
pub use self::integrity::inspection::{Finding, Inspection, inspect};
pub use self::integrity::repair::{Repaired, repair};
pub use self::integrity::scan::ScanTotals;
pub use self::integrity::scrub::Scrubbed;
pub use self::read::clusters::{ClusterRows, ClusterStart, Member, Stretch};
pub use self::read::payloads::Looked;
pub use self::record::{Head, Record, StoredMatch, StoredVerdict};
pub use self::settings::{Changeable, Meta, Opened};
pub use self::write::writer::Writer;
