//! The write-ahead log's file, read as SQLite's documentation describes it and before SQLite reads it. Must never know what
//! is in the database's tables.

pub(in crate::store) mod look;
pub(in crate::store) mod moved;
