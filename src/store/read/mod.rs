//! Disk -> records, from any thread, beside the writer. Each answer is of one moment. Must never know what is being
//! written.

pub(in crate::store) mod clusters;
pub(in crate::store) mod pages;
pub(in crate::store) mod payloads;
pub(in crate::store) mod readers;
pub(in crate::store) mod records;
pub(in crate::store) mod snapshot;
