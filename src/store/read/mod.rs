//! Reads records from disk, from any thread, while the writer writes. Each answer comes from one snapshot. This module
//! must not know what is being written.

pub(in crate::store) mod clusters;
pub(in crate::store) mod doomed;
pub(in crate::store) mod joined;
pub(in crate::store) mod pages;
pub(in crate::store) mod payloads;
pub(in crate::store) mod readers;
pub(in crate::store) mod records;
pub(in crate::store) mod snapshot;
