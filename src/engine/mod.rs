//! One collection on this machine: its index in this process, its documents in a file. In: contents, ids, options. Out:
//! verdicts that depend only on data that is on disk. Knows nothing of HTTP or of file formats.
//!
//! `lookup` finds documents, `write` decides about writes and makes them durable, `upkeep` runs in the background,
//! `boot` opens a file, and `collection` connects these parts.

pub(crate) mod boot;
mod collection;
pub(crate) mod disk;
mod jobs;
pub(crate) mod long_work;
mod lookup;
pub(crate) mod memory_budget;
pub(crate) mod meters;
mod reserve;
mod statistics;
mod upkeep;
mod write;

pub use collection::LocalCollection;
pub(crate) use lookup::{IdCache, Pairs, compared_page};
pub(crate) use upkeep::Background;
pub(crate) use write::PayloadBudget;
pub use write::Ticket;
