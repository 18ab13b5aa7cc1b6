//! The write-ahead log's file, read as SQLite's documentation describes it and before SQLite reads it. Must never know what
//! is in the database's tables.

mod bytes;
mod frames;
pub(in crate::store) mod look;
pub(in crate::store) mod moved;
mod shared;
