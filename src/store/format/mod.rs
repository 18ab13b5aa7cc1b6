//! The format of a collection's file: tables, rows, checksums, and how a connection to it is set up. Must never know who
//! reads or writes, and when.

pub(in crate::store) mod payload;
pub(in crate::store) mod rows;
pub(in crate::store) mod schema;
pub(in crate::store) mod verdict;
