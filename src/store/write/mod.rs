//! Writes changes to a collection's file, and moves the log into the database in a thread. It must not know about the
//! index, or about the threads that wait for a commit.

pub(in crate::store) mod batch;
pub(in crate::store) mod checkpoint;
mod checkpointer;
pub(in crate::store) mod documents;
mod emptying;
pub(in crate::store) mod log_bound;
mod poison;
mod touch;
pub(in crate::store) mod unlink;
mod update;
pub(in crate::store) mod writer;
