//! Durable records: one SQLite file per collection.
//! In: changes, in the order in which they were decided. Out: records, which are on disk when [`Writer::commit`]
//! returns, and an error if a file no longer contains the data that was written. All calls are synchronous. This module
//! must not know about the index, about the threads that wait for a commit, or about HTTP.
//!
//! ```text
//! signature  seq, id_fingerprint, content_prefix, flags, bytes, cluster, seen, labels, sum  the part that boot reads
//! document   seq, id, metadata, content_hash, flags, first_seen, shingles, verdict, id_first_seen,
//!            page_hash, extractor, capture_date, payload_digest, sum         the rest of a document
//! payload    seq, kind, shingles, size_sum, bytes, sum                       shingles or text, if these are kept
//! golden     pair, name, a, b, duplicate, sum                                labelled pairs of texts, never documents
//! job        number, job, sum                                                jobs and their progress, as JSON
//! doomed     first, deletion, seqs, sum                                      deleted by label, but not removed yet
//! merged     place, merge, source, report, sum                               the report of a merge on each document
//! statistics place, label, counts, sum                                       counts of the documents that were sent
//! ledger     per table: rows, sum of the rows' sums, last seq                one update per transaction
//! meta       name, spec, keep, extract, extractor, created, seen_floor, the settings that can change, sum
//! ```
//!
//! With SQLite alone, one flipped bit in a page header can silently drop rows. Therefore each row has a checksum over
//! all its columns, each transaction updates the ledger, and [`Store::scan`] compares the rows with the ledger before a
//! collection is served. If the write-ahead log is damaged in the middle or cut short, SQLite would return an older
//! state in which rows and ledger match. Therefore [`Store::open`] checks the log first (`log/look.rs`). Boot does not
//! read all rows. The other rows are checked whenever they are read. [`Store::scrub`] also checks them in the
//! background, and [`inspect()`] offline. [`repair()`] builds a new file from the intact documents.
//!
//! [`Store`] reads, from any thread. Only [`Writer`] writes. A background thread moves the write-ahead log into the
//! database while [`Store`] and [`Writer`] are in use.

mod additions;
pub mod backup;
mod building;
mod building_writer;
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

pub use self::additions::Additions;
pub use self::building::{Building, Built, Earlier};
pub use self::change::Change;
pub use self::data_dir::files::{
    SUFFIX, clean_leftovers, finish_repairs, is_being_dropped, list, log as log_of, log_without_database, make_dir,
    name_of, path_of, spool, strangers,
};
pub use self::data_dir::{Inventory, lock};
pub use self::descriptors::out_of_descriptors;
pub use self::error::{Cause, Result, StoreError};
pub use self::fingerprint::id_fingerprint;
pub use self::format::columns::Flaw;
pub use self::format::jobs::{DoomedPart, StoredJobs};
pub use self::format::rows::SignatureRow;
pub use self::format::statistics::StoredStatistics;
pub use self::handle::Store;
pub use self::integrity::inspection::{Finding, Inspection, inspect};
pub use self::integrity::repair::{Rebuilt, Repaired, repair};
pub use self::integrity::scan::ScanTotals;
pub use self::integrity::scrub::Scrubbed;
pub use self::read::clusters::{ClusterRows, ClusterStart, LargestRows, Member, Stretch};
pub use self::read::payloads::Looked;
pub use self::record::{Head, Record, StoredMatch, StoredVerdict};
pub use self::settings::{Changeable, Meta, Opened};
pub use self::write::writer::Writer;
