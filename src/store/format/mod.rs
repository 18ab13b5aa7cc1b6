//! The format of a collection's file: tables, rows, checksums, and the setup of connections. It must not know what
//! reads or writes the file, or when.

pub(in crate::store) mod cluster_index;
pub(in crate::store) mod columns;
pub(in crate::store) mod connection;
pub(in crate::store) mod creation;
pub(in crate::store) mod golden;
mod job_json;
pub(in crate::store) mod jobs;
pub(in crate::store) mod ledger;
pub(in crate::store) mod meta;
pub(in crate::store) mod opening;
pub(in crate::store) mod outside;
pub(in crate::store) mod payload;
pub(in crate::store) mod rows;
pub(in crate::store) mod side_tables;
pub(in crate::store) mod statistics;
pub(in crate::store) mod tables;
pub(in crate::store) mod upgrade;
pub(in crate::store) mod verdict;
pub(in crate::store) mod version;
