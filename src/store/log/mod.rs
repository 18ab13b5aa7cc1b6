//! Reads the file of the write-ahead log before SQLite does, according to SQLite's documentation of the format. It must
//! not know about the tables of the database.

mod bytes;
mod frames;
pub(in crate::store) mod look;
pub(in crate::store) mod moved;
mod shared;
